/* SPDX-License-Identifier: MIT */
/* How a thread finds its state: by the key, and by what it works with. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "python_proving.h"

/* ---- the key ---- */

static void key_refused(const struct python_fake *f, const char *why)
{
	struct python_proof p;

	python_proving(&p, f);
	assert_true(p.frames_proved);
	if (p.key_proved || !strstr(p.key_why, why))
		fail_msg("3.%u: \"%s\" does not say \"%s\"", f->release->minor, p.key_proved ? "proved" : p.key_why,
		         why);
	assert_int_equal(p.layout.version, 0);
	python_proof_done(&p);
}

static void wrong_keys(struct python_fake *f)
{
	uint8_t *words = f->runtime + f->release->runtime_key;
	uint64_t before;

	memcpy(&before, words, sizeof before);
	words[0] = 0;
	key_refused(f, "no thread's key leads");
	memcpy(words, &before, sizeof before);
	python_fake_put(words, 0, (uint64_t)UINT32_MAX << 32 | 1);
	key_refused(f, "no thread's key leads");
	memcpy(words, &before, sizeof before);
	python_fake_make_key_again(f, true);
	key_refused(f, "no thread's key leads");
	python_fake_bind(f);
	python_fake_put(f->state, f->release->frames.state_thread, (uint64_t)(uintptr_t)f->state);
	key_refused(f, "no thread's key leads");
}

static void test_prove_tells_the_key_from_the_frames(void **state)
{
	(void)state;
	python_proving_each(wrong_keys);
}

/* ---- the state that a thread works with ---- */

static void attached(const struct python_fake *f, uint32_t threads, const char *why)
{
	struct python_proof p;

	python_proving(&p, f);
	assert_true(p.frames_proved && p.key_proved);
	assert_int_equal(p.attached, threads);
	if (!strstr(p.attached_why, why) || !p.attached_why[0] != !why[0])
		fail_msg("3.%u: \"%s\" does not say \"%s\"", f->release->minor, p.attached_why, why);
	if (why[0])
		assert_int_equal(p.layout.attached_offset, 0);
	else
		assert_ptr_equal((char *)pthread_self() + p.layout.block_below + p.layout.attached_offset,
		                 &python_fake_attached);
	assert_int_equal(p.layout.current_state,
	                 f->release->minor <= 11 ? (uintptr_t)f->runtime + f->release->runtime_current : 0);
	assert_int_equal(p.layout.main_interpreter, f->release->minor <= 11 ? 0 : (uintptr_t)f->interpreter);
	assert_int_equal(p.layout.state_interpreter, f->release->state_interpreter);
	python_proof_done(&p);
}

static void attached_states(struct python_fake *f)
{
	const struct python_release *r = f->release;
	uint8_t *other;

	if (r->minor <= 11) {
		attached(f, 0, "this version does not tell");
		return;
	}
	attached(f, 0, "");
	python_fake_attached = (uintptr_t)f->state;
	attached(f, 1, "");
	python_fake_attached = (uintptr_t)f->frames[0];
	attached(f, 0, "which is no state of its own");
	/* A state of the list that names another thread: one of 3.12 may be of a subinterpreter. */
	other = python_fake_new(512);
	python_fake_put_pointer(other, r->state_interpreter, f->interpreter);
	python_fake_put_pointer(other, r->state_previous, f->state);
	python_fake_put_pointer(other, r->frames.state_thread, f->frames[0]);
	python_fake_put_pointer(other, r->frames.state_frame, f->cframe);
	python_fake_put_pointer(f->state, r->state_next, other);
	python_fake_attached = (uintptr_t)other;
	attached(f, r->minor == 12, r->minor == 12 ? "" : "which is no state of its own");
}

static void test_prove_finds_the_state_that_a_thread_works_with(void **state)
{
	(void)state;
	python_proving_each(attached_states);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prove_tells_the_key_from_the_frames),
		cmocka_unit_test(test_prove_finds_the_state_that_a_thread_works_with),
	};
	return cmocka_run_group_tests(tests, python_proving_open, python_proving_close);
}
