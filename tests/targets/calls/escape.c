/* SPDX-License-Identifier: MIT */
/*
 * Copies the addresses of malloc and free into a structure when the line "capture" comes, as plugins do, and calls them
 * through the copy until it ends.
 *
 * "hide WHERE" makes the only copy instead, calls it at "use", and answers where it is:
 *     sealed    in a page that is read-only then
 *     shut      in a page that nobody may read until it is used
 *     code      in the instructions of code that jumps to it
 *     below     in the mapping of the main thread's stack, which is one of the program's own making, below the stack
 *               pointer
 *     beside    between a page that nobody may read and a stack that the program has brought to a thread
 *
 * "move HOW MILLISECONDS" has a thread that keeps it for ever and moves it after each such time, until "call" has it
 * call it: slots     from one place in its frame to another, and back frames    from its frame to that of a function
 * that it calls, and back register  not at all: it is a variable, in a register that two functions save at different
 * depths
 *
 * "frame MILLISECONDS" has a thread that has it in a frame for that time, calls it, and does so again until the end.
 *
 * "keep HOW" keeps the address of free as no search would find it, and "free" calls it:
 *     pipe      in a pipe
 *     packed    in six bytes between others
 *     tagged    with a number in its upper bits
 *     shifted   without its lower bits, which are kept apart
 *     xored     as the difference to another number
 *
 * "dangle" keeps pointers to a place where nothing is mapped any more: what is mapped next goes there.
 */
#include "victim.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct allocator {
	void *(*allocate)(size_t);
	void (*release)(void *);
};
static struct allocator captured;
static atomic_bool ready;

static VICTIM_FRAME void capture(void)
{
	captured.allocate = malloc;
	captured.release = free;
	atomic_store_explicit(&ready, true, memory_order_release);
}

static void *use(void *argument)
{
	uint64_t random = 521288629;

	(void)argument;
	while (!victim_done()) {
		if (!atomic_load_explicit(&ready, memory_order_acquire)) {
			victim_round();
			continue;
		}
		size_t bytes = 1 + victim_random(&random) % 2000;
		unsigned char *p = captured.allocate(bytes);
		if (!p) {
			victim_wrong("no memory");
			continue;
		}
		memset(p, 0xa5, bytes);
		if (p[0] != 0xa5 || p[bytes - 1] != 0xa5)
			victim_wrong("a block changed");
		captured.release(p);
		victim_round();
	}
	return NULL;
}

#define ARENA_BYTES (256u << 10)

static uint64_t *hidden; /* where the copy is, in a page of its own */
static char *arena;
static bool in_code;

/* Writes the address where it shall be found and leaves it nowhere else: it is put together from two halves. */
static VICTIM_FRAME void put_address(volatile uint32_t *to, void *(*const volatile *function)(size_t))
{
	const volatile uint32_t *from = (const volatile uint32_t *)function;

	to[0] = from[0];
	to[1] = from[1];
}

static void *(*const volatile allocate_by_table)(size_t) = malloc;

static void *sleep_on(void *unused)
{
	while (!victim_done())
		usleep(1000);
	return unused;
}

static char *place_beside_stack(void)
{
	char *memory = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	pthread_t thread;

	if (memory == MAP_FAILED || mprotect(memory, 4096, PROT_NONE) || pthread_attr_init(&attributes) ||
	    pthread_attr_setstack(&attributes, memory + ARENA_BYTES / 2, ARENA_BYTES / 2) ||
	    pthread_create(&thread, &attributes, sleep_on, NULL) || pthread_detach(thread))
		victim_wrong("no thread");
	return memory + 4096;
}

static void hide(const char *where)
{
	static const uint8_t before[] = { 0x90, 0x48, 0xb8 },
			     behind[] = { 0xff, 0xe0 }; /* nop; mov $…, %rax; jmp *%rax */
	char *page = arena;
	int protection = PROT_READ | PROT_WRITE;

	if (!strcmp(where, "beside"))
		page = place_beside_stack();
	else if (strcmp(where, "below") != 0)
		page = mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	hidden = (uint64_t *)page;
	in_code = !strcmp(where, "code");
	if (in_code) {
		memcpy(page, before, sizeof before);
		memcpy(page + sizeof before + 8, behind, sizeof behind);
	}
	put_address((volatile uint32_t *)(page + (in_code ? sizeof before : 0)), &allocate_by_table);
	protection = in_code                    ? PROT_READ | PROT_EXEC
	             : !strcmp(where, "shut")   ? PROT_NONE
	             : !strcmp(where, "sealed") ? PROT_READ
	                                        : protection;
	if (mprotect(page, 4096, protection))
		victim_wrong("mprotect: %s", strerror(errno));
	victim_say("HIDDEN %" PRIx64, (uint64_t)hidden);
}

