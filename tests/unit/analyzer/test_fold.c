/* SPDX-License-Identifier: MIT */
/* Which frames are passed over, by the names of their functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fold.h"

static void test_what_is_folded(void **state)
{
	static const char *const standard[] = {
		"std::__new_allocator<int>::allocate(unsigned long, void const*)",
		"int* std::vector<int, std::allocator<int> >::_M_allocate_and_copy<int const*>(unsigned long)",
		"void std::__cxx11::basic_string<char>::_M_construct<char*>(char*, char*)",
		"operator new(unsigned long)",
		"alloc::raw_vec::RawVec<T,A>::grow_one",
		"<alloc::boxed::Box<dyn FnOnce()> as core::ops::function::FnOnce<()>>::call_once",
		"<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem",
		"<my::Map<fn(u8) -> u8> as alloc::string::ToString>::to_string",
		"<my::Pool as core::alloc::global::GlobalAlloc>::realloc",
		"std::map<int, my::order>::operator[](int const&)",
		"__gnu_cxx::new_allocator<char>::allocate(unsigned long)",
	};
	static const char *const own[] = {
		"main",
		"my::vector<std::string>::push_back(std::string)",
		"order::operator=(order const&)",
		"std::string make_name(int)",
		"(anonymous namespace)::take(std::vector<int>&)",
		"stdio_open",
		"allocate",
		"std::vector<int> my::make<std::string>(int)",
		"operator<<(std::ostream&, my::thing const&)",
		"<my::Key as core::clone::Clone>::clone",
		"<my::Key<<u8 as alloc::borrow::ToOwned>::Owned> as my::Cache>::fill",
		"<my::Key",
	};

	(void)state;
	for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++)
		if (!fold_is_standard(standard[i]))
			fail_msg("%s is standard", standard[i]);
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (fold_is_standard(own[i]))
			fail_msg("%s is not", own[i]);
	assert_false(fold_is_standard(NULL) || fold_is_startup(NULL));
	assert_true(fold_is_startup("clone3") && fold_is_startup("_start") && fold_is_startup("std::rt::lang_start"));
	assert_false(fold_is_startup("main") || fold_is_startup("start_threads") || fold_is_startup("clone_order"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_is_folded) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
