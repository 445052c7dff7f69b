/* SPDX-License-Identifier: MIT */
#include "escape.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cleanup.h"

#define CHUNK_BYTES (1u << 20)
#define PASSES 2

static uint64_t rotate_right(uint64_t value, unsigned bits)
{
	return value >> bits | value << (64 - bits);
}

static bool is_hit(const struct escape *x, uint64_t word)
{
	if (word >= x->start && word < x->end)
		return true;
	if (!x->has_guard)
		return false;
	uint64_t plain = rotate_right(word, 17) ^ x->guard;
	return plain >= x->start && plain < x->end;
}

static uint64_t search_mapping(const struct escape *x, const struct mapping *m, const struct target_memory *memory,
			       uint64_t *buffer)
{
	struct err ignored;

	for (uint64_t at = m->start; at < m->end;) {
		uint64_t bytes = m->end - at < CHUNK_BYTES ? m->end - at : CHUNK_BYTES;
		if (target_read(memory, at, buffer, bytes, &ignored) < 0) {
			if (bytes > 4096) {
				/* Somewhere in it is a hole: page by page. */
				struct mapping part = *m;
				for (part.start = at; part.start < at + bytes; part.start += 4096) {
					part.end = part.start + 4096;
					uint64_t found = search_mapping(x, &part, memory, buffer);
					if (found)
						return found;
				}
			}
		} else {
			for (size_t i = 0; i < bytes / 8; i++) {
				uint64_t where = at + i * 8;
				if (is_hit(x, buffer[i]) && (where < x->skip_start || where >= x->skip_end))
					return where;
			}
		}
		at += bytes;
	}
	return 0;
}

int escape_search(const struct escape *x, const struct target *t, const struct target_memory *memory, uint64_t *found,
		  struct err *e)
{
	AUTO_FREE uint64_t *buffer = malloc(CHUNK_BYTES);
	char path[64];

	if (!buffer)
		return err_set(e, ENOMEM, "out of memory");
	*found = 0;
	snprintf(path, sizeof path, "/proc/%d/task/%d/maps", t->pid, t->tid);
	for (int pass = 0; pass < PASSES && !*found; pass++) {
		struct maps maps;
		int rc = maps_read(&maps, path, e);
		if (rc < 0)
			return rc;
		for (size_t i = 0; i < maps.count && !*found; i++) {
			const struct mapping *m = &maps.list[i];
			bool special = m->path[0] == '[' && (m->path[1] == 'v'); /* [vvar] and kin */
			if ((m->prot & PROT_WRITE) && (m->prot & PROT_READ) && !special)
				*found = search_mapping(x, m, memory, buffer);
		}
		maps_free(&maps);
	}
	return 0;
}