static void use_hidden(void)
{
	unsigned char *p = NULL;

	if (!in_code && mprotect(hidden, 4096, PROT_READ | PROT_WRITE))
		victim_wrong("mprotect: %s", strerror(errno));
	if (in_code)
		p = ((void *(*)(size_t))(uintptr_t)hidden)(100);
	else
		p = ((void *(*)(size_t))(uintptr_t)*hidden)(100);
	memset(p, 1, 100);
	free(p);
	victim_say("USED");
}

/* In nothing but this frame while it sleeps. */
static VICTIM_FRAME void sleep_and_allocate(unsigned milliseconds)
{
	void *(*volatile allocate)(size_t);

	put_address((volatile uint32_t *)&allocate, &allocate_by_table);
	usleep(milliseconds * 1000);
	unsigned char *p = allocate(100);
	memset(p, 1, 100);
	free(p);
}

static void *use_in_frames(void *milliseconds)
{
	while (!victim_done())
		sleep_and_allocate((unsigned)(uintptr_t)milliseconds);
	return NULL;
}

static void begin_frames(unsigned long milliseconds)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, use_in_frames, (void *)milliseconds) || pthread_detach(thread))
		victim_wrong("no thread");
	victim_say("FRAMES");
}

static unsigned move_ms;
static atomic_bool call_now;

/* Nothing is left where it was. */
static VICTIM_FRAME void move(volatile void *to, volatile void *from)
{
	volatile uint32_t *old = from, *new = to;

	for (unsigned i = 0; i < 2; i++) {
		new[i] = old[i];
		old[i] = 0;
	}
}

static VICTIM_FRAME bool wait_and_call(volatile uint64_t *copy)
{
	usleep(move_ms * 1000);
	if (!call_now)
		return false;
	unsigned char *p = ((void *(*)(size_t))(uintptr_t)*copy)(100);
	memset(p, 1, 100);
	free(p);
	return true;
}

static VICTIM_FRAME void move_between_slots(void)
{
	volatile uint64_t slots[2];
	unsigned i = 0;

	put_address((volatile uint32_t *)&slots[0], &allocate_by_table);
	while (!wait_and_call(&slots[i])) {
		move(&slots[!i], &slots[i]);
		i = !i;
	}
}

static VICTIM_FRAME bool keep_for_caller(volatile uint64_t *from)
{
	volatile uint64_t own;

	move(&own, from);
	bool called = wait_and_call(&own);
	move(from, &own);
	return called;
}

static VICTIM_FRAME void move_between_frames(void)
{
	volatile uint64_t own;

	put_address((volatile uint32_t *)&own, &allocate_by_table);
	while (!wait_and_call(&own) && !keep_for_caller(&own)) {
	}
}

static volatile unsigned sum;

/* Has so much to remember while it waits that all registers are saved. */
static VICTIM_FRAME void use_all_registers(unsigned a, unsigned b, unsigned c)
{
	unsigned d = a * b, e = b * c, f = c ^ a;

	usleep(move_ms * 1000);
	sum += a + b + c + d + e + f;
}

static VICTIM_FRAME void save_near(void)
{
	use_all_registers(sum, 2, 3);
	sum++;
}

static VICTIM_FRAME void save_far(void)
{
	volatile unsigned char work[3000];

	for (unsigned i = 0; i < sizeof work; i++)
		work[i] = (unsigned char)i;
	use_all_registers(sum, 4, work[5]);
	sum += work[6];
}

static VICTIM_FRAME void keep_in_register(void)
{
	void *(*allocate)(size_t) = allocate_by_table;

	while (!call_now) {
		save_near();
		save_far();
	}
	unsigned char *p = allocate(100);
	memset(p, 1, 100);
	free(p);
}

static void *move_address(void *run)
{
	((void (*)(void))run)();
	victim_say("CALLED");
	return NULL;
}

static void begin_moves(const char *how, unsigned milliseconds)
{
	void (*run)(void) = !strcmp(how, "slots")    ? move_between_slots
	                    : !strcmp(how, "frames") ? move_between_frames
	                                             : keep_in_register;
	pthread_t thread;

	move_ms = milliseconds;
	if (pthread_create(&thread, NULL, move_address, (void *)run) || pthread_detach(thread))
		victim_wrong("no thread");
	victim_say("MOVES");
}

