/* SPDX-License-Identifier: MIT */
/* Which C library the target runs on, and where its functions are that memattach calls there. */
#pragma once

#include "elf/modules.h"
#include "elf/scope.h"

enum libc_kind {
	LIBC_GLIBC,
	LIBC_MUSL,
	LIBC_STATIC, /* linked into a static program, whichever it is: no function of it is known */
};

struct libc {
	enum libc_kind kind;
	char version[32];                /* "2.36"; "" unknown (musl does not tell) */
	const struct elf_module *module; /* libc.so.6 or musl's loader; NULL: LIBC_STATIC */
	/*
	 * dlopen(path, mode) … On old glibc without libdl.so.2: __libc_dlopen_mode, with mode | 0x80000000.
	 */
	uint64_t dlopen;
	uint32_t dlopen_mode_extra; /* to be or'ed into the mode: 0 or 0x80000000 */
	uint64_t dlclose;           /* dlclose, or __libc_dlclose to go with __libc_dlopen_mode */
	uint64_t dlerror;           /* 0: none */
	int64_t dlerror_result;     /* offset from the thread pointer of the word that leads to its pending message; 0
	                               unknown */
	uint64_t errno_location;    /* __errno_location */
	bool dlclose_unmaps;        /* false on musl */
	bool set_aside;             /* memattach maps its payload all the same (load.h) */
	/* The allocator in force, by the global scope of the base namespace. */
	const struct elf_module *allocator; /* module that defines malloc, NULL unknown */
	uint64_t malloc;                    /* address of its malloc, 0 if unknown or an ifunc */
	uint64_t usable_size;               /* its malloc_usable_size, 0 none */
};

/* Can its dlopen load the payload, and its dlclose unload it? Else memattach maps the payload by itself (load.h). */
static inline bool libc_loads_payload(const struct libc *l)
{
	return l->dlopen && l->dlclose && l->dlclose_unmaps && !l->set_aside;
}

/*
 * Pointers into m stay valid as long as m. -ENOEXEC: no C library that is known; -ENOSYS: it lacks a function
 * (named).
 */
int libc_find(struct libc *l, const struct modules *m, const struct target_memory *tm, struct err *e) WARN_UNUSED;
