/* SPDX-License-Identifier: MIT */
/*
 * The payload in programs whose loader does not load it: mapped, started, stopped and unmapped, by one session, and by
 * a second one that finds what the first has left. Static programs are refused by memattach while nothing would be seen
 * of them; below that they are no different.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

#include "run/steps/attach.h"
#include "run/steps/detach.h"
#include "run/steps/inspect.h"
#include "payload_image.h"
#include "session/payload_place.h"
#include "run/steps/plan.h"
#include "session/receipt.h"
#include "session/record.h"

#define SECOND_NS 1000000000ull

/* Elsewhere the stub is longer than the padding of the others. */
#ifdef __x86_64__
static const char *const programs[] = { "victim_static", "victim_static_pie", "victim_musl_static", "victim_musl" };
#else
static const char *const programs[] = { "victim_static" };
#endif

static void must(int rc, const struct err *e)
{
	if (rc < 0)
		fail_msg("%s", e->text);
}

static struct session session_of(const struct victim *v)
{
	const struct session_options options = {
		.pid = v->pid,
		.rate_bytes = 1,
		.max_bytes = 64ull << 20,
		.deadline_ns = 20 * SECOND_NS,
		.quiet = true,
		.no_cache = true,
	};
	struct session s;

	session_init(&s, &options);
	return s;
}

/* As memattach does it, without a plan: nothing is hooked. */
static void attach(struct session *s)
{
	const struct dump_writer_options options = { .max_bytes = s->options.max_bytes, .rate_bytes = 1 };
	struct err e;

	must(inspect_session(s, &e), &e);
	must(payload_place_find(s, &e), &e);
	assert_int_equal(s->payload.base, 0);
	must(inspect_choose(s, &e), &e);
	must(record_compile(s, &e), &e);
	must(snapshot_take(&s->outcome.before, &s->target, &e), &e);
	must(dump_writer_create(&s->recording.dump, &options, &e), &e);
	s->recording.dump.own->session_id = 1;
	s->recording.dump.own->pid = s->target.pid;
	s->recording.dump.own->target_start_ticks = s->target.start_ticks;
	dump_writer_publish(&s->recording.dump);
	must(record_modules(s, 1, &e), &e);
	must(attach_session(s, &e), &e);
	assert_int_equal(s->payload.block.state, SESSION_STARTED);
	assert_int_equal(s->payload.block.dl_handle, 0);
}

static unsigned count_ours(pid_t pid)
{
	char path[64], line[512];
	unsigned count = 0;

	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		count += strstr(line, "/memfd:memattach") != NULL;
	fclose(f);
	return count;
}

static void expect_as_before(struct session *s, struct victim *v)
{
	struct err e;

	must(receipt_verify(s, &e), &e);
	if (s->outcome.residue)
		fail_msg("left behind: %s", s->outcome.residue);
	assert_int_equal(count_ours(v->pid), 0);
	victim_order(v, 'r');
}

/* False: its compiler is not installed. */
static bool start(struct victim *v, const char *program)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", VICTIM_DIR, program);
	if (access(path, X_OK) < 0)
		return false;
	victim_start(v, program, NULL, NULL);
	return true;
}

static void test_payload_is_mapped_and_unmapped(void **state)
{
	struct victim v;
	struct err e;

	(void)state;
	for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
		if (!start(&v, programs[i]))
			continue;
		struct session s = session_of(&v);
		attach(&s);
		assert_true(count_ours(v.pid) >= 4); /* image, trampolines, dump, tables */
		victim_order(&v, 'r');
		must(detach_session(&s, &e), &e);
		expect_as_before(&s, &v);
		session_done(&s);
		victim_end(&v);
	}
}

static void test_payload_of_a_dead_session_is_found_by_its_name(void **state)
{
	char dump[] = "/tmp/test-load-XXXXXX", name[64];
	struct victim v;
	struct err e;

	(void)state;
	assert_non_null(mkdtemp(dump));
	snprintf(name, sizeof name, "%s/dump", dump);
	for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
		if (!start(&v, programs[i]))
			continue;
		struct session first = session_of(&v), second = session_of(&v);
		attach(&first);
		second.save_as = name;
		second.detaching = true;
		must(inspect_session(&second, &e), &e);
		must(payload_place_find(&second, &e), &e);
		assert_int_equal(second.payload.base, first.payload.base);
		assert_int_equal(second.payload.end, first.payload.end);
		assert_int_equal(second.payload.code_end, first.payload.code_end);
		assert_int_equal(payload_place_handle(&second), 0);
		must(inspect_choose(&second, &e), &e);
		must(detach_session(&second, &e), &e);
		second.outcome.before = first.outcome.before;
		first.outcome.before = (struct snapshot){ 0 };
		expect_as_before(&second, &v);
		session_done(&second);
		session_done(&first);
		victim_end(&v);
		unlink(name);
	}
	rmdir(dump);
}

static void test_static_programs_are_refused_where_nothing_would_be_seen(void **state)
{
	struct victim v;
	struct err e;

	(void)state;
	victim_start(&v, "victim_static", NULL, NULL);
	struct session s = session_of(&v);
	s.options.hooks = HOOKS_GOT;
	must(inspect_session(&s, &e), &e);
	assert_int_equal(plan_session(&s, &e), -ENOEXEC);
	assert_non_null(strstr(e.text, "static"));
	session_done(&s);
	victim_end(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_payload_is_mapped_and_unmapped),
		cmocka_unit_test(test_payload_of_a_dead_session_is_found_by_its_name),
		cmocka_unit_test(test_static_programs_are_refused_where_nothing_would_be_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
