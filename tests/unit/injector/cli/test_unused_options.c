/* SPDX-License-Identifier: MIT */
/* Each option of memattach does something with --census, --detach and --doctor, or is refused by its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/memattach_options.h"
#include "cli/options.h"

static const struct {
	const char *option;
	unsigned use;
} commands[] = { { "--census", USED_BY_CENSUS }, { "--detach", USED_BY_DETACH }, { "--doctor", USED_BY_DOCTOR } };

/* An argument that it takes. */
static const char *argument_for(const struct option_row *row)
{
	static char word[32];

	if (row->code == OPTION_WHEN)
		return "rss>1G";
	if (row->code == OPTION_HOOK)
		return "reserve=malloc";
	switch (row->value) {
	case OPTION_VALUE_WORDS:
		snprintf(word, sizeof word, "%.*s", (int)strcspn(row->words, " "), row->words);
		return word;
	case OPTION_VALUE_SIZE: return "64M";
	case OPTION_VALUE_TIME: return "1s";
	default: return !strcmp(row->argument, "TIME") ? "1s" : "1";
	}
}

static int parse(const char *command, const char *const options[], size_t count)
{
	char *words[8] = { (char *)"memattach", (char *)command };
	struct session_options o;
	struct selection selection;
	enum command found;
	int argc = 2;

	for (size_t i = 0; i < count; i++)
		words[argc++] = (char *)options[i];
	optind = 0;
	return options_parse(argc, words, &o, &found, &selection);
}

/* What cannot be alone, or is the process itself. */
static bool wants_more(const struct option_row *row)
{
	return row->code == OPTION_CLONE || row->code == OPTION_FREEZE || row->code == OPTION_MAX_STOP ||
	       row->code == OPTION_BUDGET || row->code == OPTION_DEADLINE;
}

static bool is_process(const struct option_row *row)
{
	return row->code == 'p' || row->code == OPTION_NAME || row->code == OPTION_CGROUP || row->code == OPTION_UNIT ||
	       row->code == OPTION_ALL;
}

static void check_row(const struct option_row *row, unsigned c)
{
	const char *words[4];
	char text[128];
	size_t count = 0;

	snprintf(text, sizeof text, row->argument ? "--%s=%s" : "--%s", row->name,
	         row->argument ? argument_for(row) : "");
	words[count++] = text;
	if (!is_process(row))
		words[count++] = "1";
	if (commands[c].use == USED_BY_CENSUS && wants_more(row))
		words[count++] = "--unreachable";
	const int rc = parse(commands[c].option, words, count);
	if (row->code != OPTION_LIVE && (rc == 0) != ((row->uses & commands[c].use) != 0))
		fail_msg("%s %s: %d", commands[c].option, text, rc);
	if (!(row->uses & commands[c].use))
		assert_int_equal(rc, -EINVAL);
}

static void test_each_option_is_used_or_refused(void **state)
{
	(void)state;
	for (const struct option_row *row = memattach_options.rows; !option_row_is_end(row); row++)
		for (unsigned c = 0; row->name && row->code != 'h' && row->code != 'V' && c < 3; c++)
			check_row(row, c);
}

/* The table itself: what has nothing to do with a census. */
static void test_a_census_heeds_no_options_of_sessions(void **state)
{
	static const char *const sessions[] = { "--rate=1",      "--mmap",       "--duration=1s",   "--receipt=x",
		                                "--hooks=got",   "--no-symbols", "--no-cache",      "--seed=1",
		                                "--max-size=1G", "--loader=own", "--max-overhead=1" };

	(void)state;
	for (size_t i = 0; i < sizeof sessions / sizeof *sessions; i++)
		assert_int_equal(parse("--census", (const char *[]){ sessions[i], "1" }, 2), -EINVAL);
	assert_int_equal(parse("--census", (const char *[]){ "--detach", "1" }, 2), -EINVAL);
	assert_int_equal(parse("--census", (const char *[]){ "--deadline=1s", "1" }, 2), -EINVAL);
	assert_int_equal(parse("--detach", (const char *[]){ "--duration=1s", "1" }, 2), -EINVAL);
	assert_int_equal(parse("--doctor", (const char *[]){ "--output=x", "1" }, 2), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_each_option_is_used_or_refused),
		                            cmocka_unit_test(test_a_census_heeds_no_options_of_sessions) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
