/* SPDX-License-Identifier: MIT */
#include "symbol_cache.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "file_identity.h"

void symbol_cache_open(struct symbol_cache *c, uint64_t max_bytes)
{
	const char *library = dwfl_version(NULL);
	uint64_t program = file_identity("/proc/self/exe");

	cache_dir_open(&c->files, ".symbols", max_bytes);
	c->program = program && library ? cache_hash(library, strlen(library), program) : 0;
}

void symbol_cache_close(struct symbol_cache *c)
{
	cache_dir_close(&c->files);
}

size_t symbol_cache_file_max(const struct symbol_cache *c)
{
	return cache_dir_file_max(&c->files);
}

static struct cache_key key_of(const struct image *image)
{
	return (struct cache_key){ image->build_id, image->build_id_bytes, SYMBOL_FILE_VERSION };
}

static uint64_t identity_of(const struct symbol_cache *c, const struct image_found *file)
{
	const uint64_t files[] = { file->identity, file->debug_identity };

	return cache_hash(files, sizeof files, c->program);
}

static bool is_current(const struct symbol_file *f, uint64_t identity)
{
	const char *alt_path = symbol_file_string(f, f->alt_path);

	return f->identity == identity && f->alt_identity == (alt_path ? file_identity(alt_path) : 0);
}

bool symbol_cache_wants(const struct symbol_cache *c, const struct image *image)
{
	return c->files.dir >= 0 && c->program && image->build_id_bytes;
}

struct symbol_file *symbol_cache_load(const struct symbol_cache *c, const struct image *image,
                                      const struct image_found *file)
{
	const struct cache_key key = key_of(image);
	size_t bytes;

	if (!symbol_cache_wants(c, image) || !file->settled)
		return NULL;
	AUTO_FREE struct symbol_file *f =
		cache_dir_load(&c->files, &key, SYMBOL_FILE_MAGIC, sizeof(struct symbol_file), &bytes);
	return f && symbol_file_is_sound(f, bytes) && is_current(f, identity_of(c, file)) ? steal_pointer(&f) : NULL;
}

void symbol_cache_store(struct symbol_cache *c, const struct image *image, const struct image_found *file,
                        struct symbol_file *f, size_t bytes)
{
	const struct cache_key key = key_of(image);

	f->identity = identity_of(c, file);
	if (file->settled)
		cache_dir_store(&c->files, &key, SYMBOL_FILE_MAGIC, &f->head, bytes);
}
