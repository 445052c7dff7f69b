/* SPDX-License-Identifier: MIT */
/*
 * The contract of include/control.h on the shared object as it is shipped: load it as memattach does, hook this
 * program's own GOT entries, record, restore, unload, and read what the dump says. This program is linked with RELRO,
 * so its GOT entries are read-only.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "hooks.h"

#define MODULE_ID 7

/* Where this program's calls of a function go through (it is compiled with -fno-plt). */
#define ENTRY_OF(function)                                                                                             \
	({                                                                                                             \
		uint64_t entry_;                                                                                       \
		__asm__("lea " #function "@GOTPCREL(%%rip), %0" : "=r"(entry_));                                       \
		entry_;                                                                                                \
	})

struct loaded {
	void *handle;
	struct memattach_session *session;
	int64_t (*control)(uint64_t op, void *argument);
	struct fixture f;
	struct got_entry entries[8];
	uint32_t entry_count;
};

static void payload_load(struct loaded *p, uint64_t rate)
{
	memset(p, 0, sizeof(*p));
	fixture_open(&p->f, rate, PAYLOAD_PATH);
	p->handle = dlopen(PAYLOAD_PATH, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(p->handle);
	p->session = dlsym(p->handle, "memattach_session");
	*(void **)&p->control = dlsym(p->handle, "memattach_control");
	assert_int_equal(p->session->magic, CONTROL_MAGIC);
	assert_int_equal(p->session->state, SESSION_LOADED);
}

/* As memattach does: what is read-only stays so. */
static void word_write(uint64_t address, uint64_t value)
{
	int fd = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, &value, sizeof(value), (off_t)address), sizeof(value));
	close(fd);
}

static void entry_add(struct loaded *p, uint64_t address, uint32_t trampoline)
{
	p->entries[p->entry_count++] = (struct got_entry){
		.address = address,
		.old_value = *(uint64_t *)address,
		.trampoline = trampoline,
	};
}

static void payload_hook(struct loaded *p)
{
	struct control_trampoline trampolines[] = {
		{ .original = (uint64_t)malloc, .hook = HOOK_malloc },
		{ .original = (uint64_t)free, .hook = HOOK_free },
		{ .original = (uint64_t)realloc, .hook = HOOK_realloc },
		{ .original = (uint64_t)calloc, .hook = HOOK_calloc },
		{ .original = (uint64_t)posix_memalign, .hook = HOOK_posix_memalign },
	};
	struct control_patch patch = { .trampoline_count = 5, .trampolines = (uint64_t)trampolines };

	entry_add(p, ENTRY_OF(malloc), 0);
	entry_add(p, ENTRY_OF(free), 1);
	entry_add(p, ENTRY_OF(realloc), 2);
	entry_add(p, ENTRY_OF(calloc), 3);
	entry_add(p, ENTRY_OF(posix_memalign), 4);
	fixture_regions(&p->f);
	fixture_index_self(&p->f, MODULE_ID);
	assert_int_equal(p->control(CONTROL_START, &p->f.start), 0);
	assert_int_equal(p->session->state, SESSION_STARTED);
	assert_int_equal(p->control(CONTROL_PATCH, &patch), 0);
	for (uint32_t i = 0; i < p->entry_count; i++) {
		const uint32_t number = p->entries[i].trampoline;

		word_write(p->entries[i].address,
		           trampoline_address(p->session->trampolines_address, number, trampolines[number].hook));
	}
}

/* The trampolines stay. */
static void payload_silence(struct loaded *p)
{
	uint64_t trampolines;

	for (uint32_t i = 0; i < p->entry_count; i++)
		word_write(p->entries[i].address, p->entries[i].old_value);
	fixture_inert(p->session);
	trampolines = p->session->trampolines_address;
	for (uint32_t i = 0; i < p->session->trampoline_count; i++) {
		const struct trampoline *trampoline = (const struct trampoline *)trampoline_data(trampolines, i);

		assert_int_equal(trampoline->next, trampoline->original);
	}
	assert_int_equal(p->control(CONTROL_STOP, NULL), 0);
	assert_int_equal(p->session->state, SESSION_STOPPED);
}

static void payload_unhook(struct loaded *p)
{
	payload_silence(p);
	assert_int_equal(munmap((void *)p->session->trampolines_address, p->session->trampolines_bytes), 0);
}

static void payload_close(struct loaded *p)
{
	assert_int_equal(dlclose(p->handle), 0);
	assert_null(dlopen(PAYLOAD_PATH, RTLD_NOW | RTLD_NOLOAD));
}

