/* SPDX-License-Identifier: MIT */
/* A region of a dump of kind MEMORY: what the resident memory of the target was. Part of dump_format.h. */
#pragma once

#include <stdint.h>

/*
 * There are two looks, one before the attach and one after the detach. The rows of a look come first, then its
 * dump_look: rows without one are of a look that did not come to its end.
 */
enum dump_memory_kind {
	DUMP_MEMORY_LOOK = 0,      /* this is a dump_look */
	DUMP_MEMORY_LIVE = 1,      /* glibc's malloc: blocks in use, and what is in caches of threads */
	DUMP_MEMORY_FREED = 2,     /* freed, and kept by it */
	DUMP_MEMORY_MALLOC = 3,    /* of its heaps where it is not known which, and what else brk(2) has given */
	DUMP_MEMORY_PYTHON = 4,    /* CPython's pools of small objects */
	DUMP_MEMORY_RUNTIME = 5,   /* the heap of Java, Go or V8, by its name */
	DUMP_MEMORY_STACKS = 6,    /* of threads that sleep; count: of them */
	DUMP_MEMORY_ANONYMOUS = 7, /* other private memory: allocators that are not known, stacks of threads that run */
	DUMP_MEMORY_CODE = 8,      /* generated */
	DUMP_MEMORY_DATA = 9,      /* private copies of pages of files: variables of modules */
	DUMP_MEMORY_FILES = 10,
	DUMP_MEMORY_SHARED = 11,   /* memfd, /dev/shm, System V, shared anonymous mappings */
	DUMP_MEMORY_KERNEL = 12,   /* [vdso] */
	DUMP_MEMORY_UNKNOWN = 13,  /* of several of these, where there was no time to tell */
	DUMP_MEMORY_OTHER_LIVE = 14,  /* as LIVE, of another malloc than glibc's, by its name: "jemalloc" */
	DUMP_MEMORY_OTHER_FREED = 15, /* freed, and kept by that */
	DUMP_MEMORY_KINDS
};
enum dump_memory_moment {
	DUMP_MEMORY_START = 1,
	DUMP_MEMORY_END = 2,
};
struct dump_memory {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint16_t moment;        /* enum dump_memory_moment */
	uint16_t kind;          /* enum dump_memory_kind; a reader counts others as UNKNOWN */
	uint64_t resident;      /* bytes */
	uint64_t swapped;
	uint64_t count;         /* of mappings, or of threads */
	char name[];            /* of the file or mapping, or "" : NUL-terminated */
};
struct dump_look {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint16_t moment;
	uint16_t kind;          /* DUMP_MEMORY_LOOK */
	uint64_t stamp;
	uint64_t rss;           /* VmRSS of the same moment */
	uint64_t flags;
	char text[];            /* why there are no rows; else the allocator beside glibc's, "jemalloc", or "" */
};
#define DUMP_LOOK_FAILED 1u       /* there are no rows */
#define DUMP_LOOK_MALLOC 2u       /* what is live in glibc's malloc is known */
#define DUMP_LOOK_PAGES_CUT 4u    /* not all pages were looked at: what is there of some mappings is the kernel's sum */
#define DUMP_LOOK_CONTENT_CUT 8u  /* not all of the anonymous memory was looked into: ANONYMOUS may be any of 1 to 5 */
#define DUMP_LOOK_NAMES_CUT 16u   /* rows of small parts have no names */
#define DUMP_LOOK_OTHER 32u       /* what is live in the allocator beside glibc's is known */
#define DUMP_MEMORY_ROWS_MAX 64u  /* of a look */
#define DUMP_MEMORY_NAME_MAX 160u /* with its NUL */

/*
 * A record of a region of kind USAGE: what was resident at a moment of the session, without what memattach has there.
 * Kinds are told apart by a look; in between the kernel's sums are in ANONYMOUS, FILES and SHARED.
 */
#define DUMP_USAGE_PARTS 24u
struct dump_usage {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint32_t flags;         /* DUMP_LOOK_…, and DUMP_USAGE_LOOK */
	uint64_t stamp;
	uint64_t rss;           /* bytes */
	uint64_t swapped;
	uint64_t parts[DUMP_USAGE_PARTS]; /* resident bytes, by enum dump_memory_kind */
};
#define DUMP_USAGE_LOOK (1u << 16) /* it is of a look */

/*
 * dump_live_record.flags, in dumps that end with a look: how much of the block was there then, in hundredths of its
 * bytes; without the bit DUMP_LIVE_LOOKED_AT: not looked at. Bit 14 is DUMP_LIVE_PART.
 */
#define DUMP_LIVE_LOOKED_AT (1u << 15)
#define DUMP_LIVE_RESIDENCY(present, swapped) (DUMP_LIVE_LOOKED_AT | (swapped) << 7 | (present))
#define DUMP_LIVE_PRESENT(flags) ((flags) & 127u)
#define DUMP_LIVE_SWAPPED(flags) ((flags) >> 7 & 127u)

_Static_assert(sizeof(struct dump_memory) == 32, "dump_memory");
_Static_assert(sizeof(struct dump_look) == 32, "dump_look");
_Static_assert(sizeof(struct dump_usage) == 224, "dump_usage");
_Static_assert(DUMP_MEMORY_KINDS <= DUMP_USAGE_PARTS, "dump_usage.parts");
