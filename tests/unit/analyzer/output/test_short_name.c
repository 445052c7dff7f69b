/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output/short_name.h"

#define E "\xe2\x80\xa6"

static void test_templates(void **state)
{
	static const char *const cases[][2] = {
		{ "main", "main" },
		{ "f(int)", "f(int)" },
		{ "std::vector<int>::push_back(int&&)", "std::vector<int>::push_back(int&&)" },
		{ "std::vector<std::string, std::allocator<std::string> >::reserve(unsigned long)",
		  "std::vector<" E ">::reserve(unsigned long)" },
		{ "ns::f<a::very::long_one>(b<another::long_one>*) const", "ns::f<" E ">(b<" E ">*) const" },
		{ "operator<(long_type_name const&, x)", "operator<(long_type_name const&, x)" },
		{ "std::operator<< <std::char_traits<char> >(std::ostream&)",
		  "std::operator<< <std::char_traits<char> >(std::ostream&)" },
		{ "a::operator->() const", "a::operator->() const" },
		{ "a::operator<=>(b<another::long_one>)", "a::operator<=>(b<" E ">)" },
		{ "<alloc::vec::Vec<T> as core::Trait>::drop", "<alloc::vec::Vec<T> as core::Trait>::drop" },
		{ "broken<never_closed", "broken<never_closed" },
		{ "std::function<void (int, char)>::operator()(int) const",
		  "std::function<" E ">::operator()(int) const" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char out[256];
		short_name_templates(cases[i][0], out, sizeof out);
		assert_string_equal(out, cases[i][1]);
	}
}

static void test_columns(void **state)
{
	char out[256];

	(void)state;
	short_name("ns::class::function(first_parameter const&, second_parameter const&)", 40, out, sizeof out);
	assert_string_equal(out, "ns::class::function(" E ")");
	short_name("ns::(anonymous namespace)::function(int)", 40, out, sizeof out);
	assert_string_equal(out, "ns::function(int)");
	short_name("(anonymous namespace)::a::(anonymous namespace)::f", 40, out, sizeof out);
	assert_string_equal(out, "a::f");
	short_name("abcdefghijklmnopqrstuvwxyz", 10, out, sizeof out);
	assert_string_equal(out, "abc" E "uvwxyz");
	assert_int_equal(short_name_cut(out, 10), 10);
	char multi[] = "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc"; /* six columns */
	assert_int_equal(short_name_cut(multi, 4), 4);
	assert_string_equal(multi, "\xc3\xa4" E "\xc3\xb6\xc3\xbc");
	short_name("main", 4, out, sizeof out);
	assert_string_equal(out, "main");
	short_name("main", 50, out, 3);
	assert_string_equal(out, "ma");
}

/* Each of them opens and none closes: to look for its end from each takes a square of the length, a hundred seconds in
 * all. */
static void test_angles_that_nobody_closes(void **state)
{
	const struct rlimit limit = { 40, 40 };
	char name[4000], out[4096];

	(void)state;
	for (size_t i = 0; i < sizeof name; i++)
		name[i] = i % 2 ? '<' : 'a';
	name[sizeof name - 1] = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (setrlimit(RLIMIT_CPU, &limit))
			_exit(2);
		for (int i = 0; i < 15000; i++)
			short_name_templates(name, out, sizeof out);
		_exit(strcmp(name, out) ? 1 : 0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_templates),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_angles_that_nobody_closes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
