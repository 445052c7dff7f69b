/* SPDX-License-Identifier: MIT */
/* The walk from inside, over the fake interpreters that are proved from outside as well. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "arch/machine.h"
#include "walk/known_stack.h"
#include "python_inside.h"
#include "python/python_walk.h"

#define ROOM 8u

struct result {
	enum python_walk_end end;
	uint32_t count;
	struct python_walked frames[ROOM];
};

static struct result walk(const struct python_fake *f, uint32_t room)
{
	struct python_layout l;
	struct result r = { 0 };

	python_inside_layout(f, &l);
	r.end = python_walk(&l, arch_thread_pointer(), r.frames, room, &r.count);
	return r;
}

static void ends(const struct python_fake *f, enum python_walk_end end, uint32_t count)
{
	struct result r = walk(f, ROOM);

	if (r.end != end || r.count != count)
		fail_msg("3.%u: ended as %d after %u frames, not as %d after %u", f->release->minor, r.end, r.count,
		         end, count);
}

static void whole(struct python_fake *f)
{
	struct result r = walk(f, ROOM);

	ends(f, PYTHON_WALK_WHOLE, FAKE_FRAMES);
	for (unsigned i = 0; i < FAKE_FRAMES; i++) {
		assert_int_equal(r.frames[i].code, (uintptr_t)f->codes[i]);
		assert_int_equal(r.frames[i].offset, 4);
		assert_int_equal(r.frames[i].entry, f->release->minor <= 10);
	}
	assert_int_equal(walk(f, FAKE_FRAMES).end, PYTHON_WALK_WHOLE);
	assert_int_equal(walk(f, FAKE_FRAMES - 1).end, PYTHON_WALK_TRUNCATED);
	assert_int_equal(walk(f, FAKE_FRAMES - 1).count, FAKE_FRAMES - 1);
}

static void test_walk_finds_all_frames(void **state)
{
	(void)state;
	python_inside_each(whole);
}

static void entered(struct python_fake *f)
{
	const struct python_frame_layout *l = &f->release->frames;
	struct result r;

	if (l->frame_entry != PYTHON_ABSENT)
		f->frames[1][l->frame_entry] = 1;
	else if (l->frame_owner != PYTHON_ABSENT)
		f->frames[1][l->frame_owner] = l->owner_without_code;
	r = walk(f, ROOM);
	assert_int_equal(r.end, PYTHON_WALK_WHOLE);
	if (l->frame_entry != PYTHON_ABSENT) {
		assert_int_equal(r.count, 3);
		assert_true(!r.frames[0].entry && r.frames[1].entry && !r.frames[2].entry);
	} else if (l->frame_owner != PYTHON_ABSENT) {
		assert_int_equal(r.count, 2);
		assert_true(r.frames[0].entry && !r.frames[1].entry);
		assert_int_equal(r.frames[1].code, (uintptr_t)f->codes[2]);
	}
}

static void test_walk_tells_where_the_evaluator_was_entered(void **state)
{
	(void)state;
	python_inside_each(entered);
}

static void not_begun(struct python_fake *f)
{
	const struct python_frame_layout *l = &f->release->frames;

	if (l->first_traceable == PYTHON_ABSENT)
		return;
	python_fake_put(f->codes[0], l->first_traceable, 3);
	ends(f, PYTHON_WALK_WHOLE, FAKE_FRAMES - 1);
	f->frames[0][l->frame_owner] = l->owner_generator;
	ends(f, PYTHON_WALK_WHOLE, FAKE_FRAMES);
}

static void test_walk_skips_frames_that_have_not_begun(void **state)
{
	(void)state;
	python_inside_each(not_begun);
}

static void no_thread(struct python_fake *f)
{
	uint8_t *words = f->runtime + f->release->runtime_key;

	python_fake_put(f->runtime, f->release->runtime_finalizing, 0x1000);
	ends(f, PYTHON_WALK_NO_THREAD, 0);
	python_fake_put(f->runtime, f->release->runtime_finalizing, 0);
	python_fake_put(f->state, f->release->frames.state_thread, 0x1000);
	ends(f, PYTHON_WALK_NO_THREAD, 0);
	python_fake_put(f->state, f->release->frames.state_thread, (uint64_t)pthread_self());
	uint8_t first = words[0];
	words[0] = 0;
	ends(f, PYTHON_WALK_NO_THREAD, 0);
	words[0] = first;
	words[6] = 0xff; /* of the key */
	ends(f, PYTHON_WALK_NO_THREAD, 0);
	words[6] = 0;
	words[5] = 3; /* a key of a later block, which this thread does not have */
	ends(f, PYTHON_WALK_NO_THREAD, 0);
}

