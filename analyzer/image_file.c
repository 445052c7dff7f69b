/* SPDX-License-Identifier: MIT */
#include "image_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"

#define SYSTEM_DEBUG_DIR "/usr/lib/debug"

static int no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
	(void)module, (void)data, (void)name, (void)base, (void)path, (void)elf;
	return -1; /* the file was handed over when the module was reported */
}

/* -1: no such file; 0: another file; 1: the file of the image. */
static int is_file_of(const struct image *image, const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	const void *id = NULL;
	ssize_t n = -1;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -1;
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	bool good = elf && elf_kind(elf) == ELF_K_ELF;
	if (good) {
		n = dwelf_elf_gnu_build_id(elf, &id);
		if (n < 0)
			n = 0;
		good = (size_t)n == image->build_id_bytes && !memcmp(id ? id : "", image->build_id, (size_t)n);
	}
	elf_end(elf);
	return good;
}

/* dwfl_report_elf takes the descriptor. */
static bool report(struct image_file *file, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	dwfl_report_begin(file->dwfl);
	file->module = dwfl_report_elf(file->dwfl, path, path, fd, 0, true);
	if (!file->module)
		close(fd);
	dwfl_report_end(file->dwfl, NULL, NULL);
	return file->module != NULL;
}

static bool try_path(struct image_file *file, const struct image *image, enum image_source source, const char *path)
{
	int match = is_file_of(image, path);

	if (match == 0 && source == IMAGE_SOURCE_FILE && !file->reason)
		file->reason = image->build_id_bytes ? "the file was replaced since (its build-id differs)" :
						       "the file at its path is another one";
	if (match <= 0 || !report(file, path))
		return false;
	file->source = source;
	return true;
}

/* DIR/.build-id/xx/yyyy[.debug] */
static bool try_build_id(struct image_file *file, const struct image *image, const char *dir)
{
	char hex[2 * DUMP_BUILD_ID_MAX + 1];
	char path[PATH_MAX];

	if (image->build_id_bytes < 2)
		return false;
	for (uint32_t i = 0; i < image->build_id_bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", image->build_id[i]);
	if (snprintf(path, sizeof path, "%s/.build-id/%.2s/%s", dir, hex, hex + 2) < (int)sizeof path &&
	    try_path(file, image, IMAGE_SOURCE_FILE, path))
		return true;
	return snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", dir, hex, hex + 2) < (int)sizeof path &&
	       try_path(file, image, IMAGE_SOURCE_DEBUG, path);
}

static bool try_root(struct image_file *file, const struct image *image, const char *root)
{
	char path[PATH_MAX];

	return image->build_id_bytes && snprintf(path, sizeof path, "%s%s", root, image->path) < (int)sizeof path &&
	       try_path(file, image, IMAGE_SOURCE_FILE, path);
}

static bool find(struct image_file *file, const struct image *image, const struct image_search *search)
{
	char root[64];

	if (image->path[0] == '/' && try_path(file, image, IMAGE_SOURCE_FILE, image->path))
		return true;
	snprintf(root, sizeof root, "/proc/%d/root", search->pid);
	if (search->pid && image->path[0] == '/' && try_root(file, image, root))
		return true;
	if (search->debug_path && ((image->path[0] == '/' && try_root(file, image, search->debug_path)) ||
				   try_build_id(file, image, search->debug_path)))
		return true;
	return try_build_id(file, image, SYSTEM_DEBUG_DIR);
}

/* libdwfl keeps pointers to the callbacks and to the path for as long as the Dwfl lives. */
static char system_directories[] = ":.debug:" SYSTEM_DEBUG_DIR;
static char *debug_directories = system_directories;
static const Dwfl_Callbacks callbacks = {
	.find_elf = no_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.debuginfo_path = &debug_directories,
};

static void set_debug_directories(const char *extra)
{
	static char list[PATH_MAX + 64];

	if (extra && snprintf(list, sizeof list, ":.debug:" SYSTEM_DEBUG_DIR ":%s", extra) < (int)sizeof list)
		debug_directories = list;
}

void image_file_open(struct image_file *file, const struct image *image, const struct image_search *search)
{
	*file = (struct image_file){ 0 };
	if (!image->path || !image->path[0])
		return;
	set_debug_directories(search->debug_path);
	file->dwfl = dwfl_begin(&callbacks);
	if (!file->dwfl || find(file, image, search))
		return;
	if (image->flags & DUMP_MODULE_VDSO)
		file->reason = "it is part of the kernel";
	else if (!file->reason)
		file->reason = image->deleted ? "the file was deleted" : "the file is not on this machine";
}

void image_file_close(struct image_file *file)
{
	if (file->dwfl)
		dwfl_end(file->dwfl);
	*file = (struct image_file){ 0 };
}
