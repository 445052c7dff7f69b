/* SPDX-License-Identifier: MIT */
/* The program as users call it: exit status, what goes to which stream, options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "dump_builder.h"

static char directory[] = "/tmp/memanalyze-test.XXXXXX";
static char good[64], later[64], another[64], cut[64], future[64], foreign[64];

struct run {
	int status;
	char out[65536], err[4096];
};

static void read_file(const char *name, char *buffer, size_t size)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	buffer[fread(buffer, 1, size - 1, f)] = 0;
	fclose(f);
}

static void run(struct run *r, const char *arguments)
{
	char command[1024];

	snprintf(command, sizeof command, "NO_COLOR= " MEMANALYZE " %s >%s/out 2>%s/err", arguments, directory,
	         directory);
	int status = system(command);
	assert_true(WIFEXITED(status));
	r->status = WEXITSTATUS(status);
	read_file("out", r->out, sizeof r->out);
	read_file("err", r->err, sizeof r->err);
}

static void run_on(struct run *r, const char *options, const char *path)
{
	char arguments[512];

	snprintf(arguments, sizeof arguments, "%s %s", options, path);
	run(r, arguments);
}

static int make_files(void **state)
{
	struct dump_builder b;

	(void)state;
	if (!mkdtemp(directory) || setenv("XDG_CACHE_HOME", "/nonexistent", 1)) /* not the user's own */
		return -1;
	snprintf(good, sizeof good, "%s/good.dump", directory);
	snprintf(later, sizeof later, "%s/later.dump", directory);
	snprintf(another, sizeof another, "%s/another.dump", directory);
	snprintf(cut, sizeof cut, "%s/cut.dump", directory);
	snprintf(future, sizeof future, "%s/future.dump", directory);
	snprintf(foreign, sizeof foreign, "%s/foreign.dump", directory);
	dump_builder_sampler(&b);
	dump_builder_header(&b)->session_id = 77;
	int r = dump_builder_write(&b, good) || dump_builder_write(&b, cut) || truncate(cut, 20000);
	dump_builder_header(&b)->clock_latest.stamp++;
	r = r || dump_builder_write(&b, later);
	dump_builder_header(&b)->session_id++;
	dump_builder_header(&b)->clock_start.realtime_ns += 1000000000;
	r = r || dump_builder_write(&b, another);
	dump_builder_header(&b)->version++;
	r = r || dump_builder_write(&b, future);
	memset(b.bytes, 'x', 100);
	r = r || dump_builder_write(&b, foreign);
	dump_builder_done(&b);
	return r;
}

static int remove_files(void **state)
{
	static const char *const names[] = { "good.dump",   "later.dump",   "another.dump", "cut.dump",
		                             "future.dump", "foreign.dump", "out",          "err" };
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", directory, names[i]);
		unlink(path);
	}
	return rmdir(directory);
}

static void test_whole_dump(void **state)
{
	struct run r;

	(void)state;
	run_on(&r, "", good);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err, "");
	assert_non_null(strstr(r.out, "still live"));
	assert_null(strchr(r.out, '\033')); /* not a terminal, and the dump's own are taken out */
}

/* Names of files come from archives and from other people, too. */
static void test_messages_are_printable(void **state)
{
	struct run r;

	(void)state;
	run(&r, "\"$(printf '/nonexistent/\\033]0;x\\007\\302\\233.dump')\"");
	assert_int_equal(r.status, 2);
	assert_string_equal(r.err, "memanalyze: /nonexistent/?]0;x??.dump: cannot open: No such file or directory\n");
}

static void test_json_is_json(void **state)
{
	struct run r;

	(void)state;
	run_on(&r, "--json --confidence=99", good);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.out[0], '{');
	if (system("command -v jq >/dev/null 2>&1")) {
		print_message("jq is not here: only the first byte was looked at\n");
		return;
	}
	char command[2048];
	snprintf(command, sizeof command,
	         "jq -e '.format == 4 and .confidence == 0.99 and .rate_bytes == 65536 and .complete and "
	         ".target.ended == \"detached\" and .samples == {taken: 37, live: 27, lost: 0, without_stack: 0, "
	         "rounded_up: 0, lost_before: 0} and "
	         "([.total, .stacks[]] | all([.live_bytes, .live_count, .allocated_bytes, .allocated_count] | "
	         "all(.low <= .estimate and .estimate <= .high and .stderr >= 0))) and (.stacks | length == 3) and "
	         "(.frames as $f | .modules as $m | [.stacks[].frames[] | $f[.] | keys] | "
	         "all(index(\"address\") and . - [\"address\", \"file\", \"function\", \"inlined\", \"language\", "
	         "\"line\", \"module\"] == [])) and "
	         "([.modules[] | keys] | all(. == [\"build_id\", \"path\", \"reason\", \"symbols\"]))' "
	         "%s/out >/dev/null",
	         directory);
	assert_int_equal(system(command), 0);
}

static void test_damaged_dump_is_read_in_part(void **state)
{
	struct run r;

	(void)state;
	run_on(&r, "", cut);
	assert_int_equal(r.status, 1);
	assert_non_null(strstr(r.err, "damaged or cut off"));
	assert_non_null(strstr(r.out, "leaky"));
	run_on(&r, "--json", cut);
	assert_int_equal(r.status, 1);
	assert_non_null(strstr(r.out, "\"complete\": false"));
}

static void test_files_that_cannot_be_read(void **state)
{
	struct run r;

	(void)state;
	run_on(&r, "", future);
	assert_int_equal(r.status, 2);
	assert_non_null(strstr(r.err, "made by a newer memattach"));
	assert_string_equal(r.out, "");
	run_on(&r, "", foreign);
	assert_int_equal(r.status, 2);
	assert_non_null(strstr(r.err, "not a dump"));
	run_on(&r, "", "/nonexistent");
	assert_int_equal(r.status, 2);
}

