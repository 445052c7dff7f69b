/* SPDX-License-Identifier: MIT */
#include "cache_dir.h"

#include <dirent.h>
#include <dump_format.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_id.h"
#include "cleanup.h"
#include "grow.h"
#include "regular_file.h"
#include "whole_io.h"

#define NAME_BYTES (2 * DUMP_BUILD_ID_MAX + 32)

/* ---- the directory ---- */

/* A directory of the effective user that nobody else can write to. */
static bool is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
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

void cache_dir_open(struct cache_dir *c, const char *suffix, uint64_t max_bytes)
{
	AUTO_CLOSE int base = open_base();

	*c = (struct cache_dir){ .dir = base < 0 ? -1 : open_below(base, "memattach", O_NOFOLLOW),
		                 .suffix = suffix,
		                 .max_bytes = max_bytes };
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
static struct entry *list(const struct cache_dir *c, size_t *count)
{
	int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct entry *entries = NULL;
	size_t n = 0;

	if (!d && fd >= 0)
		close(fd);
	for (struct dirent *name = d ? readdir(d) : NULL; name; name = readdir(d)) {
		struct stat st;

		if (!strstr(name->d_name, c->suffix) || strlen(name->d_name) >= sizeof entries->name ||
		    fstatat(c->dir, name->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
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

void cache_dir_close(struct cache_dir *c)
{
	size_t count = 0;
	AUTO_FREE struct entry *entries = c->dir >= 0 && c->stored ? list(c, &count) : NULL;
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

/* Four independent chains of xor, rotate and multiply; one multiplication alone would take 4 cycles for each 8 bytes.
 */
uint64_t cache_hash(const void *data, size_t bytes, uint64_t seed)
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

static bool file_name(const struct cache_dir *c, const struct cache_key *key, char name[NAME_BYTES])
{
	char id[BUILD_ID_TEXT];

	if (c->dir < 0 || key->build_id_bytes == 0 || key->build_id_bytes > DUMP_BUILD_ID_MAX)
		return false;
	build_id_format(key->build_id, key->build_id_bytes, id);
	return (size_t)snprintf(name, NAME_BYTES, "%s-%u%s", id, key->version, c->suffix) < NAME_BYTES;
}

/* Of all after the head. */
static uint64_t checksum(const struct cache_head *f, size_t bytes, uint64_t magic)
{
	return cache_hash(f + 1, bytes - sizeof *f, magic);
}

/* The whole file; never mapped, because somebody may truncate it. */
void *cache_dir_load(const struct cache_dir *c, const struct cache_key *key, uint64_t magic, size_t min_bytes,
                     size_t *bytes)
{
	char name[NAME_BYTES];
	struct stat st;

	if (!file_name(c, key, name))
		return NULL;
	AUTO_CLOSE int fd = regular_open_at(c->dir, name, O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_size < (off_t)min_bytes ||
	    (uint64_t)st.st_size > c->max_bytes)
		return NULL;
	size_t size = (size_t)st.st_size;
	AUTO_FREE struct cache_head *f = malloc(size);
	if (!f || !pread_all(fd, f, size, 0) || f->magic != magic || f->checksum != checksum(f, size, magic))
		return NULL;
	futimens(fd, NULL); /* the time of use */
	*bytes = size;
	return steal_pointer(&f);
}

size_t cache_dir_file_max(const struct cache_dir *c)
{
	return c->max_bytes / 4;
}

void cache_dir_store(struct cache_dir *c, const struct cache_key *key, uint64_t magic, struct cache_head *file,
                     size_t bytes)
{
	char name[NAME_BYTES], temporary[NAME_BYTES + 16];

	if (bytes > cache_dir_file_max(c) || !file_name(c, key, name))
		return;
	*file = (struct cache_head){ magic, checksum(file, bytes, magic) };
	/* One that a dead process of the same number left is in the way until it is the oldest: then this one is not
	 * stored. */
	snprintf(temporary, sizeof temporary, "%s.%d", name, (int)getpid());
	AUTO_CLOSE int fd = openat(c->dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (!pwrite_all(fd, file, bytes, 0) || renameat(c->dir, temporary, c->dir, name) < 0)
		unlinkat(c->dir, temporary, 0);
	else
		atomic_store_explicit(&c->stored, true, memory_order_relaxed);
}
