/* SPDX-License-Identifier: MIT */
/*
 * A program that knows memattach, and what memattach writes into it, and is out to harm it. One mode each:
 *
 *     stub TID       a copy of memattach's stub is in its padding, and says that thread TID of somebody else runs it;
 *                    0: a thread of its own
 *     stub_again     the same with no such thread, written again whenever it is cleared
 *     grab           keeps every descriptor that it has while dlopen runs; at the line "try" it tries what they allow:
 *                    ALLOWED name action, DONE
 *     slow           says OPENING when dlopen is called, which then takes two seconds; once
 *     pair           a thread puts a socket that leads to another process in the place of the one that the borrowed
 *                    thread has made
 *     flood          a thread speaks to memattach through the borrowed thread's channel, and listens, as fast as it can
 *     scribble SEED  a thread writes random words over all that memattach has written, from the first byte of the stub
 *                    on
 *     slots          at the line "fill" the list of patched GOT entries becomes as long as it can be, and names words
 *                    with addresses of its own code
 *     block          at the line "fill" the session block is overwritten
 *     lost           from the line "lose" on its only thread is nowhere where it could be borrowed: its stack pointer
 *                    leads to nothing
 *     fault_sleep    its threads sleep with a stack pointer into memory under userfaultfd, which nobody resolves
 *     fault_spin     the same, but they do not sleep
 */
#include "victim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "arch/stub.h"
#include "control.h"

#define PAGE 4096ul
#define CAVES_MAX 16
#define GRABBED_FROM 200
#define GRABBED_MAX 32

static uint64_t random_state = 88172645463325252ull;

/* ---- where memattach writes ---- */

static uintptr_t caves[CAVES_MAX]; /* after the code of each module, on its last page */
static unsigned cave_count;

static int note_cave(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size, (void)unused;
	if (strstr(info->dlpi_name, "vdso"))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum && cave_count < CAVES_MAX; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t end = (info->dlpi_addr + p->p_vaddr + p->p_memsz + 15) & ~(uintptr_t)15;
		size_t bytes = (size_t)(stub_code_end - stub_code) + sizeof(struct stub_data);
		if (p->p_type == PT_LOAD && p->p_flags & PF_X && end % PAGE && end % PAGE + bytes <= PAGE)
			caves[cave_count++] = end;
	}
	return 0;
}

static const struct stub_data *data_in(uintptr_t cave)
{
	return (const struct stub_data *)(cave + (uintptr_t)(stub_code_end - stub_code));
}

/* Of the stub that is in one of the caves with a work area; NULL: none now. */
static const struct stub_data *stub_now(void)
{
	for (unsigned i = 0; i < cave_count; i++) {
		const volatile struct stub_data *data = data_in(caves[i]);
		if (data->magic == STUB_MAGIC && data->area)
			return data_in(caves[i]);
	}
	return NULL;
}