/* All dumps in it, by process, and who was not profiled; lines that are no such lines are passed over. */
static void test_directory_of_dumps(void **state)
{
	char roster[256], empty[256];
	struct run r;

	(void)state;
	snprintf(roster, sizeof roster, "%s/memattach.system.1", directory);
	snprintf(empty, sizeof empty, "%s/empty", directory);
	FILE *f = fopen(roster, "w");
	assert_non_null(f);
	fputs("memattach-system\t1\nhost\tx\nunseen\t3\t812\tsshd\tit is traced\nunseen\t4\nunseen\n\n", f);
	for (unsigned i = 0; i < 5000; i++) /* more lines than one has: it may be endless */
		putc('\n', f);
	fputs("unseen\t7\t812\tsshd\tit is traced\n", f);
	fclose(f);
	run_on(&r, "", directory);
	assert_int_equal(r.status, 1); /* one is of a newer memattach */
	assert_non_null(strstr(r.out, "Processes by live bytes"));
	assert_non_null(strstr(r.out, "Not profiled:\n  3 sshd: it is traced\n"));
	assert_null(strstr(r.out, "  4 "));
	assert_null(strstr(r.out, "  7 sshd"));
	run_on(&r, "--json --by unit", directory);
	assert_non_null(strstr(r.out, "\"unit\": \"(no unit)\""));
	assert_non_null(strstr(r.out, "\"why\": \"it is traced\""));
	assert_int_equal(unlink(roster), 0);
	assert_int_equal(mkdir(empty, 0700), 0);
	run_on(&r, "", empty);
	assert_int_equal(r.status, 2);
	assert_non_null(strstr(r.err, "no dump is in this directory"));
	assert_int_equal(rmdir(empty), 0);
}

/* A session that is given more than once counts once, by its latest state. */
static void test_repeated_dumps(void **state)
{
	struct run once, r;
	char twice[256];

	(void)state;
	run_on(&once, "--json", good);
	snprintf(twice, sizeof twice, "%s %s", good, good);
	run_on(&r, "--json", twice);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.out, once.out);
	assert_non_null(strstr(r.err, "left out: it is the same dump as "));
	run_on(&once, "--json", later);
	for (int i = 0; i < 2; i++) {
		snprintf(twice, sizeof twice, "%s %s", i ? later : good, i ? good : later);
		run_on(&r, "--json", twice);
		assert_int_equal(r.status, 0);
		assert_string_equal(r.out, once.out);
		snprintf(twice, sizeof twice, "%s: left out: %s is a later state", good, later);
		assert_non_null(strstr(r.err, twice));
	}
}

/* Two states of one session have one order; of two sessions the other order is shown, and said. */
static void test_diff_knows_the_order(void **state)
{
	struct run r;
	char pair[256];

	(void)state;
	snprintf(pair, sizeof pair, "%s %s", good, later);
	run_on(&r, "--diff", pair);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err, "");
	snprintf(pair, sizeof pair, "%s %s", later, good);
	run_on(&r, "--diff", pair);
	assert_int_equal(r.status, 2);
	assert_string_equal(r.out, "");
	assert_non_null(strstr(r.err, "is a later state of the same session than "));
	snprintf(pair, sizeof pair, "%s %s", another, good);
	run_on(&r, "--diff", pair);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.err, "was recorded before "));
	snprintf(pair, sizeof pair, "%s %s", good, another);
	run_on(&r, "--diff", pair);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err, "");
}

static void test_usage(void **state)
{
	static const char *const wrong[] = {
		"",
		"--diff a",
		"--diff a b c",
		"--sort=size a",
		"--top=-1 a",
		"--depth=x a",
		"--confidence=100 a",
		"--confidence=0 a",
		"--nonsense a",
		"--by=lines a",
		"--timeline=1 a",
		"--timeline --at=1s a",
		"--peak a b",
		"--peak --timeline a",
		"--focus='(' a",
		"--focus=a --focus=b a",
		"--size=4k..1k a",
		"--older=1s --since=1s a",
		"--older=1s --leaks a",
		"--older=1s --diff a b",
		"--by=thread --sort=allocated-bytes a",
		"--at=never a",
		"--since=5s --at=5s a",
		"--diff --since=5s a b",
		"--leaks --at=5s a",
		"--age=5s a",
		"--by=function --leaks a",
		"--plan=0 a",
		"--tree --by=function a",
		"--tree --leaks a",
		"--tree -o x.html a",
	};
	struct run r;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		run(&r, wrong[i]);
		assert_int_equal(r.status, 64);
		assert_string_equal(r.out, "");
		assert_non_null(strstr(r.err, "--help"));
	}
	run(&r, "--help");
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, "--confidence"));
	run(&r, "--version");
	assert_int_equal(r.status, 0);
	assert_true(!strncmp(r.out, "memanalyze ", 11));
}

static void test_full_disk_is_said(void **state)
{
	char command[256];

	(void)state;
	if (access("/dev/full", W_OK))
		skip();
	snprintf(command, sizeof command, MEMANALYZE " %s >/dev/full 2>/dev/null", good);
	int status = system(command);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_dump),
		cmocka_unit_test(test_messages_are_printable),
		cmocka_unit_test(test_json_is_json),
		cmocka_unit_test(test_damaged_dump_is_read_in_part),
		cmocka_unit_test(test_files_that_cannot_be_read),
		cmocka_unit_test(test_directory_of_dumps),
		cmocka_unit_test(test_repeated_dumps),
		cmocka_unit_test(test_diff_knows_the_order),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_full_disk_is_said),
	};
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
