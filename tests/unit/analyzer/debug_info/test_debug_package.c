/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "debug_info/debug_package.h"

static void write_list(const char *directory, const char *package, const char *text)
{
	char path[200];

	snprintf(path, sizeof path, "%s/%s", directory, package);
	FILE *list = fopen(path, "w");
	assert_non_null(list);
	fputs(text, list);
	assert_int_equal(fclose(list), 0);
}

static void test_the_packages_of_files(void **state)
{
	struct debug_package list[] = { { .path = "/usr/sbin/server" },
		                        { .path = "/usr/sbin/serve" },
		                        { .path = "/usr/lib/x86_64-linux-gnu/libold.so.1" },
		                        { .path = "/usr/sbin/other" } };
	char directory[] = "/tmp/test-lists-XXXXXX", command[100];

	(void)state;
	assert_non_null(mkdtemp(directory));
	write_list(directory, "server.list", "/.\n/usr/sbin\n/usr/sbin/server\n/usr/sbin/server-more\n");
	write_list(directory, "libold1:amd64.list", "/lib/x86_64-linux-gnu/libold.so.1");
	write_list(directory, "server.md5sums", "/usr/sbin/other\n");
	debug_packages_find("/nowhere", list, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(list[i].name, "");
	debug_packages_find(directory, list, 4);
	assert_string_equal(list[0].name, "server-dbgsym");
	assert_string_equal(list[1].name, "");
	assert_string_equal(list[2].name, "libold1-dbgsym");
	assert_string_equal(list[3].name, "");
	snprintf(command, sizeof command, "rm -r %s", directory);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_packages_of_files) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
