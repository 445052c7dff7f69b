/* SPDX-License-Identifier: MIT */
/* What files of Python are called: by sys.path, by directories of packages, by what they have in common. */
#include "views.h"

#include "input/python_files.h"
#include "input/python_path.h"

#define DEEP_BYTES 3900u

static void make_path(struct python_path *p, const char *const *entries)
{
	*p = (struct python_path){ 0 };
	for (size_t i = 0; entries[i]; i++)
		assert_int_equal(python_path_add(p, entries[i]), 0);
}

/* below, module; below NULL: in none. */
static void check_file(const struct python_path *p, const char *file, const char *below, const char *module)
{
	char text[DUMP_CODE_FILE_TEXT], name[PYTHON_MODULE_TEXT];

	bool found = python_path_below(p, file, text);
	if (found != !!below || (found && strcmp(text, below) != 0))
		fail_msg("%s: \"%s\", not \"%s\"", file, found ? text : "in none", below ? below : "in none");
	python_file_module(file, found ? text : NULL, name);
	assert_string_equal(name, module);
}

static void test_directories_of_packages(void **state)
{
	const struct python_path none = { 0 };

	(void)state;
	check_file(&none, "/usr/lib/python3/dist-packages/pandas/core/frame.py", "pandas/core/frame.py",
	           "pandas.core.frame");
	check_file(&none, "/venv/lib/python3.12/site-packages/numpy/__init__.py", "numpy/__init__.py", "numpy");
	check_file(&none, "/venv/lib/python3.12/site-packages/six.py", "six.py", "six");
	check_file(&none, "/usr/lib/python3.11/json/__init__.py", "json/__init__.py", "json");
	check_file(&none, "/opt/lib64/python3.9/ast.py", "ast.py", "ast");
	check_file(&none, "/srv/app/pkg/views.py", NULL, "/srv/app/pkg/views.py");
	check_file(&none, "/srv/app/", NULL, "/srv/app/");
	check_file(&none, "/usr/lib/python3.x/a.py", NULL, "/usr/lib/python3.x/a.py");
	check_file(&none, "/x/site-packages/", NULL, "/x/site-packages/");
	check_file(&none, "<frozen importlib._bootstrap>", NULL, "importlib._bootstrap");
	check_file(&none, "<string>", NULL, "<string>");
	check_file(&none, "", NULL, "python");
}

static void test_longest_entry(void **state)
{
	static const char *const entries[] = { "/usr/lib/python311.zip",
		                               "/srv",
		                               "/srv/app",
		                               "/srv/app",
		                               "/usr/lib/python3.11",
		                               "/srv/app/venv/lib/python3.11/site-packages",
		                               "/srv/app/venv/lib/python3.11/site-packages/mine/src",
		                               "/opt/tools.pyz",
		                               "/srv/caf\xc3\xa9",
		                               "/srv/bad\xef\xbf\xbd",
		                               NULL };
	struct python_path p;

	(void)state;
	make_path(&p, entries);
	check_file(&p, "/srv/app/pkg/views.py", "pkg/views.py", "pkg.views");
	check_file(&p, "/srv/app/pkg/__init__.py", "pkg/__init__.py", "pkg");
	check_file(&p, "/srv/app/main.py", "main.py", "main");
	check_file(&p, "/srv/apple/main.py", "apple/main.py", "apple.main"); /* no part of a name is a directory */
	check_file(&p, "/srv/app", "app", "/srv/app");
	check_file(&p, "/srvs/a.py", NULL, "/srvs/a.py");
	check_file(&p, "/usr/lib/python3.11/json/decoder.py", "json/decoder.py", "json.decoder");
	check_file(&p, "/srv/app/venv/lib/python3.11/site-packages/django/views.py", "django/views.py", "django.views");
	check_file(&p, "/srv/app/venv/lib/python3.11/site-packages/mine/src/mine/a.py", "mine/a.py", "mine.a");
	/* Packages that are further down than any entry were not imported through it. */
	check_file(&p, "/srv/app/other/site-packages/six.py", "six.py", "six");
	check_file(&p, "/srv/app/other/lib/python3.9/ast.py", "ast.py", "ast");
	check_file(&p, "/opt/tools.pyz/tools/run.py", "tools/run.py", "tools.run");
	check_file(&p, "/srv/caf\xc3\xa9/a.py", "a.py", "a");
	check_file(&p, "/srv/bad\xef\xbf\xbd/a.py", "a.py", "a");
	/* Started by its name: no module, whose name might be that of another. */
	check_file(&p, "/srv/app/manage", "manage", "/srv/app/manage");
	check_file(&p, "<string>", NULL, "<string>");
	check_file(&p, "<frozen zipimport>", NULL, "zipimport");
	python_path_done(&p);
}

static void test_entries_are_normalised(void **state)
{
	static const char *const entries[] = { "/srv/app/", "//opt/./x/..//lib", "/", "/..", "lib", "../up", NULL };
	static const char *const here[] = { "", NULL };
	struct python_path p;

	(void)state;
	make_path(&p, entries);
	check_file(&p, "/srv/app/a.py", "a.py", "a");
	check_file(&p, "/srv//./app/x/../a.py", "a.py", "a");
	check_file(&p, "/opt/x/../lib/a.py", "a.py", "a");
	check_file(&p, "/etc/a.py", NULL, "/etc/a.py");
	check_file(&p, "lib/pkg/a.py", "pkg/a.py", "pkg.a");
	check_file(&p, "./lib/a.py", "a.py", "a");
	check_file(&p, "../up/a.py", "a.py", "a");
	check_file(&p, "../../up/a.py", NULL, "../../up/a.py");
	check_file(&p, "x/../../up/a.py", "a.py", "a");
	check_file(&p, "other/a.py", NULL, "other/a.py");
	python_path_done(&p);
	make_path(&p, here);
	check_file(&p, "pkg/a.py", "pkg/a.py", "pkg.a");
	check_file(&p, "../a.py", NULL, "../a.py");
	check_file(&p, "/pkg/a.py", NULL, "/pkg/a.py");
	python_path_done(&p);
}