/* Py_Initialize after Py_Finalize: a value that was set before is none, one that is set since leads to the new state.
 */
static void made_again(struct python_fake *f, bool same_number)
{
	python_fake_make_key_again(f, same_number);
	ends(f, PYTHON_WALK_NO_THREAD, 0);
	python_fake_bind(f);
	ends(f, PYTHON_WALK_WHOLE, FAKE_FRAMES);
}

static void started_again(struct python_fake *f)
{
	for (unsigned i = 0; i < 4; i++)
		made_again(f, i % 2);
}

static void test_walk_follows_an_interpreter_that_is_started_again(void **state)
{
	(void)state;
	python_inside_each(started_again);
}

static void *in_another_thread(void *fake)
{
	ends(fake, PYTHON_WALK_NO_THREAD, 0);
	return NULL;
}

static void other_thread(struct python_fake *f)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, in_another_thread, f), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_walk_needs_the_threads_own_state(void **state)
{
	(void)state;
	python_inside_each(no_thread);
	python_inside_each(other_thread);
}

/* 3.12 and later: also one that names another thread, and that no key leads to. */
static void attached(struct python_fake *f)
{
	uint64_t wild[] = { 8, 0xfff8, 0xdead0000beef0000, (uint64_t)(uintptr_t)f->state + 4 };

	if (f->release->minor < 12)
		return;
	python_fake_attached = (uintptr_t)f->state;
	python_fake_put(f->state, f->release->frames.state_thread, 0x1000);
	memset(f->runtime + f->release->runtime_key, 0, 8);
	ends(f, PYTHON_WALK_WHOLE, FAKE_FRAMES);
	python_fake_put(f->runtime, f->release->runtime_finalizing, 0x1000);
	ends(f, PYTHON_WALK_NO_THREAD, 0);
	python_fake_put(f->runtime, f->release->runtime_finalizing, 0);
	for (unsigned i = 0; i < sizeof wild / sizeof wild[0]; i++) {
		python_fake_attached = wild[i];
		ends(f, PYTHON_WALK_NO_THREAD, 0);
	}
	python_fake_attached = 0;
	ends(f, PYTHON_WALK_NO_THREAD, 0);
}

/* The thread that works with another state than the key leads to. */
static void another_state(struct python_fake *f)
{
	uint8_t *other;

	if (f->release->minor < 12)
		return;
	other = python_fake_new(512);
	memcpy(other, f->state, 512);
	python_fake_attached = (uintptr_t)other;
	if (f->cframe)
		python_fake_put(f->cframe, f->release->frames.cframe_frame, 0);
	else
		python_fake_put(other, f->release->frames.state_frame, 0);
	ends(f, PYTHON_WALK_WHOLE, 0);
}

static void test_walk_is_of_the_state_that_the_thread_works_with(void **state)
{
	(void)state;
	python_inside_each(attached);
	python_inside_each(another_state);
}

static void misses(const struct python_fake *f, enum python_missing missing)
{
	struct python_layout l;
	struct python_cursor c;

	python_inside_layout(f, &l);
	assert_true(python_walk_start(&c, &l, arch_thread_pointer()));
	assert_int_equal(c.missing, missing);
}