/* Memory that may be unmapped at any moment. */
static bool peek(uint64_t address, void *to, size_t bytes)
{
	struct iovec local = { to, bytes }, remote = { (void *)address, bytes };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

static bool poke(uint64_t address, const void *from, size_t bytes)
{
	struct iovec local = { (void *)(uintptr_t)from, bytes }, remote = { (void *)address, bytes };

	return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

/* ---- stub ---- */

static void write_stub(uintptr_t cave, uint64_t tid)
{
	/* An area that holds every stack pointer. */
	const struct stub_data data = { .magic = STUB_MAGIC, .tid = tid, .area_bytes = UINT64_MAX };
	void *page = (void *)(cave & ~(PAGE - 1));

	mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy((void *)cave, stub_code, (size_t)(stub_code_end - stub_code));
	memcpy((void *)(uintptr_t)data_in(cave), &data, sizeof data);
	mprotect(page, PAGE, PROT_READ | PROT_EXEC);
}

static void *write_again(void *unused)
{
	(void)unused;
	while (!victim_done()) {
		for (unsigned i = 0; i < cave_count; i++)
			if (data_in(caves[i])->magic != STUB_MAGIC)
				write_stub(caves[i], 1);
	}
	return NULL;
}

/* ---- grab ---- */

static unsigned char dlopen_was[12];
static int grabbed[GRABBED_MAX];
static atomic_uint grabbed_count;

static void put_code(void *function, const void *code, size_t bytes)
{
	void *page = (void *)((uintptr_t)function & ~(PAGE - 1));

	mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(function, code, bytes);
	mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC);
}

static void *grab_and_open(const char *name, int flags)
{
	for (int fd = 3; fd < GRABBED_FROM && grabbed_count < GRABBED_MAX; fd++) {
		int copy = fcntl(fd, F_DUPFD, GRABBED_FROM);
		if (copy >= 0)
			grabbed[grabbed_count++] = copy;
	}
	put_code((void *)dlopen, dlopen_was, sizeof dlopen_was);
	return dlopen(name, flags);
}

static void *open_slowly(const char *name, int flags)
{
	struct timespec rest = { .tv_sec = 2 };

	put_code((void *)dlopen, dlopen_was, sizeof dlopen_was);
	victim_say("OPENING");
	while (nanosleep(&rest, &rest) < 0)
		;
	return dlopen(name, flags);
}

static void take_dlopen(void *(*to)(const char *, int))
{
	unsigned char jump[12] = { 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0 }; /* mov $…, %rax; jmp *%rax */

	memcpy(dlopen_was, (void *)dlopen, sizeof dlopen_was);
	memcpy(jump + 2, &to, sizeof to);
	put_code((void *)dlopen, jump, sizeof jump);
}

static void allowed(const char *name, const char *way, const char *action, bool success)
{
	if (success)
		victim_say("ALLOWED %s %s %s", name, way, action);
}

/* Cutting the file comes last. */
static void try_descriptor(const char *name, const char *way, int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return;
	allowed(name, way, "pwrite", pwrite(fd, "x", 1, 64) == 1);
	allowed(name, way, "pwrite behind the end", pwrite(fd, "x", 1, st.st_size + 4096) == 1);
	allowed(name, way, "fallocate", fallocate(fd, 0, 0, st.st_size + 4096) == 0);
	allowed(name, way, "punch a hole", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0);
	allowed(name, way, "map writable", mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
	void *readable = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	allowed(name, way, "mprotect", readable != MAP_FAILED && mprotect(readable, PAGE, PROT_READ | PROT_WRITE) == 0);
	allowed(name, way, "remove", readable != MAP_FAILED && madvise(readable, PAGE, MADV_REMOVE) == 0);
	allowed(name, way, "ftruncate longer", ftruncate(fd, st.st_size + 4096) == 0);
	allowed(name, way, "ftruncate", ftruncate(fd, 0) == 0);
}

static void try_all(void)
{
	for (unsigned i = 0; i < grabbed_count; i++) {
		char path[64], name[256];
		snprintf(path, sizeof path, "/proc/self/fd/%d", grabbed[i]);
		ssize_t n = readlink(path, name, sizeof name - 1);
		if (n <= 0 || strchr("psa", name[0])) /* pipes, sockets, anon_inode */
			continue;
		name[n] = '\0';
		name[strcspn(name, " ")] = '\0';
		victim_say("KEPT %s", name);
		try_descriptor(name, "kept", grabbed[i]);
		try_descriptor(name, "opened", open(path, O_RDWR | O_CLOEXEC));
	}
	victim_say("DONE");
}

static void run_grab(void)
{
	char line[64];

	while (victim_line(line, sizeof line)) {
		if (!strcmp(line, "try"))
			try_all();
		victim_round();
	}
}

/* ---- pair ---- */

static int foreign = -1; /* leads to the service */

static void serve(int ready)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "memattach-hostile-%d", getppid());
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(listener, (const struct sockaddr *)&name, sizeof name) || listen(listener, 1) ||
	    write(ready, "r", 1) != 1)
		_exit(2);
	int client = accept(listener, NULL, NULL);
	if (recv(client, &byte, 1, 0) > 0)
		victim_wrong("memattach has spoken to another process");
	_exit(0);
}

static void start_service(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int ready[2];
	char byte;

	if (pipe(ready))
		exit(2);
	if (fork() == 0)
		serve(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		exit(2);
	snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "memattach-hostile-%d", getpid());
	foreign = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connect(foreign, (const struct sockaddr *)&name, sizeof name))
		exit(2);
}

/* Where send_descriptors.c lays out its message, which begins with the pair: 8 bytes, msghdr, iovec, 8 bytes, control
 * data. */
#define PAIR_AT                                                                                                        \
	(SA_DATA + SA_DATA_BYTES - (8 + sizeof(struct msghdr) + sizeof(struct iovec) + 8 + CMSG_SPACE(4 * sizeof(int))))

/* Once for each area, by a copy: the stub closes what is there. */
static void *replace_pair(void *unused)
{
	uint64_t done = 0;
	int32_t pair[2];

	(void)unused;
	while (!victim_done()) {
		const struct stub_data *data = stub_now();
		uint64_t area = data ? data->area : done;
		if (area == done || !peek(area + PAIR_AT, pair, sizeof pair) || pair[0] <= 2 || pair[1] <= pair[0])
			continue;
		pair[1] = dup(foreign);
		poke(area + PAIR_AT, pair, sizeof pair);
		done = area;
	}
	return NULL;
}

