/* SPDX-License-Identifier: MIT */
#include "catalogue/allocator_catalogue.h"

#include <string.h>

#include "hooks.h"

/* The first that fits is taken: those with a plain malloc come last. */
static const struct known_allocator rows[] = {
	{ "jemalloc", FAMILY_JEMALLOC, .prefixes = { "je_" }, .mallocs = { "je_malloc", "je_malloc_default" },
	  .text = "<jemalloc>: ", .library = "jemalloc" },
	{ "jemalloc (Rust)", FAMILY_JEMALLOC, .prefixes = { "_rjem_" },
	  .mallocs = { "_rjem_malloc", "_rjem_je_malloc_default" } },
	{ "tcmalloc", FAMILY_TCMALLOC, .prefixes = { "tc_" }, .mallocs = { "tc_malloc", "TCMallocInternalMalloc" },
	  .text = "TCMALLOC_", .library = "tcmalloc" },
	{ "mimalloc", FAMILY_MIMALLOC, .prefixes = { "mi_" }, .mallocs = { "mi_malloc" },
	  .text = "mimalloc: ", .library = "mimalloc" },
	{ "rpmalloc", FAMILY_RPMALLOC, .prefixes = { "rp" }, .mallocs = { "rpmalloc" }, .library = "rpmalloc" },
	{ "the TBB allocator", FAMILY_TBB, .prefixes = { "scalable_" }, .mallocs = { "scalable_malloc" },
	  .library = "tbbmalloc" },
	{ "PartitionAlloc", FAMILY_PLAIN, .text = "PartitionAlloc" },
	{ "scudo", FAMILY_SCUDO, .prefixes = { "sc_", "scudo_" }, .text = "Scudo ERROR: ", .library = "scudo" },
	{ "snmalloc", FAMILY_PLAIN, .text = "snmalloc", .library = "snmalloc" },
	{ "AddressSanitizer", FAMILY_PLAIN, .text = "AddressSanitizer" },
	{ "hoard", FAMILY_PLAIN, .library = "hoard" },
	{ "scalloc", FAMILY_PLAIN, .library = "scalloc" },
	{ .name = "Rust", .family = FAMILY_RUST },
	{ .name = "what --hook names", .family = FAMILY_GIVEN },
	{ "the allocator of the Go runtime", FAMILY_PLAIN, .mallocs = { "runtime.mallocgc" }, .never_seen = true },
	{ "a malloc of its own", FAMILY_PLAIN, .prefixes = { "", "__libc_", "__real_" }, .mallocs = { "malloc" } },
};

#define ROWS (sizeof rows / sizeof rows[0])

const struct known_allocator *known_allocator(size_t number)
{
	return number < ROWS ? &rows[number] : NULL;
}

const char *allocator_family_name(enum allocator_family family)
{
	for (size_t i = 0; i < ROWS && family != FAMILY_PLAIN; i++)
		if (rows[i].family == family)
			return rows[i].name;
	return "";
}

const struct known_allocator *known_allocator_in_text(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].text && memmem(bytes, count, rows[i].text, strlen(rows[i].text)))
			return &rows[i];
	return NULL;
}

const struct known_allocator *known_allocator_with_malloc(const char *symbol)
{
	for (size_t i = 0; i < ROWS; i++)
		for (unsigned k = 0; k < KNOWN_MALLOCS && rows[i].mallocs[k]; k++)
			if (rows[i].mallocs[k][0] == symbol[0] && !strcmp(rows[i].mallocs[k], symbol))
				return &rows[i];
	return NULL;
}

bool known_allocator_library(const char *file_name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].library && strstr(file_name, rows[i].library))
			return true;
	return false;
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

#define IS_ONE_OF(name, list) is_one_of(name, list, sizeof(list) / sizeof *(list))

bool catalogue_is_allocation_symbol(const char *name)
{
#define NAME_(id, symbol, shape, size, group) symbol,
	static const char *const hooked[] = { HOOK_LIST(NAME_) };
#undef NAME_
	static const char *const others[] = {
		"malloc_usable_size", "malloc_trim",    "malloc_info",    "malloc_stats",
		"mallinfo",           "mallinfo2",      "mallopt",        "__libc_malloc",
		"__libc_free",        "__libc_calloc",  "__libc_realloc", "__libc_memalign",
		"__libc_valloc",      "__libc_pvalloc", "__libc_mallopt", "__malloc_hugepage_config"
	};

	for (unsigned i = 0; i < sizeof hooked / sizeof hooked[0]; i++)
		if (i != HOOK_mmap && i != HOOK_mmap64 && i != HOOK_munmap && i != HOOK_mremap &&
		    !strcmp(name, hooked[i]))
			return true;
	return IS_ONE_OF(name, others);
}

/* The name behind the prefix of an allocator; the name itself where it has none. */
static const char *without_prefix(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		for (unsigned k = 0; k < KNOWN_PREFIXES && rows[i].prefixes[k]; k++) {
			const size_t length = strlen(rows[i].prefixes[k]);
			if (length && !strncmp(name, rows[i].prefixes[k], length))
				return name + length;
		}
	return name;
}

bool catalogue_is_allocator_symbol(const char *name)
{
	static const char *const more[] = { "mallctl",    "mallctlnametomib", "mallctlbymib", "malloc_stats_print",
		                            "sallocx",    "nallocx",          "smallocx",     "collect",
		                            "malloc_size" };

	if (catalogue_is_allocation_symbol(name) || !strncmp(name, "MallocExtension_", 16) ||
	    !strncmp(name, "_ZN15MallocExtension", 20))
		return true;
	name = without_prefix(name);
	return IS_ONE_OF(name, more) || catalogue_is_allocation_symbol(name);
}

bool catalogue_is_core_symbol(const char *name)
{
	static const char *const names[] = { "malloc", "free", "calloc", "realloc" };

	return IS_ONE_OF(name, names);
}

bool catalogue_is_source_symbol(const char *name)
{
	static const char *const names[] = { "mmap", "mmap64", "__mmap", "sbrk", "__sbrk", "syscall" };

	return IS_ONE_OF(name, names);
}

bool catalogue_is_instrumentation_symbol(const char *name)
{
	static const char *const prefixes[] = { "__asan_", "__sanitizer_", "__lsan_", "__ubsan_", "__hwasan_" };

	for (unsigned i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}
