/* SPDX-License-Identifier: MIT */
#include "unwind_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "grow.h"
#include "whole_io.h"

#define SUFFIX ".unwind"
#define NAME_BYTES (2 * BUILD_ID_MAX + 32)

_Static_assert(sizeof(struct unwind_cache_file) == 48, "unwind_cache_file");

/* ---- the directory ---- */

/* A directory of the effective user that nobody else can write to. */
static bool is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static int open_below(int parent, const char *name, int more_flags)
{
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -1;
	AUTO_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | more_flags);
	return fd >= 0 && is_ours(fd) ? steal_fd(&fd) : -1;
}

/* By the XDG Base Directory Specification, a relative path counts as unset. */
static int open_base(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool named = xdg && xdg[0] == '/';
	const char *path = named ? xdg : home;

	if (!path || path[0] != '/')
		return -1;
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || !is_ours(fd))
		return -1;
	return named ? steal_fd(&fd) : open_below(fd, ".cache", 0);
}

void unwind_cache_open(struct unwind_cache *c, uint64_t max_bytes)
{
	AUTO_CLOSE int base = open_base();

	*c = (struct unwind_cache){ .dir = base < 0 ? -1 : open_below(base, "memattach", O_NOFOLLOW), .max_bytes = max_bytes };
}

struct entry {
	char name[NAME_BYTES + 16];
	struct timespec used;
	uint64_t bytes;
};