static void of_several_interpreters(struct python_fake *f)
{
	const struct python_release *r = f->release;
	static const uint64_t unmapped = 0x10000; /* it is not followed */

	misses(f, PYTHON_MISSING_NONE);
	if (r->minor <= 11) {
		python_fake_put_pointer(f->runtime, r->runtime_current, f->state);
		misses(f, PYTHON_MISSING_NONE);
		python_fake_put(f->runtime, r->runtime_current, unmapped);
		misses(f, PYTHON_MISSING_INNER);
		return;
	}
	python_fake_put(f->state, r->state_interpreter, unmapped);
	misses(f, PYTHON_MISSING_OUTER);
	python_fake_attached = (uintptr_t)f->state;
	misses(f, PYTHON_MISSING_OUTER);
}

static void test_walk_tells_which_frames_may_be_missing(void **state)
{
	(void)state;
	python_inside_each(of_several_interpreters);
}

static void leaving(struct python_fake *f)
{
	struct python_layout l;

	python_inside_layout(f, &l);
	uint32_t *flags = (uint32_t *)((char *)pthread_self() + l.leaving_offset);
	*flags |= PYTHON_LEAVING; /* as pthread_exit() would */
	ends(f, PYTHON_WALK_NO_THREAD, 0);
	*flags &= ~PYTHON_LEAVING;
	ends(f, PYTHON_WALK_WHOLE, FAKE_FRAMES);
}

static void test_walk_leaves_a_thread_alone_that_leaves(void **state)
{
	(void)state;
	python_inside_each(leaving);
}

static void lost(struct python_fake *f)
{
	const struct python_frame_layout *l = &f->release->frames;
	static const uint64_t wild[] = { 8, 0xfff8, 0xdead0000beef0000, ARCH_ADDRESS_END, 0xfffffffffffffff8 };

	for (unsigned i = 0; i < sizeof wild / sizeof wild[0]; i++) {
		python_fake_put(f->frames[0], l->frame_previous, wild[i]);
		ends(f, PYTHON_WALK_LOST, 1);
		python_fake_put_pointer(f->frames[0], l->frame_previous, f->frames[1]);
		python_fake_put(f->frames[1], l->frame_code, wild[i]);
		ends(f, PYTHON_WALK_LOST, 1);
		python_fake_put_code(f, 1, f->codes[1]);
	}
	python_fake_put_pointer(f->frames[0], l->frame_previous, f->frames[1] + 4);
	ends(f, PYTHON_WALK_LOST, 1);
	python_fake_put_pointer(f->frames[0], l->frame_previous, f->frames[1]);
	python_fake_put_code(f, 1, f->name);
	ends(f, PYTHON_WALK_LOST, 1);
	python_fake_put_code(f, 1, f->codes[1]);
	python_fake_put_instruction(f, 2, 8);
	ends(f, PYTHON_WALK_LOST, 2);
	python_fake_put_instruction(f, 2, -16);
	ends(f, PYTHON_WALK_LOST, 2);
}

static void test_walk_ends_at_what_is_wrong(void **state)
{
	(void)state;
	python_inside_each(lost);
}

static void cycle(struct python_fake *f)
{
	python_fake_put_pointer(f->frames[2], f->release->frames.frame_previous, f->frames[0]);
	ends(f, PYTHON_WALK_TRUNCATED, ROOM);
	if (f->release->frames.owner_without_code == UINT8_MAX)
		return;
	for (unsigned i = 0; i < FAKE_FRAMES; i++) /* none of them counts */
		f->frames[i][f->release->frames.frame_owner] = f->release->frames.owner_without_code;
	ends(f, PYTHON_WALK_LOST, 0);
}

static void test_walk_ends_in_a_cycle(void **state)
{
	(void)state;
	python_inside_each(cycle);
}

#define NEAR_BYTES 65536u
#define DEAD_BYTES (1u << 17) /* more than a walk takes of the stack */

/* The address of a _PyCFrame in a function that has returned. */
static __attribute__((noinline, no_sanitize_address)) uint64_t left_behind(const struct python_fake *f)
{
	uint8_t stack[DEAD_BYTES];

	memset(stack, 0, sizeof stack);
	memcpy(stack, f->cframe, 64);
	__asm__ volatile("" : : "r"(stack) : "memory");
	return (uint64_t)(uintptr_t)stack;
}