/* ---- flood ---- */

static void *flood(void *unused)
{
	unsigned sent = 0;

	(void)unused;
	while (!victim_done()) {
		const struct stub_data *data = stub_now();
		uint64_t channel = 0;
		unsigned char byte = STUB_CHECKPOINT_CALLS & 0xff, answer;
		if (!data || !peek(data->area + SA_CHANNEL, &channel, sizeof channel) || channel < 4 || channel > 1024)
			continue;
		/* The thread may have nothing of it: then it waits for ever, and all that memattach hears is this. */
		do
			sent += send((int)channel - 1, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
		while ((recv((int)channel - 1, &answer, 1, MSG_DONTWAIT) == 1 || errno == EAGAIN) && !victim_done());
	}
	victim_say("SENT %u", sent);
	return NULL;
}

/* ---- scribble ---- */

static uint64_t random_word(void)
{
	uint64_t word = victim_random(&random_state);

	switch (victim_random(&random_state) % 5) {
	case 0: return word & 0xff;
	case 1: return word & 0xffff;
	case 2: return UINT64_MAX - (word & 0xffff);
	case 3: return (uint64_t)(uintptr_t)&random_state + (word & 0xffff);
	default: return word;
	}
}

static void scribble_at(uint64_t address, size_t bytes)
{
	uint64_t word = random_word();

	poke(address + (victim_random(&random_state) % (bytes / 4)) * 4, &word,
	     victim_random(&random_state) % 2 ? 8 : 4);
}

/* The session block of the payload; 0: it is not there. */
static uint64_t find_session(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uint64_t start, end, found = 0, magic;
	char line[512], rights[8];

	while (f && !found && fgets(line, sizeof line, f)) {
		if (!strstr(line, "memfd:memattach-payload") ||
		    sscanf(line, "%lx-%lx %7s", &start, &end, rights) != 3 || rights[1] != 'w')
			continue;
		for (uint64_t at = start; at < end && !found; at += 8)
			if (peek(at, &magic, sizeof magic) && magic == CONTROL_MAGIC)
				found = at;
	}
	if (f)
		fclose(f);
	return found;
}

static void *scribble(void *argument)
{
	const unsigned where = *(const unsigned *)argument % 5;
	uint64_t session = 0;
	struct memattach_session block;

	for (unsigned i = 0; !victim_done(); i++) {
		const struct stub_data *data = stub_now();
		if (where == 0 && data)
			scribble_at((uint64_t)(uintptr_t)data, sizeof *data);
		if (where == 1 && data)
			scribble_at(data->area, sizeof(struct stub_area));
		if (where == 2 && data)
			scribble_at(data->area + SA_DATA, SA_DATA_BYTES);
		if (where < 3)
			continue;
		if (!session || i % 1024 == 0)
			session = find_session();
		if (!session || !peek(session, &block, sizeof block))
			usleep(200);
		else if (where == 3)
			scribble_at(session, sizeof block);
		else if (block.entries_address && block.entry_count)
			scribble_at(block.entries_address,
			            (block.entry_count % SESSION_ENTRY_MAX + 1) * sizeof(struct got_entry));
		usleep(victim_random(&random_state) % 300);
	}
	return NULL;
}

/* ---- GOT entries, block ---- */

static uint64_t decoys[SESSION_ENTRY_MAX];

static void fill_entries(uint64_t session)
{
	static struct got_entry entries[SESSION_ENTRY_MAX];
	const uint32_t count = SESSION_ENTRY_MAX;
	struct memattach_session block;

	if (!session || !peek(session, &block, sizeof block))
		return;
	for (uint32_t i = 0; i < count; i++) {
		decoys[i] = (uint64_t)(uintptr_t)fill_entries;
		entries[i] = (struct got_entry){ .address = (uint64_t)(uintptr_t)&decoys[i],
			                         .old_value = 1,
			                         .trampoline = i,
			                         .state = GOT_PATCHED };
	}
	if (poke(block.entries_address, entries, sizeof entries) &&
	    poke(session + offsetof(struct memattach_session, entry_count), &count, sizeof count))
		victim_say("FILLED");
}

static void fill_block(uint64_t session)
{
	struct memattach_session block;

	memset(&block, 0x5a, sizeof block);
	if (session && poke(session, &block, sizeof block))
		victim_say("FILLED");
}

static void run_fill(void (*fill)(uint64_t session))
{
	char line[64];

	while (victim_line(line, sizeof line)) {
		if (!strcmp(line, "fill"))
			fill(find_session());
		victim_round();
	}
}

/* ---- fault ---- */

static unsigned char alternate_stack[2][65536];
static volatile uint64_t turns[2];

static void report_and_exit(int signal)
{
	(void)signal;
	if (turns[0] && turns[1])
		victim_round();
	_exit(victim_report());
}

/* With %rsp in memory that cannot be read, in a system call or not, for ever. */
static void run_on(uint64_t stack, bool sleeps, volatile uint64_t *turn)
{
	static const struct timespec nap = { .tv_nsec = 1000000 };

	if (sleeps)
		__asm__ volatile("mov %0, %%rsp\n1: mov %1, %%eax\n mov %2, %%rdi\n xor %%esi, %%esi\n syscall\n incq "
		                 "(%3)\n jmp 1b" ::"r"(stack),
		                 "i"(SYS_nanosleep), "r"(&nap), "r"(turn)
		                 : "memory", "rax", "rcx", "rdi", "rsi", "r11");
	else
		__asm__ volatile("mov %0, %%rsp\n1: incq (%1)\n jmp 1b" ::"r"(stack), "r"(turn) : "memory");
	__builtin_unreachable();
}

struct runner {
	uint64_t stack;
	bool sleeps;
	unsigned number;
};

static void *run_on_fault(void *argument)
{
	struct runner *r = argument;
	const stack_t stack = { .ss_sp = alternate_stack[r->number], .ss_size = sizeof alternate_stack[0] };

	sigaltstack(&stack, NULL);
	run_on(r->stack, r->sleeps, &turns[r->number]);
	return NULL;
}

static void report_from_alternate_stack(void)
{
	const struct sigaction action = { .sa_handler = report_and_exit, .sa_flags = SA_ONSTACK };

	sigaction(SIGUSR1, &action, NULL);
}

static void run_lost(void)
{
	static struct runner runner = { .stack = PAGE, .sleeps = true };
	char line[64];

	if (!victim_line(line, sizeof line) || strcmp(line, "lose") != 0)
		return;
	turns[1] = 1; /* there is one runner only */
	report_from_alternate_stack();
	victim_say("LOST");
	run_on_fault(&runner);
}

static void start_fault(bool sleeps)
{
	static struct runner runners[2];
	struct uffdio_api api = { .api = UFFD_API };
	pthread_t thread;

	/* Without UFFD_USER_MODE_ONLY: also accesses of the kernel wait, which memattach's are. */
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	char *area = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = { .range = { (uintptr_t)area, 64 * PAGE },
		                         .mode = UFFDIO_REGISTER_MODE_MISSING };
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range)) {
		victim_say("CANNOT userfaultfd: %s", strerror(errno));
		victim_ready();
		exit(77);
	}
	report_from_alternate_stack();
	for (unsigned i = 0; i < 2; i++)
		runners[i] = (struct runner){ (uintptr_t)area + (i * 32 + 8) * PAGE, sleeps, i };
	if (pthread_create(&thread, NULL, run_on_fault, &runners[1]))
		exit(2);
	victim_ready();
	run_on_fault(&runners[0]);
}

