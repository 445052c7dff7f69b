/* SPDX-License-Identifier: MIT */
#include "fold.h"

#include <stddef.h>
#include <string.h>

#define RETURN_TYPE_MAX 4096

static bool starts_with_any(const char *text, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(text, list[i], strlen(list[i])))
			return true;
	return false;
}

/* The name behind the type that a function template returns, which is the last space outside of brackets. */
static const char *without_return_type(const char *function)
{
	const char *name = function;
	int depth = 0;

	for (const char *s = function; *s && s - function < RETURN_TYPE_MAX; s++) {
		if (!strncmp(s, "operator", 8))
			break;
		if (*s == '(' && !depth && s > name)
			break;
		depth += (*s == '<' || *s == '(' || *s == '{') - (*s == '>' || *s == ')' || *s == '}');
		if (*s == ' ' && !depth)
			name = s + 1;
	}
	return name;
}

/* Of Rust, <TYPE as TRAIT>::function: the traits of alloc are those of containers, and of core::alloc of allocators. */
static bool is_of_allocating_trait(const char *name)
{
	static const char *const traits[] = { " as alloc::", " as core::alloc::" };
	int depth = 0;

	if (*name != '<')
		return false;
	for (const char *s = name; *s && s - name < RETURN_TYPE_MAX; s++) {
		depth += (*s == '<') - (*s == '>' && s[-1] != '-');
		if (!depth)
			return false;
		if (depth == 1 && *s == ' ' && starts_with_any(s, traits, sizeof traits / sizeof traits[0]))
			return true;
	}
	return false;
}

bool fold_is_standard(const char *function)
{
	static const char *const names[] = { "std::",       "__gnu_cxx::",  "operator new", "alloc::",
		                             "core::",      "<alloc::",     "<core::",      "<std::",
		                             "hashbrown::", "<hashbrown::", "__rust_",      "__rdl_",
		                             "__rg_",       "__rustc::",    "_RNvCs",       "std::__cxx11::" };

	if (!function)
		return false;
	const char *name = without_return_type(function);
	return starts_with_any(name, names, sizeof names / sizeof names[0]) || is_of_allocating_trait(name);
}

bool fold_is_startup(const char *function)
{
	static const char *const whole[] = { "_start",
		                             "start_thread",
		                             "clone",
		                             "__clone",
		                             "clone3",
		                             "__clone3",
		                             "thread_start",
		                             "__libc_start_call_main",
		                             "__libc_start_main",
		                             "__libc_start_main_impl",
		                             "execute_native_thread_routine",
		                             "__pthread_start",
		                             "__cxa_thread_start" };
	static const char *const begins[] = {
		"std::thread::", "std::rt::",        "std::sys::",   "std::sys_common::",
		"std::__invoke", "std::panicking::", "std::panic::", "core::ops::function::"
	};

	if (!function)
		return false;
	for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
		if (!strcmp(function, whole[i]))
			return true;
	return starts_with_any(without_return_type(function), begins, sizeof begins / sizeof begins[0]) ||
	       !strncmp(function, "__libc_start_main@", 18);
}
