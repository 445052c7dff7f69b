/* SPDX-License-Identifier: MIT */
/*
 * How much stack the hooks of the shared object as it is shipped need, beside that of the original: the stack is
 * painted, and looked at after each call. man/memattach.1 (LIMITATIONS) says these numbers to users.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "fixture.h"
#include "hooks.h"
#include "python_inside.h"

#define FAST_BYTES 8 /* the return address of the call */
#define SAMPLED_BYTES 2560
#define PYTHON_BYTES 3328 /* in a thread of Python */
#define AROUND_BYTES 512  /* what is in use when the original begins */
#define PAINT 0xa5

static struct {
	struct fixture f;
	void *handle;
	struct memattach_session *session;
	int64_t (*control)(uint64_t op, void *argument);
	struct python_layout python; /* version 0: none */
} p;

/* An allocator that needs no stack, and says where that was. */
static _Alignas(64) char heap[1 << 20];
static size_t heap_used;
static uint64_t sp_of_original;

#define NOTE_STACK __asm__ volatile("mov %%rsp, %0" : "=m"(sp_of_original))

static void *original_malloc(size_t bytes)
{
	NOTE_STACK;
	heap_used += (bytes + 63) / 64 * 64;
	if (heap_used > sizeof(heap))
		heap_used = 64;
	return heap + heap_used - 64;
}

static void original_free(void *block)
{
	NOTE_STACK;
	(void)block;
}

static void *original_realloc(void *block, size_t bytes)
{
	NOTE_STACK;
	(void)bytes;
	return (char *)block + 64;
}

static int original_posix_memalign(void **block, size_t alignment, size_t bytes)
{
	NOTE_STACK;
	(void)bytes;
	*block = (char *)block + alignment;
	return 0;
}

static size_t original_usable(void *block)
{
	(void)block;
	return 64;
}

enum { MALLOC, FREE, REALLOC, POSIX_MEMALIGN, TRAMPOLINES };

static const struct control_trampoline trampolines[TRAMPOLINES] = {
	[MALLOC] = { .original = (uint64_t)original_malloc, .hook = HOOK_malloc },
	[FREE] = { .original = (uint64_t)original_free, .hook = HOOK_free },
	[REALLOC] = { .original = (uint64_t)original_realloc, .hook = HOOK_realloc },
	[POSIX_MEMALIGN] = { .original = (uint64_t)original_posix_memalign, .hook = HOOK_posix_memalign },
};

static void start(uint64_t rate)
{
	struct control_patch patch = { .trampoline_count = TRAMPOLINES, .trampolines = (uint64_t)trampolines };

	fixture_open(&p.f, rate, PAYLOAD_PATH);
	fixture_regions(&p.f);
	fixture_index_self(&p.f, 7);
	p.handle = dlopen(PAYLOAD_PATH, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(p.handle);
	p.session = dlsym(p.handle, "memattach_session");
	*(void **)&p.control = dlsym(p.handle, "memattach_control");
	p.f.start.usable_size = (uint64_t)original_usable;
	p.f.start.python = p.python;
	assert_int_equal(p.control(CONTROL_START, &p.f.start), 0);
	assert_int_equal(p.control(CONTROL_PATCH, &patch), 0);
}

static void stop(void)
{
	fixture_inert(p.session);
	assert_int_equal(p.control(CONTROL_STOP, NULL), 0);
	dlclose(p.handle);
	fixture_close(&p.f);
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The stack that is painted. */
static _Alignas(4096) unsigned char stack[65536];
static ucontext_t here, there;
static uint64_t used, around, result, depth; /* around: in use when the original begins */
static struct {
	uint64_t trampoline, a, b, c;
} call;

/* Calls the trampoline; what is below the stack pointer before has been painted. */
static __attribute__((noinline)) void measured_call(void)
{
	uint64_t sp;

	__asm__ volatile("mov %%rsp, %0" : "=r"(sp));
	sp -= 256; /* what this function itself might use */
	memset(stack, PAINT, sp - (uint64_t)stack);
	__asm__ volatile("mov %%rsp, %%rbx\n\t"
	                 "mov %2, %%rsp\n\t"
	                 "call *%1\n\t"
	                 "mov %%rbx, %%rsp"
	                 : "=a"(result)
	                 : "r"(call.trampoline), "r"(sp & ~15ull), "D"(call.a), "S"(call.b), "d"(call.c)
	                 : "rbx", "rcx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3",
	                   "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
	                   "xmm15");
	for (used = (sp & ~15ull) - (uint64_t)stack;
	     used > 0 && stack[((sp & ~15ull) - (uint64_t)stack) - used] == PAINT;)
		used--;
	around = most(around, (sp & ~15ull) - sp_of_original);
}

/* Frames above it, so that stacks differ. */
static __attribute__((noinline)) void deeper(uint64_t n)
{
	if (n)
		deeper(n - 1);
	else
		measured_call();
	__asm__ volatile("" : : : "memory");
}

static void on_stack(void)
{
	deeper(depth);
}

/* Bytes of stack that the call took. */
static uint64_t stack_use(uint32_t trampoline, uint64_t a, uint64_t b, uint64_t c)
{
	call.trampoline = trampoline_address(p.session->trampolines_address, trampoline, trampolines[trampoline].hook);
	call.a = a, call.b = b, call.c = c;
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	makecontext(&there, on_stack, 0);
	swapcontext(&here, &there);
	return used;
}

/* The largest of many calls of all functions, on stacks that are new and old. */
static uint64_t stack_use_of_all(uint64_t rounds)
{
	uint64_t largest = 0;
	void *aligned = heap;

	for (uint64_t i = 0; i < rounds; i++) {
		depth = i % 150;
		largest = most(largest, stack_use(MALLOC, 40, 0, 0));
		largest = most(largest, stack_use(REALLOC, result, 80, 0));
		largest = most(largest, stack_use(FREE, result, 0, 0));
		largest = most(largest, stack_use(POSIX_MEMALIGN, (uint64_t)&aligned, 64, 100));
	}
	return largest;
}

static void test_fast_path(void **state)
{
	uint64_t largest;

	(void)state;
	start(1ull << 31);
	stack_use(MALLOC, 1, 0, 0); /* the thread gets its thread state */
	largest = stack_use_of_all(100);
	stop();
	print_message("a call that is not sampled: %lu bytes\n", largest);
	assert_true(largest <= FAST_BYTES);
}

static void sampled(uint64_t limit)
{
	static const uint64_t rates[] = { 1, 64, 100000 };

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		uint64_t largest, samples;

		around = 0;
		start(rates[i]);
		largest = stack_use_of_all(600);
		samples = fixture_counter(&p.f, DUMP_COUNTER_samples_taken);
		stop();
		print_message("one sample per %lu bytes, %lu samples: %lu bytes, %lu around the original\n", rates[i],
		              samples, largest, around);
		assert_true(samples > 0 && largest <= limit && around <= AROUND_BYTES);
	}
}

static void test_sampled(void **state)
{
	(void)state;
	sampled(SAMPLED_BYTES);
}

/* Frames in a circle, as many as are recorded; other instructions from call to call would change nothing. */
static void python(struct python_fake *f)
{
	python_fake_put_pointer(f->frames[2], f->release->frames.frame_previous, f->frames[0]);
	python_inside_layout(f, &p.python);
	sampled(PYTHON_BYTES);
	p.python.version = 0;
}

static void test_sampled_in_python(void **state)
{
	(void)state;
	python_inside_each(python);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fast_path),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_sampled_in_python),
	};

	return cmocka_run_group_tests_name("stack_use", tests, NULL, NULL);
}
