/* SPDX-License-Identifier: MIT */
/* Which rule is named: from the texts that /proc would show, for machines that this one is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "process/permission.h"

#define STATUS(uid, gid, caps, seccomp)                                                                                \
	"Name:\tx\nUid:\t" uid "\nGid:\t" gid "\nCapInh:\t0000000000000000\nCapPrm:\t" caps "\nCapEff:\t" caps         \
	"\nCapBnd:\tffffffffffffffff\nSeccomp:\t" seccomp "\nSeccomp_filters:\t0\n"
#define FIRST_MAP "         0          0 4294967295\n"
#define CHILD_MAP "         0       1000          1\n"
#define ALL "000001ffffffffff"
#define NONE "0000000000000000"
#define NO_PTRACE "000001fffff7ffff"
#define PTRACE_ALONE "0000000000080000"
#define ROOT "0\t0\t0\t0"
#define USER "1000\t1000\t1000\t1000"
#define OTHER "33\t33\t33\t33"

static struct permission parties(const char *self, const char *target)
{
	struct permission p = { .yama = -1 };

	permission_parse_status(&p.self, self);
	permission_parse_status(&p.target, target);
	strcpy(p.self.uid_map, FIRST_MAP);
	strcpy(p.target.uid_map, FIRST_MAP);
	return p;
}

static void expect(const struct permission *p, const char *words)
{
	char text[200];

	permission_explain(p, text, sizeof text);
	if (!strstr(text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, text);
	assert_true(strlen(text) < sizeof text - 1);
}

static void test_explain_names_another_user(void **state)
{
	struct permission p = parties(STATUS(USER, USER, NONE, "0"), STATUS(OTHER, OTHER, NONE, "0"));

	(void)state;
	expect(&p, "another user (33)");
	expect(&p, "run memattach as root");
	/* One of the ids is enough. */
	p = parties(STATUS(USER, USER, NONE, "0"), STATUS("1000\t0\t0\t0", USER, ALL, "0"));
	expect(&p, "another user");
	/* Root in a container. */
	p = parties(STATUS(ROOT, ROOT, NO_PTRACE, "2"), STATUS(OTHER, OTHER, NONE, "2"));
	expect(&p, "another user (33)");
	expect(&p, "--cap-add=SYS_PTRACE");
}

static void test_explain_names_the_owner_of_the_files(void **state)
{
	struct permission p = parties(STATUS(ROOT, ROOT, PTRACE_ALONE, "0"), STATUS(OTHER, OTHER, NONE, "0"));

	(void)state;
	expect(&p, "belong to another user (33)");
	expect(&p, "CAP_DAC_OVERRIDE");
	p.owned_by_root = true; /* it is not dumpable */
	expect(&p, "a security module");
	p = parties(STATUS(OTHER, OTHER, PTRACE_ALONE, "0"), STATUS(OTHER, OTHER, NONE, "0"));
	expect(&p, "a security module");
	p.owned_by_root = true;
	expect(&p, "belong to another user (0)");
}

static void test_explain_names_other_groups(void **state)
{
	struct permission p = parties(STATUS(USER, USER, NONE, "0"), STATUS(USER, "1000\t42\t42\t42", NONE, "0"));

	(void)state;
	expect(&p, "group ids");
	expect(&p, "42, not 1000");
}

static void test_explain_names_a_process_that_is_not_dumpable(void **state)
{
	struct permission p = parties(STATUS(USER, USER, NONE, "0"), STATUS(USER, USER, NONE, "0"));

	(void)state;
	p.owned_by_root = true;
	p.yama = 1;
	expect(&p, "not dumpable");
}

static void test_explain_names_capabilities(void **state)
{
	struct permission p = parties(STATUS(USER, USER, NONE, "0"), STATUS(USER, USER, "0000000000000400", "0"));

	(void)state;
	expect(&p, "capabilities that memattach has not (400)");
	p = parties(STATUS(ROOT, ROOT, NO_PTRACE, "0"), STATUS(ROOT, ROOT, ALL, "0"));
	expect(&p, "capabilities that memattach has not (80000)");
	expect(&p, "CAP_SYS_PTRACE");
}