static void cframe_on_the_stack(struct python_fake *f)
{
	const uint32_t at = f->release->frames.state_frame;
	uint8_t stack[128] __attribute__((aligned(16))), *live = stack, *outer = stack + 64;

	if (!f->cframe)
		return;
	memcpy(live, f->cframe, 64);
	python_fake_put_pointer(f->state, at, live);
	ends(f, PYTHON_WALK_WHOLE, FAKE_FRAMES);
	/* Written over: it leads to nothing, down, or to what is not this stack; or it has an outer one. */
	known_stacks_init((uint64_t)(uintptr_t)stack - NEAR_BYTES, (uint64_t)(uintptr_t)stack + NEAR_BYTES, 0);
	const uint64_t wrong[] = { 0, (uint64_t)(uintptr_t)live - 64, (uint64_t)(uintptr_t)live + 4, 0x4141414141414100,
		                   (uint64_t)(uintptr_t)live + 2 * NEAR_BYTES };
	for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		python_fake_put(live, f->release->frames.cframe_frame + 8, wrong[i]);
		ends(f, PYTHON_WALK_LOST, 0);
	}
	memcpy(outer, f->cframe, 64);
	python_fake_put_pointer(live, f->release->frames.cframe_frame + 8, outer);
	ends(f, PYTHON_WALK_WHOLE, FAKE_FRAMES);
	known_stacks_init(0, 0, 0);
	python_fake_put(f->state, at, left_behind(f));
	ends(f, PYTHON_WALK_LOST, 0);
}

#define AREA_BYTES (1u << 20)
#define ROOT_AT 256u /* of the state's own _PyCFrame */

static uint8_t *area;

static void *with_a_state_below_its_stack(void *fake)
{
	const struct python_fake *f = fake;
	uint8_t *state = area, *root = state + ROOT_AT;

	memcpy(state, f->state, 512);
	memset(root, 0, 64);
	python_fake_put_pointer(state, f->release->frames.state_frame, root);
	python_fake_attached = (uintptr_t)state;
	ends(f, PYTHON_WALK_WHOLE, 0);
	return fake;
}

/* The C library's mappings may put it there: an interpreter of 3.12 holds its first state, and is large. */
static void cframe_of_the_state(struct python_fake *f)
{
	pthread_attr_t attributes;
	pthread_t thread;
	void *result;

	if (f->release->minor != 12)
		return;
	area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(area, MAP_FAILED);
	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstack(&attributes, area + 4096, AREA_BYTES - 4096), 0);
	assert_int_equal(pthread_create(&thread, &attributes, with_a_state_below_its_stack, f), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, f);
	pthread_attr_destroy(&attributes);
	munmap(area, AREA_BYTES);
}

static void test_walk_reads_the_cframe_of_a_state_anywhere(void **state)
{
	(void)state;
	python_inside_each(cframe_of_the_state);
}

/* 3.11 and 3.12: pthread_exit and longjmp leave the evaluator's behind. */
static void test_walk_reads_no_cframe_of_a_function_that_was_left(void **state)
{
	(void)state;
	python_inside_each(cframe_on_the_stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk_finds_all_frames),
		cmocka_unit_test(test_walk_tells_where_the_evaluator_was_entered),
		cmocka_unit_test(test_walk_skips_frames_that_have_not_begun),
		cmocka_unit_test(test_walk_needs_the_threads_own_state),
		cmocka_unit_test(test_walk_follows_an_interpreter_that_is_started_again),
		cmocka_unit_test(test_walk_is_of_the_state_that_the_thread_works_with),
		cmocka_unit_test(test_walk_tells_which_frames_may_be_missing),
		cmocka_unit_test(test_walk_leaves_a_thread_alone_that_leaves),
		cmocka_unit_test(test_walk_ends_at_what_is_wrong),
		cmocka_unit_test(test_walk_ends_in_a_cycle),
		cmocka_unit_test(test_walk_reads_no_cframe_of_a_function_that_was_left),
		cmocka_unit_test(test_walk_reads_the_cframe_of_a_state_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
