/* SPDX-License-Identifier: MIT */
#include "session/loader_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NAMES(...)                                                                                                     \
	(const char *const[])                                                                                          \
	{                                                                                                              \
		__VA_ARGS__, NULL                                                                                      \
	}

/* Code that dlopen would call, or that would misread what dlopen does. */
static const struct loader_guest {
	const char *what;
	const char *const *names; /* of functions: a module that defines one of them */
} guests[] = {
	{ "audits the loader", NAMES("la_version", "la_objopen") },
	{ "stands between the program and its loader", NAMES("dlopen", "dlclose", "dl_iterate_phdr") },
	{ "collects garbage, and takes what the loader knows for roots", NAMES("GC_gcollect", "GC_malloc") },
};

static bool defines(const struct elf_module *m, const char *const *names)
{
	struct elf_symbol symbol;

	for (; *names; names++)
		if (elf_module_find(m, *names, NULL, &symbol) && symbol.function)
			return true;
	return false;
}

static bool is_of_the_c_library(const struct session *s, const struct elf_module *m)
{
	return m->is_vdso || m->is_loader || m == s->view.libc.module || !strncmp(m->soname, "libc.so.", 8) ||
	       !strncmp(m->soname, "libdl.so.", 9);
}

/* What allocates in the place of the C library has locks of its own, which the program may hold. */
static bool has_own_allocator(const struct session *s, char *why, size_t size)
{
	const struct libc *l = &s->view.libc;

	if (l->allocator && l->allocator != l->module)
		snprintf(why, size, "%s brings malloc, with locks that no one sees", elf_module_name(l->allocator));
	return l->allocator && l->allocator != l->module;
}

/* Why its loader is not to be called, however many threads there are. False: nothing is known. */
static bool has_guest(const struct session *s, char *why, size_t size)
{
	for (size_t i = 0; i < s->view.modules.count; i++) {
		const struct elf_module *m = &s->view.modules.list[i];
		for (unsigned k = 0; k < sizeof guests / sizeof guests[0] && !is_of_the_c_library(s, m); k++)
			if (defines(m, guests[k].names)) {
				snprintf(why, size, "%s %s", elf_module_name(m), guests[k].what);
				return true;
			}
	}
	return false;
}

bool loader_choice_has_more_threads(const struct session *s)
{
	AUTO_FREE pid_t *tids = NULL;
	size_t count = 0;

	return target_tids(&s->target, &tids, &count, ERR_IGNORED) < 0 || count > 1;
}

/* As glibc says from 2.32 on (<sys/single_threaded.h>); children inherit it. */
static bool had_more_threads(const struct session *s)
{
	const struct elf_module *m = s->view.libc.module;
	struct elf_symbol single;
	char value = 1;

	return m && elf_module_find(m, "__libc_single_threaded", NULL, &single) && !single.function &&
	       target_read(&s->memory, single.address, &value, sizeof value, ERR_IGNORED) == 0 && !value;
}

const char *loader_choice_threads_against(const struct session *s)
{
	return loader_choice_has_more_threads(s) ? "it has several threads"
	       : had_more_threads(s)             ? "it has had several threads, or was forked where there were several"
	                                         : NULL;
}

void loader_choice_set_aside(struct session *s, const char *why)
{
	snprintf(s->loader_reason, sizeof s->loader_reason, "%s", why);
	s->maps_payload = s->view.libc.set_aside = true;
}

int loader_choice_make(struct session *s, struct err *e)
{
	const char *threads = loader_choice_threads_against(s);
	char why[sizeof s->loader_reason];

	if (s->options.loader == LOADER_OWN || !libc_loads_payload(&s->view.libc))
		return 0;
	if (has_guest(s, why, sizeof why) || has_own_allocator(s, why, sizeof why)) {
		if (s->options.loader == LOADER_TARGET)
			return err_set(e, ENOTSUP, "%s: its loader must not be called; nothing was changed", why);
		loader_choice_set_aside(s, why);
	} else if (s->options.loader == LOADER_AUTO && threads) {
		loader_choice_set_aside(s, threads);
	}
	return 0;
}
