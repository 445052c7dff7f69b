/* SPDX-License-Identifier: MIT */
/*
 * What the mappings of a process are, and how much of each is there: rows that are collected in any order and then
 * summed up by kind and name.
 *
 * A mapping is what its line in /proc/PID/maps says, and nothing more is guessed: anonymous memory without a name is
 * "anonymous" unless somebody has proved what it is (census.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "maps/maps.h"

enum region_kind {
	REGION_HEAP,      /* [heap], which brk(2) moves: glibc's main arena, and what else calls it */
	REGION_ARENA,     /* of glibc, not the main one; by its address */
	REGION_MAPPED,    /* blocks of glibc's malloc with mappings of their own */
	REGION_PYTHON,    /* CPython's pools of small objects */
	REGION_RUNTIME,   /* the heap of Go, Java or V8 */
	REGION_ALLOCATOR, /* of another malloc than glibc's, by its name */
	REGION_STACK,     /* of threads, by their names */
	REGION_ANONYMOUS, /* private; by its name. Without one: other allocators, .bss … */
	REGION_CODE,      /* private, executable, of no file: compiled while the program runs */
	REGION_DATA,      /* private and writable, of a file */
	REGION_FILE,      /* of a file: code, constants, what is read through a mapping */
	REGION_SHARED,    /* no file of a disk stands behind it: memfd, /dev/shm, System V, shared anonymous */
	REGION_KERNEL,    /* [vdso] … */
	REGION_UNKNOWN,   /* of several mappings that were not looked at: no mapping is */
	REGION_KINDS
};

struct region {
	enum region_kind kind;
	const char *name;                     /* not owned; "" none */
	uint64_t address;                     /* of an arena, else 0 */
	uint64_t mappings;                    /* threads, of stacks */
	uint64_t reserved, resident, swapped; /* bytes */
	uint64_t huge;                        /* of resident: in pages of 2 MiB */
};

struct region_table {
	struct region *list;
	size_t count;
};

/*
 * The kind and name of a mapping by its line; the other fields are 0. False: its pages are no part of VmRSS, and may be
 * a device's: not to be looked at.
 */
bool region_of_mapping(struct region *r, const struct mapping *m);
/* Adds a row; one that the last row goes on with is added to that. -ENOMEM. */
int region_table_add(struct region_table *t, const struct region *r, struct err *e) WARN_UNUSED;
/* One row for each kind, name and address, those with the most resident bytes first. */
void region_table_sum(struct region_table *t);
/* After the sum: all arenas as one row. */
void region_table_join_arenas(struct region_table *t);
void region_table_free(struct region_table *t);

/* For JSON: one word. */
const char *region_kind_name(enum region_kind kind);
/* For people. */
const char *region_kind_title(enum region_kind kind);