/* ---- */

static void calm(void)
{
	while (!victim_done()) {
		victim_block(&random_state);
		victim_round();
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	unsigned number = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	void *(*beside)(void *) = NULL;
	pthread_t thread;

	victim_start("hostile");
	dl_iterate_phdr(note_cave, NULL);
	random_state += number;
	if (!strcmp(mode, "stub")) {
		for (unsigned i = 0; i < cave_count; i++)
			write_stub(caves[i], number ? number : (uint64_t)getpid());
	} else if (!strcmp(mode, "stub_again")) {
		beside = write_again;
	} else if (!strcmp(mode, "grab")) {
		take_dlopen(grab_and_open);
	} else if (!strcmp(mode, "slow")) {
		take_dlopen(open_slowly);
	} else if (!strcmp(mode, "pair")) {
		start_service();
		beside = replace_pair;
	} else if (!strcmp(mode, "flood")) {
		beside = flood;
	} else if (!strcmp(mode, "scribble")) {
		beside = scribble;
	} else if (!strncmp(mode, "fault", 5)) {
		start_fault(!strcmp(mode, "fault_sleep"));
	}
	if (beside && pthread_create(&thread, NULL, beside, &number))
		return 2;
	victim_ready();
	if (!strcmp(mode, "grab"))
		run_grab();
	else if (!strcmp(mode, "slots"))
		run_fill(fill_entries);
	else if (!strcmp(mode, "block"))
		run_fill(fill_block);
	else if (!strcmp(mode, "lost"))
		run_lost();
	else
		calm();
	if (beside)
		pthread_join(thread, NULL);
	return victim_report();
}
