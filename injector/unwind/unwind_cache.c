/* SPDX-License-Identifier: MIT */
#include "unwind/unwind_cache.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/proc_status.h"
#include "unwind/stack_base.h"

_Static_assert(sizeof(struct unwind_cache_file) == 56, "unwind_cache_file");

void unwind_cache_open(struct unwind_cache *c, uint64_t max_bytes)
{
	cache_dir_open(&c->files, ".unwind", max_bytes);
}

void unwind_cache_close(struct unwind_cache *c)
{
	cache_dir_close(&c->files);
}

static bool same_namespace(pid_t target, const char *kind)
{
	char path[40], own[64] = "", other[64] = "";

	snprintf(path, sizeof path, "/proc/%d/ns/%s", target, kind);
	bool read = readlink(path, other, sizeof other - 1) > 0;
	snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
	return read && readlink(path, own, sizeof own - 1) > 0 && strcmp(own, other) == 0;
}

bool unwind_cache_is_for(pid_t target)
{
	unsigned long real, effective, saved, own = geteuid();
	char status[STATUS_BYTES];
	const char *uids;

	if (proc_status_read(status, target, 0) < 0 || !(uids = proc_status_field(status, "Uid")) ||
	    sscanf(uids, "%lu %lu %lu", &real, &effective, &saved) != 3)
		return false;
	return real == own && effective == own && saved == own && same_namespace(target, "user") &&
	       same_namespace(target, "mnt");
}

static void hash_number(struct sha256_ctx *hash, uint64_t number)
{
	sha256_update(hash, sizeof number, (const uint8_t *)&number);
}

static int hash_code(void *context, const uint8_t *code, size_t bytes, uint64_t at)
{
	struct sha256_ctx *hash = context;

	hash_number(hash, at);
	hash_number(hash, bytes);
	sha256_update(hash, bytes, code);
	return 0;
}

bool unwind_cache_key(struct cache_key *key, const struct module_file *f, const struct unwind_source *source)
{
	uint32_t base_start = 0, base_end = 0;
	struct sha256_ctx hash;

	if (source->exec_end - source->exec_start > UINT32_MAX)
		return false;
	stack_base_find(f->module, &base_start, &base_end);
	const uint64_t where[] = { UNWIND_VERSION,     source->address,  source->bytes, source->debug_frame,
		                   source->exec_start, source->exec_end, base_start,    base_end };
	sha256_init(&hash);
	for (size_t i = 0; i < sizeof where / sizeof *where; i++)
		hash_number(&hash, where[i]);
	sha256_update(&hash, source->bytes, source->data);
	if (module_file_code(f, 0, hash_code, &hash, ERR_IGNORED) < 0)
		return false;
	sha256_digest(&hash, sizeof key->digest, key->digest);
	return true;
}

static size_t file_bytes(uint32_t count)
{
	return sizeof(struct unwind_cache_file) + (size_t)count * 2 * sizeof(uint32_t);
}

static bool is_sound(struct unwind_cache_file *f, size_t bytes, uint64_t exec_bytes)
{
	if (f->count == 0 || bytes != file_bytes(f->count))
		return false;
	uint32_t *pc = (uint32_t *)(void *)(f + 1);
	const struct unwind_rows rows = { .pc = pc, .rule = pc + f->count, .count = f->count };
	return unwind_rows_sound(&rows, exec_bytes);
}

static uint32_t *copy_words(const uint32_t *words, uint32_t count)
{
	uint32_t *copy = malloc(count * sizeof *copy);

	return copy ? memcpy(copy, words, count * sizeof *copy) : NULL;
}

bool unwind_cache_load(const struct unwind_cache *c, const struct cache_key *key, uint64_t exec_bytes,
                       struct unwind_rows *rows)
{
	size_t bytes;
	AUTO_FREE struct unwind_cache_file *f =
		cache_dir_load(&c->files, key, UNWIND_CACHE_MAGIC, sizeof(struct unwind_cache_file), &bytes);

	if (!f || !is_sound(f, bytes, exec_bytes))
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

void unwind_cache_store(struct unwind_cache *c, const struct cache_key *key, const struct unwind_rows *rows)
{
	size_t bytes = file_bytes(rows->count), half = rows->count * sizeof(uint32_t);

	if (c->files.dir < 0 || rows->count == 0 || bytes > cache_dir_file_max(&c->files))
		return;
	AUTO_FREE struct unwind_cache_file *f = malloc(bytes);
	if (!f)
		return;
	*f = (struct unwind_cache_file){ .count = rows->count, .fdes = rows->fdes, .damaged = rows->damaged };
	memcpy(f + 1, rows->pc, half);
	memcpy((uint8_t *)(f + 1) + half, rows->rule, half);
	cache_dir_store(&c->files, key, UNWIND_CACHE_MAGIC, &f->head, bytes);
}
