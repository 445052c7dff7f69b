/* SPDX-License-Identifier: MIT */
#include "unwind/cache_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "files/regular_file.h"
#include "files/whole_io.h"

#define NAME_BYTES (2 * CACHE_DIGEST_BYTES + 32)

_Static_assert(CACHE_DIGEST_BYTES == SHA256_DIGEST_SIZE, "digest");

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
	return fd >= 0 && is_ours(fd) ? cleanup_steal_fd(&fd) : -1;
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
	return named ? cleanup_steal_fd(&fd) : open_below(fd, ".cache", 0);
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

static bool file_name(const struct cache_dir *c, const struct cache_key *key, char name[NAME_BYTES])
{
	if (c->dir < 0)
		return false;
	for (unsigned i = 0; i < CACHE_DIGEST_BYTES; i++)
		snprintf(name + 2 * i, 3, "%02x", key->digest[i]);
	return (size_t)snprintf(name + 2 * CACHE_DIGEST_BYTES, NAME_BYTES - 2 * CACHE_DIGEST_BYTES, "%s", c->suffix) <
	       NAME_BYTES - 2 * CACHE_DIGEST_BYTES;
}

void cache_dir_checksum(const struct cache_head *file, size_t bytes, uint8_t checksum[CACHE_DIGEST_BYTES])
{
	struct sha256_ctx hash;

	sha256_init(&hash);
	sha256_update(&hash, bytes - sizeof *file, (const uint8_t *)(file + 1));
	sha256_digest(&hash, CACHE_DIGEST_BYTES, checksum);
}

static bool is_whole(const struct cache_head *f, size_t bytes, uint64_t magic)
{
	uint8_t checksum[CACHE_DIGEST_BYTES];

	cache_dir_checksum(f, bytes, checksum);
	return f->magic == magic && memcmp(f->checksum, checksum, sizeof checksum) == 0;
}

/* The whole file; never mapped, because somebody may truncate it. */
void *cache_dir_load(const struct cache_dir *c, const struct cache_key *key, uint64_t magic, size_t min_bytes,
                     size_t *bytes)
{
	char name[NAME_BYTES];
	struct stat st;

	if (!file_name(c, key, name))
		return NULL;
	AUTO_CLOSE int fd = regular_file_open_at(c->dir, name, O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_size < (off_t)min_bytes ||
	    (uint64_t)st.st_size > c->max_bytes)
		return NULL;
	size_t size = (size_t)st.st_size;
	AUTO_FREE struct cache_head *f = malloc(size);
	if (!f || !whole_io_pread(fd, f, size, 0) || !is_whole(f, size, magic))
		return NULL;
	futimens(fd, NULL); /* the time of use */
	*bytes = size;
	return cleanup_steal_pointer(&f);
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
	file->magic = magic;
	cache_dir_checksum(file, bytes, file->checksum);
	/* One that a dead process of the same number left is in the way until it is the oldest: then this one is not
	 * stored. */
	snprintf(temporary, sizeof temporary, "%s.%d", name, (int)getpid());
	AUTO_CLOSE int fd = openat(c->dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (!whole_io_pwrite(fd, file, bytes, 0) || renameat(c->dir, temporary, c->dir, name) < 0)
		unlinkat(c->dir, temporary, 0);
	else
		atomic_store_explicit(&c->stored, true, memory_order_relaxed);
}
