/* SPDX-License-Identifier: MIT */
#include "filter/fold.h"

#include <ctype.h>
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
		if (!strncmp(s, "operator", 8) || !strncmp(s, " [clone", 7))
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

/* The headers of libstdc++ and libc++, and the sources that rustc was built from: inlined functions have short names.
 */
static bool is_standard_file(const char *file)
{
	return file && (strstr(file, "/include/c++/") || !strncmp(file, "/rustc/", 7));
}

bool fold_is_standard(const char *function, const char *file)
{
	static const char *const names[] = { "std::",       "__gnu_cxx::",  "operator new", "alloc::",
		                             "core::",      "<alloc::",     "<core::",      "<std::",
		                             "hashbrown::", "<hashbrown::", "__rust_",      "__rdl_",
		                             "__rg_",       "__rustc::",    "_RNvCs",       "std::__cxx11::" };

	if (!function)
		return false;
	const char *name = without_return_type(function);
	return starts_with_any(name, names, sizeof names / sizeof names[0]) || is_of_allocating_trait(name) ||
	       is_standard_file(file);
}

const char *fold_run(const char *function, const char *file)
{
	static const char *const v8[] = { "v8::internal::", "Builtins_" };

	if (!function)
		return NULL;
	if (fold_is_standard(function, file))
		return "std::";
	if (starts_with_any(without_return_type(function), v8, sizeof v8 / sizeof v8[0]))
		return "v8::";
	return strcmp(function, "[jit]") ? NULL : "[jit]";
}

/* The bytes of a name before its parameters and what the compiler put behind it. */
static size_t bare_length(const char *name)
{
	const char *s = name + (strncmp(name, "(anonymous", 10) ? 0 : 10);
	const char *call = strstr(name, "operator()");
	size_t n = call ? (size_t)(call - name) + 10 + strcspn(call + 10, "(") : (size_t)(s - name) + strcspn(s, "(");
	const char *clone = memmem(name, n, " [clone", 7);

	clone = clone ? clone : memmem(name + 1, n ? n - 1 : 0, ".", 1);
	return clone ? (size_t)(clone - name) : n;
}

bool fold_is_called(const char *function, const char *name)
{
	const char *own = function ? without_return_type(function) : "";

	return !strncmp(own, name, strlen(name)) && (!own[strlen(name)] || bare_length(own) == strlen(name));
}

/* Behind the name proper: "_usable_internal", "_n", "0", "_". */
static size_t without_suffixes(const char *name, size_t n)
{
	static const char *const suffixes[] = { "_usable", "_internal", "_impl",  "_aligned", "_array", "array",
		                                "_n",      "_safe",     "_flags", "_bytes",   "_zero",  "_raw" };

	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
		size_t length = strlen(suffixes[i]);
		while (n && (isdigit((unsigned char)name[n - 1]) || name[n - 1] == '_'))
			n--;
		if (n > length && !strncmp(name + n - length, suffixes[i], length)) {
			n -= length;
			i = (size_t)-1; /* there may be several */
		}
	}
	return n;
}

/* xmalloc, my_strdup, Arena::Amalloc; palloc and zalloc only as words: a bitmap_alloc says what it is for. */
static bool ends_as_allocator(const char *name, size_t n)
{
	static const char *const parts[] = { "malloc", "calloc", "realloc", "memalign", "strdup", "strndup", "memdup" };
	static const char *const words[] = { "palloc", "pcalloc", "pnalloc", "zalloc" };

	n = without_suffixes(name, n);
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		size_t length = strlen(parts[i]);
		if (n >= length && !strncasecmp(name + n - length, parts[i], length))
			return true;
	}
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		size_t length = strlen(words[i]);
		if (n >= length && !strncmp(name + n - length, words[i], length) &&
		    (n == length || !isalpha((unsigned char)name[n - length - 1])))
			return true;
	}
	return false;
}

/* Allocators of libraries and servers whose functions have other names; begins, as there are variants. */
static const char *const known_names[] = {
	/* clang-format off */
	"MemoryContextAlloc", "AllocSet", "repalloc_", "palloc_", "GenerationAlloc", "SlabAlloc", "alloc_root",
	"multi_alloc_root", "strdup_root", "strmake_root", "memdup_root", "root_alloc", "my_multi_malloc",
	"mem_heap_", "sql_alloc", "zcalloc_num", "ngx_alloc", "ngx_palloc_", "ngx_create_pool", "_emalloc",
	"_safe_emalloc", "zend_mm_", "g_slice_", "sqlite3Malloc", "sqlite3DbMalloc", "sqlite3DbRealloc",
	"AllocateHeap", "ReallocateHeap", "resource_allocate_bytes", "Arena::grow", "ChunkPool::allocate",
	"PyDataMem_", "PyMem_", "apr_pool_create", "apr_allocator_alloc", "sdsnew", "_sdsnew", "_sdsMakeRoomFor",
	"sdsMakeRoomFor", "v8::internal::AllocWithRetry", "v8::internal::Heap::AllocateExternalBackingStore",
	"v8::internal::BackingStore::Allocate", "v8::ArrayBuffer::NewBackingStore", "v8::internal::AlignedAlloc",
	"v8::base::AlignedAlloc",
	/* clang-format on */
};

bool fold_is_wrapper(const char *function)
{
	if (!function)
		return false;
	const char *name = without_return_type(function);
	size_t n = bare_length(name);
	const char *last = name;
	for (const char *s = name; s + 1 < name + n; s++)
		if (s[0] == ':' && s[1] == ':')
			last = s + 2;
	if (!strncmp(last, "operator new", 12) ||
	    starts_with_any(name, known_names, sizeof known_names / sizeof known_names[0]))
		return true;
	/* std's own are standard; those of programs stand in for them: ut_allocator<T>::allocate */
	if (last > name && !strncasecmp(last, "allocate", 8) && memmem(name, (size_t)(last - name), "llocator", 8))
		return true;
	return ends_as_allocator(last, (size_t)(name + n - last));
}

bool fold_is_collected(const char *function)
{
	static const char *const names[] = { "v8::internal::Heap::AllocateExternalBackingStore",
		                             "v8::internal::BackingStore::Allocate" };

	return function && starts_with_any(without_return_type(function), names, sizeof names / sizeof names[0]);
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