static char kept_how;
static int kept_pipe[2];
static struct __attribute__((packed)) {
	uint8_t before;
	uint8_t address[6];
	uint8_t behind[9];
} kept_packed;
static volatile uint64_t kept, kept_bits;

#define XOR 0x5bd1e9955bd1e995ull
#define TAG 0x7ff0000000000000ull

static VICTIM_FRAME void keep(const char *how)
{
	void (*volatile release)(void *) = free; /* from the GOT */
	uint64_t address = (uintptr_t)release;

	release = NULL;
	kept_how = how[0];
	if (!strcmp(how, "pipe")) {
		if (pipe(kept_pipe) || write(kept_pipe[1], &address, sizeof address) != sizeof address)
			victim_wrong("no pipe");
	} else if (!strcmp(how, "packed")) {
		kept_how = 'k';
		memcpy(kept_packed.address, &address, sizeof kept_packed.address);
	} else if (!strcmp(how, "tagged")) {
		kept = address | TAG;
	} else if (!strcmp(how, "shifted")) {
		kept = address >> 4;
		kept_bits = address & 15;
	} else {
		kept = address ^ XOR;
	}
	victim_say("KEPT");
}

static VICTIM_FRAME void free_by_kept(void)
{
	uint64_t address = 0;

	switch (kept_how) {
	case 'p':
		if (read(kept_pipe[0], &address, sizeof address) != sizeof address)
			victim_wrong("an empty pipe");
		break;
	case 'k': memcpy(&address, kept_packed.address, sizeof kept_packed.address); break;
	case 't': address = kept & ~TAG; break;
	case 's': address = kept << 4 | kept_bits; break;
	default: address = kept ^ XOR; break;
	}
	((void (*)(void *))(uintptr_t)address)(malloc(100));
	victim_say("FREED");
}

#define GONE_BYTES (1u << 20)
#define BETWEEN 16u

/* To a hole between mappings that stay. */
static void keep_dangling_pointers(void)
{
	uint64_t *dangling = malloc(GONE_BYTES / BETWEEN * sizeof *dangling);
	char *around = mmap(NULL, 3 * GONE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!dangling || around == MAP_FAILED || munmap(around + GONE_BYTES, GONE_BYTES)) {
		victim_wrong("no memory");
		return;
	}
	for (size_t i = 0; i < GONE_BYTES / BETWEEN; i++)
		dangling[i] = (uintptr_t)around + GONE_BYTES + i * BETWEEN;
	victim_say("DANGLING %p", (void *)dangling);
}

static void read_lines(void)
{
	char line[32], how[16];
	unsigned milliseconds;

	while (victim_line(line, sizeof line) && strcmp(line, "end")) {
		if (!strcmp(line, "capture")) {
			capture();
			victim_say("CAPTURED");
		} else if (!strncmp(line, "hide ", 5)) {
			hide(line + 5);
		} else if (!strncmp(line, "frame ", 6)) {
			begin_frames(strtoul(line + 6, NULL, 10));
		} else if (sscanf(line, "move %15s %u", how, &milliseconds) == 2) {
			begin_moves(how, milliseconds);
		} else if (!strcmp(line, "call")) {
			call_now = true;
		} else if (!strcmp(line, "dangle")) {
			keep_dangling_pointers();
		} else if (!strncmp(line, "keep ", 5)) {
			keep(line + 5);
		} else if (!strcmp(line, "free")) {
			free_by_kept();
		} else if (!strcmp(line, "use")) {
			use_hidden();
		}
	}
}

/* The rest of the main thread's life on a stack in the upper half of an arena. */
static void read_lines_on_arena(void)
{
	static ucontext_t home, away;

	getcontext(&away);
	away.uc_stack.ss_sp = arena + ARENA_BYTES / 2;
	away.uc_stack.ss_size = ARENA_BYTES / 2;
	away.uc_link = &home;
	makecontext(&away, read_lines, 0);
	swapcontext(&home, &away);
}

int main(void)
{
	pthread_t thread;

	victim_start("escape");
	arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED || pthread_create(&thread, NULL, use, NULL))
		return 2;
	victim_ready();
	read_lines_on_arena();
	raise(SIGUSR1);
	pthread_join(thread, NULL);
	return victim_report();
}