static void payload_unload(struct loaded *p)
{
	payload_close(p);
	fixture_close(&p->f);
}

static __attribute__((noinline)) void *allocate_here(size_t bytes)
{
	void *volatile p = malloc(bytes);

	return p;
}

/* Every allocation is recorded to the byte, every free moves it to the history. */
static void test_contract_exact(void **state)
{
	struct dump_live_record record;
	struct dump_history_record past;
	const struct dump_stack *stack;
	struct loaded p;
	void *a, *b, *c, *aligned = NULL;
	bool seen[4];

	(void)state;
	payload_load(&p, 1);
	payload_hook(&p);
	a = allocate_here(100);
	b = calloc(3, 50);
	c = realloc(NULL, 0);
	assert_int_equal(posix_memalign(&aligned, 64, 1000), 0);
	seen[0] = fixture_live(&p.f, a, &record);
	fixture_live(&p.f, b, &record);
	assert_int_equal(record.size, 150);
	assert_int_equal(record.hook, HOOK_calloc);
	fixture_live(&p.f, aligned, &record);
	assert_int_equal(record.size, 1000);
	seen[1] = fixture_live(&p.f, c, &record);
	assert_int_equal(record.size, 0);
	fixture_live(&p.f, a, &record);
	stack = fixture_stack(&p.f, record.stack);
	assert_int_equal(record.size, 100);
	assert_int_equal(record.rate_bytes, 1);
	assert_true(stack->frame_count >= 2);
	assert_int_equal(DUMP_FRAME_MODULE(stack->frames[0]), MODULE_ID);
	assert_true(DUMP_FRAME_ADDRESS(stack->frames[0]) - (uint64_t)allocate_here < 64);
	assert_true(DUMP_FRAME_ADDRESS(stack->frames[1]) - (uint64_t)test_contract_exact < 4096);
	assert_true(stack->taken_bytes == 100 && stack->taken_count == 1 && stack->excess_bytes == 0 &&
	            stack->variance_bytes == 0);
	free(a);
	seen[2] = fixture_live(&p.f, a, &record);
	b = realloc(b, 200000);
	seen[3] = fixture_live(&p.f, b, &record);
	assert_int_equal(record.size, 200000);
	free(b);
	free(c);
	free(aligned);
	free(NULL);
	payload_unhook(&p);

	assert_true(seen[0] && seen[1] && !seen[2] && seen[3]);
	assert_int_equal(fixture_live_count(&p.f), 0);
	assert_int_equal(fixture_history_count(&p.f), 5);
	assert_true(fixture_history(&p.f, 0, &past));
	assert_int_equal(past.size, 100);
	assert_true(past.freed_stamp >= past.allocated_stamp);
	assert_int_equal(fixture_counter(&p.f, DUMP_COUNTER_samples_taken), 5);
	assert_int_equal(fixture_counter(&p.f, DUMP_COUNTER_samples_freed), 5);
	assert_int_equal(fixture_counter(&p.f, DUMP_COUNTER_lost_busy), 0);
	payload_unload(&p);
}

/* errno is the allocator's; a failed call records nothing and leaves the old block recorded. */
static void test_contract_failed_calls(void **state)
{
	struct dump_live_record record;
	struct loaded p;
	volatile size_t huge = PTRDIFF_MAX;
	void *a, *b;
	int first, second;

	(void)state;
	payload_load(&p, 1);
	payload_hook(&p);
	a = malloc(100);
	errno = 0;
	b = realloc(a, huge);
	first = errno;
	assert_null(b);
	errno = 0;
	b = calloc(huge, 16);
	second = errno;
	assert_null(b);
	assert_true(fixture_live(&p.f, a, &record));
	b = realloc(a, 0); /* glibc frees */
	payload_unhook(&p);
	assert_null(b);
	assert_int_equal(first, ENOMEM);
	assert_int_equal(second, ENOMEM);
	assert_int_equal(fixture_live_count(&p.f), 0);
	assert_int_equal(fixture_counter(&p.f, DUMP_COUNTER_samples_taken), 1);
	payload_unload(&p);
}