/* As many and as long as a hostile dump has them. */
static void test_limits(void **state)
{
	char text[DUMP_CODE_FILE_TEXT + 10], name[DUMP_CODE_FILE_TEXT];
	struct python_path p = { 0 };

	(void)state;
	for (unsigned i = 0; i < 2 * DUMP_PATHS_MAX; i++) {
		snprintf(text, sizeof text, "/%u", i);
		assert_int_equal(python_path_add(&p, text), 0);
	}
	assert_int_equal(p.count, DUMP_PATHS_MAX);
	check_file(&p, "/511/a.py", "a.py", "a");
	check_file(&p, "/512/a.py", NULL, "/512/a.py");
	python_path_done(&p);
	memset(text, '/', sizeof text);
	text[DEEP_BYTES] = 0;
	for (unsigned i = 0; i < DUMP_PATHS_MAX; i++)
		assert_int_equal(python_path_add(&p, text), 0);
	assert_true(p.count == DUMP_PATHS_BYTES_MAX / (DEEP_BYTES + 1) && p.bytes <= DUMP_PATHS_BYTES_MAX);
	assert_false(python_path_below(&p, text, name));
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	assert_false(python_path_below(&p, text, name));
	python_path_done(&p);
}

/* ---- in reports ---- */

static void make_snake(struct report *r, const char *const *entries, struct report_options options)
{
	struct dump_builder b;

	dump_builder_snake(&b);
	for (size_t i = 0; entries[i]; i++)
		dump_builder_path(&b, entries[i]);
	make(r, &b, options);
	dump_builder_done(&b);
}

static bool has_group(const struct report *r, const char *name)
{
	for (size_t i = 0; i < r->groups.count; i++)
		if (!strcmp(r->groups.list[i].name, name))
			return true;
	return false;
}

static void test_path_in_reports(void **state)
{
	static const char *const entries[] = { "/srv/app/pkg", "/srv", "/usr/lib/python3/dist-packages", NULL };
	struct report r;

	(void)state;
	make_snake(&r, entries, (struct report_options){ .symbols = false });
	assert_int_equal(report_skipped(&r, DUMP_SKIP_path), 0);
	assert_says(text_of(&r), "  app/tiles.py:82\n");
	assert_says(text_of(&r), "  views.py:31\n");
	assert_says(text_of(&r), "  pandas/core/frame.py:700\n");
	assert_says(json_of(&r), "\"file\":\"/srv/app/tiles.py\"");
	assert_says(json_of(&r), "{\"path\":\"app.tiles\",");
	report_done(&r);
	make_snake(&r, entries, (struct report_options){ .symbols = false, .full_names = true });
	assert_says(text_of(&r), "  /srv/app/tiles.py:82");
	report_done(&r);
	make_snake(&r, entries, (struct report_options){ .symbols = false, .by = BY_MODULE });
	assert_true(has_group(&r, "app.tiles") && has_group(&r, "views") && has_group(&r, "pandas.core.frame"));
	report_done(&r);
	make_snake(&r, entries, (struct report_options){ .symbols = false, .by = BY_LINE });
	assert_true(has_group(&r, "/srv/app/tiles.py:82"));
	assert_says(text_of(&r), "  app/tiles.py:82\n");
	report_done(&r);
	make_snake(&r, entries, (struct report_options){ .symbols = false, .by = BY_FILE });
	assert_says(text_of(&r), "  app/tiles.py\n");
	report_done(&r);
}

/* Of a hostile process. */
static void test_strange_entries(void **state)
{
	static const char *const entries[] = { "", "/", "\x1b[2J", "/srv/\x1b[31m", "", NULL };
	struct report r;

	(void)state;
	make_snake(&r, entries, (struct report_options){ .symbols = false });
	assert_says(text_of(&r), "  tiles.py:82\n");
	assert_says(text_of(&r), "  pkg/views.py:31\n");
	report_done(&r);
}

static unsigned images_named(const struct report *r, const char *name)
{
	unsigned count = 0;

	for (uint32_t i = 1; i < r->images.count; i++)
		count += !strcmp(r->images.list[i].path, name);
	return count;
}

/* A file of both dumps is named once. */
static void test_two_dumps(void **state)
{
	struct dump_builder old, new;
	struct report r;

	(void)state;
	dump_builder_snake(&old);
	dump_builder_snake(&new);
	dump_builder_path(&old, "/srv/app");
	dump_builder_path(&new, "/srv");
	compare(&r, &old, &new);
	assert_int_equal(r.rows.count, 4);
	assert_int_equal(images_named(&r, "tiles") + images_named(&r, "app.tiles"), 1);
	assert_string_equal(source_places_short(&r.images.sources, "/srv/app/tiles.py"),
	                    images_named(&r, "tiles") ? "tiles.py" : "app/tiles.py");
	for (size_t i = 0; i < r.rows.count; i++)
		assert_int_equal(r.rows.list[i].change->old[FIGURE_ALLOCATED_COUNT].samples,
		                 r.rows.list[i].sum[FIGURE_ALLOCATED_COUNT].samples);
	report_done(&r);
	dump_builder_done(&old);
	dump_builder_done(&new);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directories_of_packages),
		cmocka_unit_test(test_longest_entry),
		cmocka_unit_test(test_entries_are_normalised),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_path_in_reports),
		cmocka_unit_test(test_strange_entries),
		cmocka_unit_test(test_two_dumps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
