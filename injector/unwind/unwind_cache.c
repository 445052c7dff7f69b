/* SPDX-License-Identifier: MIT */
#include "unwind_cache.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

_Static_assert(sizeof(struct unwind_cache_file) == 48, "unwind_cache_file");

void unwind_cache_open(struct unwind_cache *c, uint64_t max_bytes)
{
	cache_dir_open(&c->files, ".unwind", max_bytes);
}

void unwind_cache_close(struct unwind_cache *c)
{
	cache_dir_close(&c->files);
}

struct unwind_cache_key unwind_cache_key(const struct elf_module *m, const struct unwind_source *source)
{
	uint64_t exec_bytes = source->exec_end - source->exec_start;
	const uint64_t where[] = { source->address, source->exec_start, source->debug_frame };

	return (struct unwind_cache_key){
		.build_id = m->build_id,
		.build_id_bytes = exec_bytes > UINT32_MAX ? 0 : m->build_id_bytes,
		.source_hash = cache_hash(source->data, source->bytes, cache_hash(where, sizeof where, 0)),
		.exec_bytes = exec_bytes,
	};
}

static struct cache_key file_key(const struct unwind_cache_key *key)
{
	return (struct cache_key){ key->build_id, key->build_id_bytes, UNWIND_VERSION };
}

static size_t file_bytes(uint32_t count)
{
	return sizeof(struct unwind_cache_file) + (size_t)count * 2 * sizeof(uint32_t);
}

static bool is_sound(struct unwind_cache_file *f, size_t bytes, const struct unwind_cache_key *key)
{
	if (f->version != UNWIND_VERSION || f->source_hash != key->source_hash || f->exec_bytes != key->exec_bytes ||
	    f->count == 0 || bytes != file_bytes(f->count))
		return false;
	uint32_t *pc = (uint32_t *)(void *)(f + 1);
	const struct unwind_rows rows = { .pc = pc, .rule = pc + f->count, .count = f->count };
	return unwind_rows_sound(&rows, f->exec_bytes);
}

static uint32_t *copy_words(const uint32_t *words, uint32_t count)
{
	uint32_t *copy = malloc(count * sizeof *copy);

	return copy ? memcpy(copy, words, count * sizeof *copy) : NULL;
}

bool unwind_cache_load(const struct unwind_cache *c, const struct unwind_cache_key *key, struct unwind_rows *rows)
{
	const struct cache_key file = file_key(key);
	size_t bytes;
	AUTO_FREE struct unwind_cache_file *f =
		cache_dir_load(&c->files, &file, UNWIND_CACHE_MAGIC, sizeof(struct unwind_cache_file), &bytes);

	if (!f || !is_sound(f, bytes, key))
		return false;
	const uint32_t *pc = (const uint32_t *)(const void *)(f + 1);
	struct unwind_rows out = { .pc = copy_words(pc, f->count),
		                   .rule = copy_words(pc + f->count, f->count),
		                   .count = f->count,
		                   .capacity = f->count,
		                   .fdes = f->fdes,
		                   .damaged = f->damaged };
	if (!out.pc || !out.rule) {
		unwind_rows_done(&out);
		return false;
	}
	*rows = out;
	return true;
}

void unwind_cache_store(struct unwind_cache *c, const struct unwind_cache_key *key, const struct unwind_rows *rows)
{
	const struct cache_key file = file_key(key);
	size_t bytes = file_bytes(rows->count), half = rows->count * sizeof(uint32_t);

	if (c->files.dir < 0 || rows->count == 0 || bytes > cache_dir_file_max(&c->files))
		return;
	AUTO_FREE struct unwind_cache_file *f = malloc(bytes);
	if (!f)
		return;
	*f = (struct unwind_cache_file){ .source_hash = key->source_hash,
		                         .exec_bytes = key->exec_bytes,
		                         .version = UNWIND_VERSION,
		                         .count = rows->count,
		                         .fdes = rows->fdes,
		                         .damaged = rows->damaged };
	memcpy(f + 1, rows->pc, half);
	memcpy((uint8_t *)(f + 1) + half, rows->rule, half);
	cache_dir_store(&c->files, &file, UNWIND_CACHE_MAGIC, &f->head, bytes);
}