/* A payload that stays (musl) serves session after session. */
static void test_contract_again(void **state)
{
	struct dump_live_record record;
	struct loaded p;

	(void)state;
	payload_load(&p, 1);
	for (int i = 0; i < 3; i++) {
		void *a;

		payload_hook(&p);
		a = malloc(10);
		assert_true(fixture_live(&p.f, a, &record));
		assert_int_equal(fixture_live_count(&p.f), 1);
		payload_unhook(&p);
		free(a);
		fixture_close(&p.f);
		fixture_open(&p.f, 1, PAYLOAD_PATH);
		p.entry_count = 0;
	}
	payload_unload(&p);
}

/* A forked child allocates and frees as ever and leaves no trace in the parent's dump. */
static void test_contract_fork(void **state)
{
	uint64_t counters[DUMP_COUNTER_SHARDS][DUMP_COUNTER_ROW];
	struct loaded p;
	int status;
	void *a;
	pid_t child;

	(void)state;
	payload_load(&p, 1);
	payload_hook(&p);
	a = malloc(10);
	memcpy(counters, p.f.dump->counters, sizeof(counters));
	child = fork();
	if (child == 0) {
		bool wiped = *(const uint32_t *)p.session->switch_address == 0;

		free(a);
		for (int i = 0; i < 1000; i++)
			free(malloc(100));
		_exit(wiped ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_memory_equal(counters, p.f.dump->counters, sizeof(counters));
	free(a);
	payload_unhook(&p);
	assert_int_equal(fixture_live_count(&p.f), 0);
	payload_unload(&p);
}

struct churn {
	unsigned seed;
	uint64_t allocated;
	uint64_t kept;
	void *blocks[256];
};

static void *churn(void *argument)
{
	struct churn *c = argument;

	for (int i = 0; i < 200000; i++) {
		size_t bytes = rand_r(&c->seed) % 512;
		int k = rand_r(&c->seed) % 256;

		free(c->blocks[k]);
		c->blocks[k] = malloc(bytes);
		c->allocated += bytes;
		*(char *)c->blocks[k] = 1;
	}
	return NULL;
}

/* Threads that churn at a rate: nothing is lost, what is live is live, and the estimate of the bytes is near. */
static void test_contract_threads(void **state)
{
	struct churn churns[4] = { { .seed = 1 }, { .seed = 2 }, { .seed = 3 }, { .seed = 4 } };
	double estimate = 0, truth = 0;
	pthread_t threads[4];
	struct loaded p;
	uint64_t live, blocks = 0;

	(void)state;
	payload_load(&p, 4096);
	payload_hook(&p);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, &churns[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++) {
		truth += (double)churns[i].allocated;
		for (int k = 0; k < 256; k++) {
			struct dump_live_record record;

			blocks += fixture_live(&p.f, churns[i].blocks[k], &record);
		}
	}
	live = fixture_live_count(&p.f);
	for (uint32_t i = 0; i < p.f.dump->region_count; i++) {
		const struct dump_region *region = &p.f.dump->regions[i];
		uint64_t at = region->offset + sizeof(struct dump_arena);

		if (region->kind != DUMP_REGION_STACKS)
			continue;
		while (at < region->offset + sizeof(struct dump_arena) +
		                    ((struct dump_arena *)((uint8_t *)p.f.dump + region->offset))->used) {
			const struct dump_stack *stack = (const void *)((uint8_t *)p.f.dump + at);

			estimate += (double)stack->taken_bytes + stack->excess_bytes;
			at += DUMP_STACK_BYTES(stack->frame_count);
		}
	}
	payload_unhook(&p);
	assert_int_equal(live, blocks);
	assert_int_equal(fixture_counter(&p.f, DUMP_COUNTER_samples_taken),
	                 fixture_counter(&p.f, DUMP_COUNTER_samples_freed) + live);
	assert_int_equal(fixture_counter(&p.f, DUMP_COUNTER_frees_missed), 0);
	assert_int_equal(fixture_counter(&p.f, DUMP_COUNTER_lost_busy), 0);
	/* 50 000 samples: standard error 0.45 %; six of them */
	assert_true(estimate > truth * 0.973 && estimate < truth * 1.027);
	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < 256; k++)
			free(churns[i].blocks[k]);
	}
	payload_unload(&p);
}

