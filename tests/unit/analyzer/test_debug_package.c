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

static void test_the_package_of_a_file(void **state)
{
	char directory[] = "/tmp/test-lists-XXXXXX", name[DEBUG_PACKAGE_NAME], command[100];

	(void)state;
	assert_non_null(mkdtemp(directory));
	write_list(directory, "server.list", "/.\n/usr/sbin\n/usr/sbin/server\n/usr/sbin/server-more\n");
	write_list(directory, "libold1:amd64.list", "/lib/x86_64-linux-gnu/libold.so.1");
	write_list(directory, "server.md5sums", "/usr/sbin/other\n");
	assert_true(debug_package_find(directory, "/usr/sbin/server", name));
	assert_string_equal(name, "server-dbgsym");
	assert_true(debug_package_find(directory, "/usr/lib/x86_64-linux-gnu/libold.so.1", name));
	assert_string_equal(name, "libold1-dbgsym");
	assert_false(debug_package_find(directory, "/usr/sbin/serve", name));
	assert_false(debug_package_find(directory, "/usr/sbin/other", name));
	assert_false(debug_package_find("/nowhere", "/usr/sbin/server", name));
	snprintf(command, sizeof command, "rm -r %s", directory);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_package_of_a_file) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
