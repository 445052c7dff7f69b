/* SPDX-License-Identifier: MIT */
#include "catalogue/allocator_names.h"

#include <stddef.h>
#include <string.h>

struct row {
	const char *symbol;
	struct allocation_name name;
};

static const struct row hooks[] = {
#define ROW_(id, symbol, shape, size, group) { symbol, { FAMILY_PLAIN, HOOK_##id, shape, size } },
	HOOK_LIST(ROW_)
#undef ROW_
};

#define TC FAMILY_TCMALLOC
#define MI FAMILY_MIMALLOC

/* Functions under names of their own. */
static const struct row others[] = {
	{ "tc_new", { TC, HOOK_new, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "tc_new_nothrow", { TC, HOOK_new_nothrow, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "tc_new_aligned", { TC, HOOK_new_aligned, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "tc_new_aligned_nothrow", { TC, HOOK_new_aligned_nothrow, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "tc_newarray", { TC, HOOK_new_array, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "tc_newarray_nothrow", { TC, HOOK_new_array_nothrow, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "tc_newarray_aligned", { TC, HOOK_new_array_aligned, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "tc_newarray_aligned_nothrow", { TC, HOOK_new_array_aligned_nothrow, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "tc_malloc_skip_new_handler", { TC, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "tc_free_sized", { TC, HOOK_free_sized, SHAPE_FREE, SIZE_NONE } },
	{ "tc_delete", { TC, HOOK_delete, SHAPE_FREE, SIZE_NONE } },
	{ "tc_delete_sized", { TC, HOOK_delete_sized, SHAPE_FREE, SIZE_NONE } },
	{ "tc_delete_nothrow", { TC, HOOK_delete_nothrow, SHAPE_FREE, SIZE_NONE } },
	{ "tc_delete_aligned", { TC, HOOK_delete_aligned, SHAPE_FREE, SIZE_NONE } },
	{ "tc_deletearray", { TC, HOOK_delete_array, SHAPE_FREE, SIZE_NONE } },
	{ "tc_deletearray_sized", { TC, HOOK_delete_array_sized, SHAPE_FREE, SIZE_NONE } },
	{ "tc_deletearray_nothrow", { TC, HOOK_delete_array_nothrow, SHAPE_FREE, SIZE_NONE } },
	{ "tc_deletearray_aligned", { TC, HOOK_delete_array_aligned, SHAPE_FREE, SIZE_NONE } },
	{ "TCMallocInternalMalloc", { TC, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "TCMallocInternalCalloc", { TC, HOOK_calloc, SHAPE_ALLOC, SIZE_ARG0_X_ARG1 } },
	{ "TCMallocInternalRealloc", { TC, HOOK_realloc, SHAPE_REALLOC, SIZE_ARG1 } },
	{ "TCMallocInternalFree", { TC, HOOK_free, SHAPE_FREE, SIZE_NONE } },
	{ "TCMallocInternalMemalign", { TC, HOOK_memalign, SHAPE_ALLOC, SIZE_ARG1 } },
	{ "TCMallocInternalAlignedAlloc", { TC, HOOK_aligned_alloc, SHAPE_ALLOC, SIZE_ARG1 } },
	{ "TCMallocInternalPosixMemalign", { TC, HOOK_posix_memalign, SHAPE_OUT, SIZE_ARG2 } },
	{ "TCMallocInternalNew", { TC, HOOK_new, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "TCMallocInternalDelete", { TC, HOOK_delete, SHAPE_FREE, SIZE_NONE } },
	{ "mi_malloc_small", { MI, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "mi_malloc_aligned", { MI, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "mi_mallocn", { MI, HOOK_calloc, SHAPE_ALLOC, SIZE_ARG0_X_ARG1 } },
	{ "mi_zalloc", { MI, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "mi_zalloc_small", { MI, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "mi_zalloc_aligned", { MI, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "mi_calloc_aligned", { MI, HOOK_calloc, SHAPE_ALLOC, SIZE_ARG0_X_ARG1 } },
	{ "mi_realloc_aligned", { MI, HOOK_realloc, SHAPE_REALLOC, SIZE_ARG1 } },
	{ "mi_rezalloc", { MI, HOOK_realloc, SHAPE_REALLOC, SIZE_ARG1 } },
	{ "mi_reallocn", { MI, HOOK_reallocarray, SHAPE_REALLOC, SIZE_ARG1_X_ARG2 } },
	{ "mi_new", { MI, HOOK_new, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "mi_new_nothrow", { MI, HOOK_new_nothrow, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "mi_new_aligned", { MI, HOOK_new_aligned, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "mi_new_aligned_nothrow", { MI, HOOK_new_aligned_nothrow, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "mi_free_size", { MI, HOOK_free_sized, SHAPE_FREE, SIZE_NONE } },
	{ "mi_free_size_aligned", { MI, HOOK_free_aligned_sized, SHAPE_FREE, SIZE_NONE } },
	{ "mi_free_aligned", { MI, HOOK_free, SHAPE_FREE, SIZE_NONE } },
	{ "rpmalloc", { FAMILY_RPMALLOC, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "rpzalloc", { FAMILY_RPMALLOC, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "rpaligned_calloc", { FAMILY_RPMALLOC, HOOK_calloc, SHAPE_ALLOC, SIZE_ARG1_X_ARG2 } },
	{ "rpaligned_realloc", { FAMILY_RPMALLOC, HOOK_realloc, SHAPE_REALLOC, SIZE_ARG2 } },
	{ "scalable_aligned_malloc", { FAMILY_TBB, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },
	{ "scalable_aligned_free", { FAMILY_TBB, HOOK_free, SHAPE_FREE, SIZE_NONE } },
	{ "scalable_aligned_realloc", { FAMILY_TBB, HOOK_realloc, SHAPE_REALLOC, SIZE_ARG1 } },
#define RUST_(prefix)                                                                                                  \
	{ prefix "alloc", { FAMILY_RUST, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },                                      \
		{ prefix "alloc_zeroed", { FAMILY_RUST, HOOK_malloc, SHAPE_ALLOC, SIZE_ARG0 } },                       \
		{ prefix "realloc", { FAMILY_RUST, HOOK_realloc, SHAPE_REALLOC, SIZE_ARG3 } },                         \
	{                                                                                                              \
		prefix "dealloc",                                                                                      \
		{                                                                                                      \
			FAMILY_RUST, HOOK_free, SHAPE_FREE, SIZE_NONE                                                  \
		}                                                                                                      \
	}
	RUST_("__rust_"),
	RUST_("__rdl_"),
	RUST_("__rg_"),
#undef RUST_
};

static const struct row *row_of(const struct row *rows, size_t count, const char *symbol)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].symbol[0] == symbol[0] && !strcmp(rows[i].symbol, symbol))
			return &rows[i];
	return NULL;
}

const char *allocation_name_plain(const char *symbol)
{
	static const char crate[] = "7___rustc";
	const char *at = strncmp(symbol, "_RNvC", 5) ? NULL : strstr(symbol, crate);

	if (!at)
		return symbol;
	at += sizeof crate - 1;
	at += strspn(at, "0123456789");
	/* A name that begins with an underscore or a digit has one before it (v0 mangling). */
	return *at == '_' ? at + 1 : symbol;
}

/* Every name has one of these letters in front; most symbols are dismissed by their first two. */
static bool may_be_one(const char *symbol)
{
	if (symbol[0] == '_')
		return symbol[1] == '_' || symbol[1] == 'r' ||
		       (symbol[1] == 'Z' && (symbol[2] == 'n' || symbol[2] == 'd'));
	return symbol[0] && strchr("acdfjmprstvxT", symbol[0]);
}

/* A C function of HOOK_LIST with that prefix. */
static bool read_behind(const char *symbol, const char *prefix, struct allocation_name *name)
{
	const size_t length = strlen(prefix);
	const struct row *hook = strncmp(symbol, prefix, length) ? NULL : row_of(hooks, HOOK_COUNT, symbol + length);

	if (!hook || hook->name.shape >= SHAPE_MAP || (length && hook->symbol[0] == '_'))
		return false;
	*name = hook->name;
	return true;
}

bool allocation_name_read(const char *symbol, struct allocation_name *name)
{
	symbol = allocation_name_plain(symbol);
	if (!may_be_one(symbol))
		return false;
	const struct row *other = row_of(others, sizeof others / sizeof others[0], symbol);
	if (other) {
		*name = other->name;
		return true;
	}
	for (size_t i = 0; known_allocator(i); i++)
		for (unsigned k = 0; k < KNOWN_PREFIXES && known_allocator(i)->prefixes[k]; k++)
			if (read_behind(symbol, known_allocator(i)->prefixes[k], name)) {
				name->family = known_allocator(i)->family;
				return true;
			}
	return false;
}

bool given_name_parse(const char *text, struct given_name *given)
{
	const char *equals = strchr(text, '='), *colon = equals ? strchr(equals, ':') : NULL;
	size_t length = equals ? (size_t)(equals - text) : 0;
	char like[32];

	if (!length || length >= sizeof given->symbol)
		return false;
	*given = (struct given_name){ 0 };
	memcpy(given->symbol, text, length);
	length = colon ? (size_t)(colon - equals - 1) : strlen(equals + 1);
	if (length >= sizeof like)
		return false;
	memcpy(like, equals + 1, length);
	like[length] = '\0';
	if (colon && strcmp(like, "malloc") == 0 && !strcmp(colon, ":1"))
		strcpy(like, "aligned_alloc"); /* its size is argument 1, too */
	else if (colon && strcmp(colon, !strcmp(like, "realloc") ? ":1" : ":0") != 0)
		return false;
	const struct row *hook = row_of(hooks, HOOK_COUNT, like);
	if (!hook || hook->name.shape >= SHAPE_MAP)
		return false;
	given->name = hook->name;
	given->name.family = FAMILY_GIVEN;
	return true;
}