/* START refuses what it cannot use and leaves nothing behind. */
static void test_contract_start_refuses(void **state)
{
	struct loaded p;
	struct control_start bad;

	(void)state;
	payload_load(&p, 1);
	bad = p.f.start;
	bad.rate_bytes = 0;
	assert_int_equal(p.control(CONTROL_START, &bad), -EINVAL);
	bad = p.f.start;
	bad.filter_log2 = 30;
	assert_int_equal(p.control(CONTROL_START, &bad), -EINVAL);
	bad = p.f.start;
	bad.dump_fd = -1;
	assert_int_equal(p.control(CONTROL_START, &bad), -EBADF);
	bad = p.f.start;
	bad.payload_fd = -1;
	assert_int_equal(p.control(CONTROL_START, &bad), -EBADF);
	p.f.dump->version = 99;
	assert_int_equal(p.control(CONTROL_START, &p.f.start), -EBADMSG);
	assert_int_equal(p.session->state, SESSION_LOADED);
	assert_int_equal(p.session->dump_address, 0);
	assert_int_equal(p.control(CONTROL_PATCH, NULL), -EBADFD);
	assert_int_equal(p.control(99, NULL), -ENOSYS);
	payload_unload(&p);
}

/* A signal that comes at one instruction of a trampoline, and whose handler lasts until the payload is gone. */
static struct {
	struct loaded *p;
	uint64_t trampolines;
	unsigned instruction; /* at which it happens */
	unsigned met;
	bool unloaded;
} trap;

#define TRAP_FLAG 0x100

static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	bool inside = (uint64_t)registers[REG_RIP] - trap.trampolines < TRAMPOLINES_CODE_BYTES;

	(void)number, (void)info;
	if (inside ? trap.met++ < trap.instruction : !trap.met)
		return; /* go on, or not there yet */
	registers[REG_EFL] &= ~TRAP_FLAG;
	if (!inside)
		return;
	payload_silence(trap.p);
	payload_close(trap.p);
	trap.unloaded = true;
}

/* trampoline(argument), step by step. */
static uint64_t call_in_steps(uint64_t trampoline, uint64_t argument)
{
	uint64_t result;

	__asm__ volatile("sub $128, %%rsp\n\t"
	                 "pushfq\n\t"
	                 "orq %2, (%%rsp)\n\t"
	                 "popfq\n\t"
	                 "call *%1\n\t"
	                 "add $128, %%rsp"
	                 : "=a"(result), "+r"(trampoline)
	                 : "i"(TRAP_FLAG), "D"(argument)
	                 : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2",
	                   "xmm3", "xmm4", "xmm5");
	return result;
}

/* Whether there was an instruction of that number on the way of a malloc, or of a free, through the trampoline. */
static bool unload_at_instruction(uint64_t rate, bool releases, unsigned instruction)
{
	struct loaded p;
	void *volatile block;
	uint64_t bytes;

	payload_load(&p, rate);
	payload_hook(&p);
	block = malloc(32); /* the near thread state is this thread's now */
	trap.p = &p;
	trap.trampolines = p.session->trampolines_address;
	trap.instruction = instruction;
	trap.met = 0;
	trap.unloaded = false;
	bytes = p.session->trampolines_bytes;
	if (releases)
		call_in_steps(trampoline_address(trap.trampolines, 1, HOOK_free), (uint64_t)block);
	else
		block = (void *)call_in_steps(trampoline_address(trap.trampolines, 0, HOOK_malloc), 48);
	if (!trap.unloaded) {
		payload_silence(&p);
		payload_close(&p);
	}
	if (!releases) {
		assert_non_null(block);
		memset(block, 1, 48);
		/* As a copied pointer would, when all is over. */
		((void (*)(void *))trampoline_address(trap.trampolines, 1, HOOK_free))(block);
	}
	fixture_close(&p.f);
	assert_int_equal(munmap((void *)trap.trampolines, bytes), 0);
	return trap.unloaded;
}

static void test_trampolines_go_on_without_the_payload(void **state)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO }, old;

	(void)state;
	assert_int_equal(sigaction(SIGTRAP, &action, &old), 0);
	for (int kind = 0; kind < 4; kind++) {
		unsigned count = 0;

		while (unload_at_instruction(kind & 1 ? 1 : 1 << 30, kind >> 1, count))
			count++;
		assert_in_range(count, 5, 12);
	}
	sigaction(SIGTRAP, &old, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contract_exact),
		cmocka_unit_test(test_contract_failed_calls),
		cmocka_unit_test(test_contract_again),
		cmocka_unit_test(test_contract_fork),
		cmocka_unit_test(test_contract_threads),
		cmocka_unit_test(test_contract_start_refuses),
		cmocka_unit_test(test_trampolines_go_on_without_the_payload),
	};

	return cmocka_run_group_tests_name("contract", tests, NULL, NULL);
}
