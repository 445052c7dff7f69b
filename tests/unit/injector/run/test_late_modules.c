/* SPDX-License-Identifier: MIT */
/* When modules that came later are tried again, and what is said of them. The steps themselves are linked in here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/steps/attach.h"
#include "run/steps/inspect.h"
#include "run/steps/late_modules.h"
#include "run/steps/plan.h"
#include "session/record.h"
#include "touch/patches/session_entries.h"

#define SECOND 1000000000ull
#define ENTRIES 3u
#define TRAMPOLINES 2u

static struct session session;
static struct late_modules late;

/* What the steps find, and what became of them. */
static struct world {
	bool changed;
	bool plan_fails, patch_fails;
	uint32_t refused; /* words of those that are patched */
	unsigned tries, said;
	char text[600];
	uint32_t planned_from; /* trampolines that the last plan was given */
} world;

int __wrap_modules_changed(const struct modules *m, const struct target_memory *tm, bool *changed, bool *consistent,
                           struct err *e);
int __wrap_modules_changed(const struct modules *m, const struct target_memory *tm, bool *changed, bool *consistent,
                           struct err *e)
{
	(void)m, (void)tm, (void)e;
	*changed = world.changed;
	*consistent = true;
	return 0;
}

int __wrap_inspect_session_again(struct session *s, struct err *e);
int __wrap_inspect_session_again(struct session *s, struct err *e)
{
	(void)e;
	got_plan_free(&s->view.plan);
	world.changed = false;
	world.tries++;
	return 0;
}

int __wrap_plan_again(struct session *s, const struct got_plan_options *options, struct err *e);
int __wrap_plan_again(struct session *s, const struct got_plan_options *options, struct err *e)
{
	world.planned_from = (uint32_t)options->trampoline_count;
	if (world.plan_fails)
		return err_set(e, ENOMEM, "no memory");
	s->view.plan = (struct got_plan){ .entry_count = ENTRIES,
		                          .trampolines = calloc(TRAMPOLINES, sizeof *s->view.plan.trampolines),
		                          .trampoline_count = TRAMPOLINES };
	return 0;
}

int __wrap_attach_patch_more(struct session *s, struct err *e);
int __wrap_attach_patch_more(struct session *s, struct err *e)
{
	if (world.patch_fails)
		return err_set(e, EBUSY, "no moment");
	s->outcome.entries.refused += world.refused;
	s->outcome.entries.patched += ENTRIES - world.refused;
	return 0;
}

int __wrap_record_unseen(struct session *s, enum dump_note_kind kind, const char *text, struct err *e);
int __wrap_record_unseen(struct session *s, enum dump_note_kind kind, const char *text, struct err *e)
{
	(void)s, (void)e;
	assert_int_equal(kind, DUMP_NOTE_NOT_PATCHED);
	world.said++;
	snprintf(world.text, sizeof world.text, "%s", text);
	return 0;
}

int __wrap_session_entries(struct session *s, struct got_entry **entries, uint32_t *count, struct err *e);
int __wrap_session_entries(struct session *s, struct got_entry **entries, uint32_t *count, struct err *e)
{
	(void)s, (void)e;
	*entries = NULL;
	*count = 0;
	return 0;
}

int __wrap_session_entries_watch(struct session *s, uint32_t *watched, struct err *e);
int __wrap_session_entries_watch(struct session *s, uint32_t *watched, struct err *e)
{
	(void)s, (void)watched, (void)e;
	return 0;
}

#define NOTHING(name, ...)                                                                                             \
	int __wrap_##name(__VA_ARGS__);                                                                                \
	int __wrap_##name(__VA_ARGS__)                                                                                 \
	{                                                                                                              \
		return (void)s, (void)e, 0;                                                                            \
	}
NOTHING(session_entries_mark_gone, struct session *s, struct err *e)
NOTHING(record_compile, struct session *s, struct err *e)
NOTHING(inspect_choose, struct session *s, struct err *e)

int __wrap_record_modules(struct session *s, uint32_t first_id, struct err *e);
int __wrap_record_modules(struct session *s, uint32_t first_id, struct err *e)
{
	return (void)s, (void)first_id, (void)e, 0;
}

