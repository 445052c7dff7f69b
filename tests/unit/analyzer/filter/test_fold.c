/* SPDX-License-Identifier: MIT */
/* Which frames are passed over, by the names of their functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "filter/fold.h"

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
		if (!fold_is_standard(standard[i], NULL))
			fail_msg("%s is standard", standard[i]);
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (fold_is_standard(own[i], NULL))
			fail_msg("%s is not", own[i]);
	assert_false(fold_is_standard(NULL, NULL) || fold_is_startup(NULL));
	assert_true(fold_is_startup("clone3") && fold_is_startup("_start") && fold_is_startup("std::rt::lang_start"));
	assert_false(fold_is_startup("main") || fold_is_startup("start_threads") || fold_is_startup("clone_order"));
}

static void test_what_runs_are_called(void **state)
{
	(void)state;
	assert_string_equal(fold_run("std::__invoke_impl<void>(int)", NULL), "std::");
	assert_string_equal(fold_run("v8::internal::Builtin_HandleApiCall(int)", NULL), "v8::");
	assert_string_equal(fold_run("Builtins_JSEntry", NULL), "v8::");
	assert_string_equal(fold_run("[jit]", NULL), "[jit]");
	assert_null(fold_run("v8::Function::Call()", NULL));
	assert_null(fold_run(NULL, NULL));
	assert_true(fold_is_wrapper("_sdsnewlen") && !fold_is_wrapper("createStringObject"));
}

static void test_what_an_inlined_function_is_by_its_file(void **state)
{
	(void)state;
	assert_true(fold_is_standard("__invoke_impl<void>", "/usr/include/c++/12/bits/invoke.h"));
	assert_true(fold_is_standard("grow_one<u8>", "/rustc/90b35a623/library/alloc/src/raw_vec.rs"));
	assert_false(fold_is_standard("operator()", "/home/me/src/svc.cc"));
	assert_false(fold_is_standard(NULL, "/usr/include/c++/12/bits/invoke.h"));
}

static void test_wrappers_of_allocators(void **state)
{
	static const char *const wrappers[] = {
		"zmalloc_usable",
		"ztrymalloc_usable_internal",
		"zcalloc_num",
		"my_malloc",
		"my_strdup",
		"os::malloc(unsigned long, MEMFLAGS)",
		"os::realloc(void*, unsigned long, MEMFLAGS, NativeCallStack const&)",
		"Arena::Amalloc(unsigned long)",
		"MemoryContextAllocZero",
		"AllocSetAlloc.part.0",
		"palloc0",
		"repalloc_extended",
		"g_malloc0_n",
		"CRYPTO_zalloc",
		"ngx_palloc",
		"ngx_pcalloc",
		"sqlite3MallocZero",
		"CHeapObjBase::operator new(unsigned long)",
		"node::NodeArrayBufferAllocator::AllocateUninitialized(unsigned long)",
		"ut_allocator<unsigned char, true>::allocate(unsigned long, unsigned char const*)",
		"alloc_root",
		"ChunkPool::allocate(unsigned long, AllocFailStrategy::AllocFailEnum)",
		"Binary_string::realloc_raw(unsigned long)",
		"xmalloc.constprop.0",
		"xmalloc [clone .isra.0]",
		"(anonymous namespace)::pool_malloc(int)",
	};
	static const char *const others[] = {
		"main",
		"handle_upload(int)",
		"bitmap_alloc",
		"deflateInit2_",
		"malloc_order()",
		"cache::allocate(int)",
		"mallocate_places",
		"app::run()::operator()(int)",
		"operator()",
		"(",
		"",
		"createStringObject",
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++)
		if (!fold_is_wrapper(wrappers[i]))
			fail_msg("%s is a wrapper", wrappers[i]);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (fold_is_wrapper(others[i]))
			fail_msg("%s is not", others[i]);
	assert_false(fold_is_wrapper(NULL));
}

static void test_a_name_without_parameters(void **state)
{
	(void)state;
	assert_true(fold_is_called("pool_get", "pool_get") && fold_is_called("pool_get.part.0", "pool_get"));
	assert_true(fold_is_called("pool::get(int, char)", "pool::get"));
	assert_true(fold_is_called("pool::get(int, char)", "pool::get(int, char)"));
	assert_false(fold_is_called("pool_get_more", "pool_get") || fold_is_called(NULL, "pool_get"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_is_folded),
		                            cmocka_unit_test(test_what_runs_are_called),
		                            cmocka_unit_test(test_what_an_inlined_function_is_by_its_file),
		                            cmocka_unit_test(test_wrappers_of_allocators),
		                            cmocka_unit_test(test_a_name_without_parameters) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