static int latest_first(const void *a, const void *b)
{
	const struct timespec *x = &((const struct entry *)a)->used, *y = &((const struct entry *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? 1 : -1;
	return (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

/* Our files, and what writers that died left of them. */
static struct entry *list(int dir, size_t *count)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct entry *entries = NULL;
	size_t n = 0;

	if (!d && fd >= 0)
		close(fd);
	for (struct dirent *name = d ? readdir(d) : NULL; name; name = readdir(d)) {
		struct stat st;

		if (!strstr(name->d_name, SUFFIX) || strlen(name->d_name) >= sizeof entries->name ||
		    fstatat(dir, name->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (!grow_list(entries, n))
			break;
		entries[n] = (struct entry){ .used = st.st_mtim, .bytes = (uint64_t)st.st_size };
		strcpy(entries[n++].name, name->d_name);
	}
	if (d)
		closedir(d);
	*count = n;
	return entries;
}

void unwind_cache_close(struct unwind_cache *c)
{
	size_t count = 0;
	AUTO_FREE struct entry *entries = c->dir >= 0 && c->stored ? list(c->dir, &count) : NULL;
	uint64_t sum = 0;

	if (count)
		qsort(entries, count, sizeof *entries, latest_first);
	for (size_t i = 0; i < count; i++) {
		sum += entries[i].bytes;
		if (sum > c->max_bytes)
			unlinkat(c->dir, entries[i].name, 0);
	}
	if (c->dir >= 0)
		close(c->dir);
	c->dir = -1;
}

/* ---- one file ---- */

/* Four independent chains of xor, rotate and multiply; one multiplication alone would take 4 cycles for each 8 bytes. */
uint64_t unwind_cache_hash(const void *data, size_t bytes, uint64_t seed)
{
	const uint64_t odd = 0x9e3779b97f4a7c15ull;
	uint64_t lane[4] = { seed, seed + 1, seed + 2, seed + 3 };
	const uint8_t *at = data;
	size_t left = bytes;

	for (; left > 0; left -= left < 32 ? left : 32, at += 32) {
		uint64_t word[4] = { 0 };

		memcpy(word, at, left < 32 ? left : 32);
		for (int i = 0; i < 4; i++) {
			lane[i] = (lane[i] ^ word[i]) * odd;
			lane[i] ^= lane[i] >> 29;
		}
	}
	uint64_t h = bytes;
	for (int i = 0; i < 4; i++) {
		h = (h ^ lane[i]) * odd;
		h ^= h >> 32;
	}
	return h;
}

struct unwind_cache_key unwind_cache_key(const struct elf_module *m, const struct unwind_source *source)
{
	uint64_t exec_bytes = source->exec_end - source->exec_start;
	const uint64_t where[] = { source->address, source->exec_start, source->debug_frame };

	return (struct unwind_cache_key){
		.build_id = m->build_id,
		.build_id_bytes = exec_bytes > UINT32_MAX ? 0 : m->build_id_bytes,
		.source_hash = unwind_cache_hash(source->data, source->bytes, unwind_cache_hash(where, sizeof where, 0)),
		.exec_bytes = exec_bytes,
	};
}

static bool file_name(const struct unwind_cache *c, const struct unwind_cache_key *key, char name[NAME_BYTES])
{
	char *at = name;

	if (c->dir < 0 || key->build_id_bytes == 0 || key->build_id_bytes > BUILD_ID_MAX)
		return false;
	for (uint32_t i = 0; i < key->build_id_bytes; i++)
		at += sprintf(at, "%02x", key->build_id[i]);
	sprintf(at, "-%u" SUFFIX, UNWIND_VERSION);
	return true;
}

static size_t file_bytes(uint32_t count)
{
	return sizeof(struct unwind_cache_file) + (size_t)count * 2 * sizeof(uint32_t);
}

/* Of all behind the checksum. */
static uint64_t checksum(const struct unwind_cache_file *f, size_t bytes)
{
	const size_t from = offsetof(struct unwind_cache_file, source_hash);

	return unwind_cache_hash((const uint8_t *)f + from, bytes - from, UNWIND_CACHE_MAGIC);
}

static bool is_sound(const struct unwind_cache_file *f, size_t bytes, const struct unwind_cache_key *key)
{
	if (f->magic != UNWIND_CACHE_MAGIC || f->version != UNWIND_VERSION || f->source_hash != key->source_hash ||
	    f->exec_bytes != key->exec_bytes || f->count == 0 || bytes != file_bytes(f->count) ||
	    f->checksum != checksum(f, bytes))
		return false;
	const uint32_t *pc = (const uint32_t *)(const void *)(f + 1), *rule = pc + f->count;
	bool sound = pc[0] == 0;
	for (uint32_t i = 0; i < f->count && sound; i++)
		sound = pc[i] < f->exec_bytes && (i == 0 || pc[i] > pc[i - 1]) && UNWIND_KIND(rule[i]) <= UNWIND_UNSUPPORTED;
	return sound;
}

/* The whole file; never mapped, because somebody may truncate it. */
static struct unwind_cache_file *read_file(int fd, size_t bytes)
{
	AUTO_FREE uint8_t *data = malloc(bytes);

	if (!data || !pread_all(fd, data, bytes, 0))
		return NULL;
	return (struct unwind_cache_file *)(void *)steal_pointer(&data);
}

static uint32_t *copy_words(const uint32_t *words, uint32_t count)
{
	uint32_t *copy = malloc(count * sizeof *copy);

	return copy ? memcpy(copy, words, count * sizeof *copy) : NULL;
}

bool unwind_cache_load(const struct unwind_cache *c, const struct unwind_cache_key *key, struct unwind_rows *rows)
{
	char name[NAME_BYTES];
	struct stat st;

	if (!file_name(c, key, name))
		return false;
	AUTO_CLOSE int fd = openat(c->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size < (off_t)sizeof(struct unwind_cache_file) || (uint64_t)st.st_size > c->max_bytes)
		return false;
	AUTO_FREE struct unwind_cache_file *f = read_file(fd, (size_t)st.st_size);
	if (!f || !is_sound(f, (size_t)st.st_size, key))
		return false;
	const uint32_t *pc = (const uint32_t *)(const void *)(f + 1);
	struct unwind_rows out = { .pc = copy_words(pc, f->count), .rule = copy_words(pc + f->count, f->count),
				   .count = f->count, .capacity = f->count, .fdes = f->fdes, .damaged = f->damaged };
	if (!out.pc || !out.rule) {
		unwind_rows_done(&out);
		return false;
	}
	futimens(fd, NULL); /* the time of use */
	*rows = out;
	return true;
}

void unwind_cache_store(struct unwind_cache *c, const struct unwind_cache_key *key, const struct unwind_rows *rows)
{
	char name[NAME_BYTES], temporary[NAME_BYTES + 16];
	size_t bytes = file_bytes(rows->count), half = rows->count * sizeof(uint32_t);

	/* One file that pushes out most of the others is not worth it. */
	if (rows->count == 0 || bytes > c->max_bytes / 4 || !file_name(c, key, name))
		return;
	AUTO_FREE struct unwind_cache_file *f = malloc(bytes);
	if (!f)
		return;
	*f = (struct unwind_cache_file){ .magic = UNWIND_CACHE_MAGIC, .source_hash = key->source_hash,
					 .exec_bytes = key->exec_bytes, .version = UNWIND_VERSION, .count = rows->count,
					 .fdes = rows->fdes, .damaged = rows->damaged };
	memcpy(f + 1, rows->pc, half);
	memcpy((uint8_t *)(f + 1) + half, rows->rule, half);
	f->checksum = checksum(f, bytes);
	/* One that a dead process of the same number left is in the way until it is the oldest: then this one is not stored. */
	snprintf(temporary, sizeof temporary, "%s.%d", name, (int)getpid());
	AUTO_CLOSE int fd = openat(c->dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (!pwrite_all(fd, f, bytes, 0) || renameat(c->dir, temporary, c->dir, name) < 0)
		unlinkat(c->dir, temporary, 0);
	else
		atomic_store_explicit(&c->stored, true, memory_order_relaxed);
}
