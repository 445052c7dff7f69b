/* SPDX-License-Identifier: MIT */
#include "elf/libc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/code.h"
#include "base/cleanup.h"

#define DLOPEN_INTERNAL 0x80000000u /* __RTLD_DLOPEN, asked for by __libc_dlopen_mode */

static uint64_t function_in(const struct elf_module *m, const char *name)
{
	struct elf_symbol s;

	return m && elf_module_find(m, name, NULL, &s) && s.function && !s.ifunc ? s.address : 0;
}

/* gnu_get_libc_version returns the address of the text. */
static bool version_by_code(struct libc *l, const struct target_memory *tm)
{
	uint64_t at = function_in(l->module, "gnu_get_libc_version");
	uint8_t code[RETURNS_ADDRESS_BYTES];
	uint64_t string;
	char text[sizeof l->version];

	if (!at || target_read(tm, at, code, sizeof code, ERR_IGNORED) || !code_returns_address(code, at, &string) ||
	    target_read_string(tm, string, text, sizeof text, ERR_IGNORED) || strspn(text, "0123456789.") == 0)
		return false;
	memcpy(l->version, text, sizeof text);
	return true;
}

/* Else the highest version that it defines symbols for. */
static void version_by_symbols(struct libc *l)
{
	unsigned best = 0;

	for (size_t i = 0; i < l->module->version_name_count; i++) {
		const char *name = l->module->version_names[i];
		unsigned minor;

		if (name && sscanf(name, "GLIBC_2.%u", &minor) == 1 && minor > best)
			best = minor;
	}
	if (best)
		snprintf(l->version, sizeof l->version, "2.%u", best);
}

static bool find_libc(struct libc *l, const struct modules *m)
{
	struct elf_symbol s;

	for (size_t i = 0; i < m->count; i++) {
		const struct elf_module *module = &m->list[i];

		if (module->namespace_id != 0 || module->is_vdso ||
		    !elf_module_find(module, "__libc_start_main", NULL, &s))
			continue;
		/* Programs may define the name too; the libraries tell themselves by what only they have. */
		bool glibc = elf_module_find(module, "gnu_get_libc_version", NULL, &s);
		if (!glibc && !module->is_loader)
			continue;
		l->kind = glibc ? LIBC_GLIBC : LIBC_MUSL;
		l->module = module;
		l->dlclose_unmaps = glibc;
		return true;
	}
	return false;
}

static const struct elf_module *libdl(const struct modules *m)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->list[i].namespace_id == 0 && !strcmp(m->list[i].soname, "libdl.so.2"))
			return &m->list[i];
	return NULL;
}

static int find_entry_points(struct libc *l, const struct modules *m, struct err *e)
{
	const struct elf_module *holder = l->module;

	if (!function_in(holder, "dlopen"))
		holder = libdl(m);
	l->dlopen = function_in(holder, "dlopen");
	l->dlclose = function_in(holder, "dlclose");
	l->dlerror = function_in(holder, "dlerror");
	if (!l->dlopen && l->kind == LIBC_GLIBC) {
		l->dlopen = function_in(l->module, "__libc_dlopen_mode");
		l->dlclose = function_in(l->module, "__libc_dlclose");
		l->dlopen_mode_extra = DLOPEN_INTERNAL;
	}
	l->errno_location = function_in(l->module, "__errno_location");
	/* On musl memattach maps the payload by itself. */
	const char *missing = l->kind == LIBC_GLIBC && !l->dlopen    ? "dlopen"
	                      : l->kind == LIBC_GLIBC && !l->dlclose ? "dlclose"
	                      : !l->errno_location                   ? "__errno_location"
	                                                             : NULL;
	return missing ? err_set(e, ENOSYS, "its C library (%s) has no %s", l->module->path, missing) : 0;
}

/*
 * glibc keeps what dlerror() is to say through a thread-local pointer, NULL for nothing: since 2.34
 * __libc_dlerror_result, which libc.so.6 exports (GLIBC_PRIVATE) and finds through a word of its own, relocated by
 * name.
 */
static void find_dlerror_result(struct libc *l, const struct target_memory *tm)
{
	AUTO_FREE Elf64_Rela *relas = NULL;
	size_t count = 0;
	uint64_t offset;

	if (l->kind != LIBC_GLIBC ||
	    elf_module_relocations(l->module, tm, &l->module->rela, &relas, &count, ERR_IGNORED))
		return;
	for (size_t i = 0; i < count; i++)
		if (ELF64_R_TYPE(relas[i].r_info) == RELOCATION_TLS_OFFSET &&
		    !strcmp(elf_module_symbol_name(l->module, (uint32_t)ELF64_R_SYM(relas[i].r_info)),
		            "__libc_dlerror_result") &&
		    !target_read_u64(tm, l->module->bias + relas[i].r_offset, &offset, ERR_IGNORED))
			l->dlerror_result = (int64_t)offset;
}

static int find_allocator(struct libc *l, const struct modules *m, struct err *e)
{
	struct elf_symbol s;
	struct budget budget;

	budget_start(&budget, BUDGET_MODULES_BYTES, BUDGET_MODULES_WORK);
	struct scope *scope = scope_new(m, &budget);
	if (!scope)
		return err_set(e, ENOMEM, "no memory for the list of modules");
	l->allocator = scope_find(scope, NULL, "malloc", NULL, &s);
	scope_free(scope);
	if (l->allocator) {
		l->malloc = s.ifunc ? 0 : s.address;
		/* Another library's malloc_usable_size would misread this allocator's blocks. */
		l->usable_size = function_in(l->allocator, "malloc_usable_size");
	}
	return budget_check(&budget, e);
}

int libc_find(struct libc *l, const struct modules *m, const struct target_memory *tm, struct err *e)
{
	struct libc out = { 0 };

	if (m->is_static) {
		*l = (struct libc){ .kind = LIBC_STATIC };
		return 0;
	}
	if (!find_libc(&out, m))
		return err_set(e, ENOEXEC, "neither glibc nor musl is among its modules");
	int r = find_entry_points(&out, m, e);
	if (r)
		return r;
	if (out.kind == LIBC_GLIBC && !version_by_code(&out, tm))
		version_by_symbols(&out);
	find_dlerror_result(&out, tm);
	r = find_allocator(&out, m, e);
	if (!r)
		*l = out;
	return r;
}