static void test_explain_names_the_level_of_yama(void **state)
{
	struct permission p = parties(STATUS(USER, USER, NONE, "0"), STATUS(USER, USER, NONE, "0"));

	(void)state;
	p.yama = 1;
	expect(&p, "ptrace_scope is 1: only children");
	p.yama = 2;
	expect(&p, "ptrace_scope is 2: only CAP_SYS_PTRACE");
	p.yama = 3;
	expect(&p, "ptrace_scope is 3: nobody");
	/* Root can do all but the last. */
	p = parties(STATUS(ROOT, ROOT, ALL, "0"), STATUS(USER, USER, NONE, "0"));
	p.yama = 3;
	expect(&p, "ptrace_scope is 3: nobody");
}

static void test_explain_names_the_user_namespace(void **state)
{
	struct permission p =
		parties(STATUS(ROOT, ROOT, ALL, "0"), STATUS("65534\t65534\t65534\t65534", ROOT, ALL, "0"));

	(void)state;
	/* memattach is inside, with all capabilities there, its target outside. */
	strcpy(p.self.uid_map, CHILD_MAP);
	expect(&p, "another user namespace than memattach");
	/* The target is inside, and has all capabilities there. */
	p = parties(STATUS(USER, USER, NONE, "0"), STATUS(USER, USER, ALL, "0"));
	strcpy(p.target.uid_map, CHILD_MAP);
	expect(&p, "user namespace of its own");
}

static void test_explain_names_what_is_left(void **state)
{
	struct permission p = parties(STATUS(ROOT, ROOT, ALL, "0"), STATUS(USER, USER, NONE, "0"));

	(void)state;
	strcpy(p.target.profile, "snap.thing (enforce)");
	expect(&p, "security module forbids it (profile snap.thing (enforce))");
	p = parties(STATUS(USER, USER, NONE, "2"), STATUS(USER, USER, NONE, "0"));
	expect(&p, "memattach itself runs under a seccomp filter");
	p = parties(STATUS(ROOT, ROOT, NO_PTRACE, "0"), STATUS(ROOT, ROOT, NO_PTRACE, "0"));
	expect(&p, "not dumpable, or a security module");
}

static void expect_no_suspension(const char *status, const char *map, const char *words)
{
	struct permission p = parties(status, status);

	strcpy(p.self.uid_map, map);
	const char *why = permission_to_suspend_filter(&p.self);
	assert_non_null(why);
	if (!strstr(why, words))
		fail_msg("\"%s\" is not in \"%s\"", words, why);
}

static void test_suspend_filter_names_what_is_missing(void **state)
{
	struct permission p = parties(STATUS(ROOT, ROOT, ALL, "0"), STATUS(ROOT, ROOT, ALL, "2"));

	(void)state;
	assert_null(permission_to_suspend_filter(&p.self));
	strcpy(p.self.uid_map, "");
	assert_null(permission_to_suspend_filter(&p.self));
	expect_no_suspension(STATUS(ROOT, ROOT, PTRACE_ALONE, "0"), FIRST_MAP, "CAP_SYS_ADMIN");
	expect_no_suspension(STATUS(ROOT, ROOT, ALL, "2"), FIRST_MAP, "memattach has one itself");
	expect_no_suspension(STATUS(ROOT, ROOT, ALL, "0"), CHILD_MAP, "user namespace");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_explain_names_another_user),
		cmocka_unit_test(test_explain_names_the_owner_of_the_files),
		cmocka_unit_test(test_explain_names_other_groups),
		cmocka_unit_test(test_explain_names_a_process_that_is_not_dumpable),
		cmocka_unit_test(test_explain_names_capabilities),
		cmocka_unit_test(test_explain_names_the_level_of_yama),
		cmocka_unit_test(test_explain_names_the_user_namespace),
		cmocka_unit_test(test_explain_names_what_is_left),
		cmocka_unit_test(test_suspend_filter_names_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