static int begin(void **state)
{
	struct err e;

	(void)state;
	world = (struct world){ .changed = true };
	session = (struct session){ .options.quiet = true };
	session.view.plan.trampolines = calloc(TRAMPOLINES, sizeof *session.view.plan.trampolines);
	session.view.plan.trampoline_count = TRAMPOLINES;
	return late_modules_begin(&late, &session, &e);
}

static int end(void **state)
{
	(void)state;
	got_plan_free(&session.view.plan);
	return 0;
}

/* As a session does, five times in a second. */
static void poll_for(uint64_t *now, uint64_t seconds)
{
	for (const uint64_t until = *now + seconds * SECOND; *now < until; *now += SECOND / 5)
		(void)late_modules_poll(&late, *now);
}

static void test_late_modules_that_are_patched_are_not_tried_again(void **state)
{
	uint64_t now = SECOND;

	(void)state;
	poll_for(&now, 60);
	late_modules_end(&late);
	assert_int_equal(world.tries, 1);
	assert_int_equal(world.said, 0);
}

static void test_late_modules_that_fail_once_are_patched_a_second_later(void **state)
{
	uint64_t now = SECOND;

	(void)state;
	world.patch_fails = true;
	poll_for(&now, 1);
	assert_int_equal(world.tries, 1);
	world.patch_fails = false;
	poll_for(&now, 60);
	late_modules_end(&late);
	assert_int_equal(world.tries, 2);
	assert_int_equal(world.said, 0);
}

static void test_late_modules_that_fail_are_said_once(void **state)
{
	uint64_t now = SECOND;

	(void)state;
	world.patch_fails = true;
	poll_for(&now, 10); /* at 0, 1, 3 and 7 s */
	assert_int_equal(world.tries, 4);
	poll_for(&now, 600);
	assert_int_equal(world.tries, 6);
	late_modules_end(&late);
	assert_int_equal(world.said, 1);
	assert_string_equal(world.text, "3 GOT entries in modules loaded since: no moment");
	world.changed = true; /* another one comes */
	poll_for(&now, 600);
	assert_int_equal(world.tries, 12);
	assert_int_equal(world.said, 1);
	world.changed = true;
	world.patch_fails = false;
	poll_for(&now, 1);
	world.changed = world.patch_fails = true;
	poll_for(&now, 600);
	assert_int_equal(world.said, 2);
}

static void test_late_modules_that_fail_at_the_end_are_said(void **state)
{
	(void)state;
	world.patch_fails = true;
	assert_int_equal(late_modules_poll(&late, SECOND), -EBUSY);
	assert_int_equal(world.said, 0);
	late_modules_end(&late);
	assert_int_equal(world.said, 1);
}

static void test_late_modules_whose_words_have_changed_are_tried_again(void **state)
{
	uint64_t now = SECOND;

	(void)state;
	world.refused = 2;
	poll_for(&now, 2);
	assert_int_equal(world.tries, 2);
	assert_int_equal(world.said, 1);
	assert_non_null(strstr(world.text, "2 GOT entries in modules loaded since"));
	world.refused = 0;
	poll_for(&now, 60);
	assert_int_equal(world.tries, 3);
}

/* The words of the target lead to trampolines by number. */
static void test_late_modules_keep_trampolines_without_a_plan(void **state)
{
	uint64_t now = SECOND;

	(void)state;
	world.plan_fails = true;
	poll_for(&now, 1);
	assert_int_equal(world.tries, 1);
	assert_int_equal(session.view.plan.trampoline_count, TRAMPOLINES);
	world.plan_fails = false;
	poll_for(&now, 60);
	assert_int_equal(world.tries, 2);
	assert_int_equal(world.planned_from, TRAMPOLINES);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(test_late_modules_that_are_patched_are_not_tried_again),
		CASE(test_late_modules_that_fail_once_are_patched_a_second_later),
		CASE(test_late_modules_that_fail_are_said_once),
		CASE(test_late_modules_that_fail_at_the_end_are_said),
		CASE(test_late_modules_whose_words_have_changed_are_tried_again),
		CASE(test_late_modules_keep_trampolines_without_a_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
