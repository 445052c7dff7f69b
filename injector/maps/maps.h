/* SPDX-License-Identifier: MIT */
/* /proc/PID/maps: parsed, searched, and compared for the receipt. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* in the file */
	uint64_t inode;  /* 0: no file */
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t prot; /* PROT_READ | PROT_WRITE | PROT_EXEC */
	bool shared;
	bool deleted;     /* the path ended in " (deleted)", which is cut off */
	const char *path; /* "" for anonymous memory; "[heap]", "[vdso]" …; the kernel's escape \012 is undone */
};

struct maps {
	struct mapping *list; /* sorted by start, disjoint */
	size_t count;
	char *text; /* owns the paths */
};

/*
 * Reads a maps file: "/proc/PID/maps", or "/proc/PID/task/TID/maps" of a live thread when the main thread has
 * exited. An empty file (a zombie) is -ESRCH. maps_free afterwards; on failure *m is untouched.
 */
int maps_read(struct maps *m, const char *file, struct err *e) WARN_UNUSED;

/*
 * The same from text[bytes]; the text is copied. -EINVAL for anything the kernel would not write. Empty text
 * is allowed.
 */
int maps_parse(struct maps *m, const char *text, size_t bytes, struct err *e) WARN_UNUSED;
void maps_free(struct maps *m);

/* The mapping that holds address, or NULL. */
const struct mapping *maps_find(const struct maps *m, uint64_t address);

/* Same file: device and inode, which are not 0. */
bool mapping_same_file(const struct mapping *a, const struct mapping *b);

/*
 * What differs between two snapshots, byte range by byte range: a mapping that the kernel merely split or
 * merged is no difference. before or after is NULL where nothing was mapped.
 */
struct maps_change {
	uint64_t start;
	uint64_t end;
	const struct mapping *before;
	const struct mapping *after;
};
typedef void (*maps_change_fn)(void *context, const struct maps_change *change);

/* Calls fn for each maximal range, in order of addresses; fn may be NULL. Returns how many there are. */
size_t maps_diff(const struct maps *before, const struct maps *after, maps_change_fn fn, void *context);

/* "7f00…-7f01… r-xp /lib/x.so (was rw-p)": one line without newline, cut to size. Returns buffer. */
const char *maps_change_format(const struct maps_change *change, char *buffer, size_t size);
