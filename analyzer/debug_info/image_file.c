/* SPDX-License-Identifier: MIT */
#include "debug_info/image_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/build_id.h"
#include "base/cleanup.h"

#define SYSTEM_DEBUG_DIR "/usr/lib/debug"

static int no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
	(void)module, (void)data, (void)name, (void)base, (void)path, (void)elf;
	return -1; /* the file was handed over when the module was reported */
}

/* A path, or the descriptor that the image came with: the target's own file, wherever its name leads by now. */
static int open_one(const struct image *image, const char *path)
{
	return path ? open(path, O_RDONLY | O_CLOEXEC) : jail_open(image->file);
}

/* -1: no such file; 0: another file; 1: the file of the image. */
static int is_file_of(const struct image *image, const char *path)
{
	AUTO_CLOSE int fd = open_one(image, path);
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
static bool report(struct image_file *file, const char *path, const char *name)
{
	int fd = open_one(file->image, path);

	if (fd < 0)
		return false;
	dwfl_report_begin(file->dwfl);
	file->module = dwfl_report_elf(file->dwfl, name, name, fd, 0, true);
	void **data;
	if (file->module && dwfl_module_info(file->module, &data, NULL, NULL, NULL, NULL, NULL, NULL))
		*data = file;
	else if (!file->module)
		close(fd);
	dwfl_report_end(file->dwfl, NULL, NULL);
	return file->module != NULL;
}

static bool try_path(struct image_file *file, const struct image *image, enum image_source source, const char *path)
{
	int match = is_file_of(image, path);

	if (match == 0 && source == IMAGE_SOURCE_FILE && !file->reason)
		file->reason = image->build_id_bytes ? "the file was replaced since (its build-id differs)"
		                                     : "the file at its path is another one";
	if (match <= 0 || !report(file, path, path))
		return false;
	file->source = source;
	return true;
}

/* DIR/.build-id/xx/yyyy[.debug] */
static bool try_build_id(struct image_file *file, const struct image *image, const char *dir)
{
	char hex[BUILD_ID_TEXT];
	char path[PATH_MAX];

	if (image->build_id_bytes < 2)
		return false;
	build_id_format(image->build_id, image->build_id_bytes, hex);
	if (snprintf(path, sizeof path, "%s/.build-id/%.2s/%s", dir, hex, hex + 2) < (int)sizeof path &&
	    try_path(file, image, IMAGE_SOURCE_FILE, path))
		return true;
	return snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", dir, hex, hex + 2) < (int)sizeof path &&
	       try_path(file, image, IMAGE_SOURCE_DEBUG, path);
}

static bool try_root(struct image_file *file, const struct image *image, const char *root)
{
	char path[PATH_MAX];

	return image->path[0] == '/' && snprintf(path, sizeof path, "%s%s", root, image->path) < (int)sizeof path &&
	       try_path(file, image, IMAGE_SOURCE_FILE, path);
}

/* The debug files of another root. */
static bool try_debug_below(struct image_file *file, const struct image *image, const char *root)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof path, "%s" SYSTEM_DEBUG_DIR, root) < (int)sizeof path &&
	       try_build_id(file, image, path);
}

/* What the file is called tells libdwfl where to look for a debug file beside it. */
static bool try_descriptor(struct image_file *file, const struct image *image)
{
	char name[PATH_MAX];

	if (!image->file || is_file_of(image, NULL) <= 0 ||
	    snprintf(name, sizeof name, "%s%s", image->root, image->path) >= (int)sizeof name ||
	    !report(file, NULL, name))
		return false;
	file->source = IMAGE_SOURCE_FILE;
	return true;
}

static bool find(struct image_file *file, const struct image *image, const struct image_search *search)
{
	const char *extra = search->debug_path;

	if (try_descriptor(file, image) || (image->root[0] && try_root(file, image, image->root)) ||
	    try_root(file, image, ""))
		return true;
	if (extra && ((image->build_id_bytes && try_root(file, image, extra)) || try_build_id(file, image, extra) ||
	              try_debug_below(file, image, extra)))
		return true;
	return try_build_id(file, image, SYSTEM_DEBUG_DIR) ||
	       (image->root[0] && try_debug_below(file, image, image->root)) ||
	       (search->fetched && try_path(file, image, IMAGE_SOURCE_DEBUG, search->fetched));
}

/* libdwfl keeps pointers to the callbacks and to the path for as long as the Dwfl lives. */
static char system_directories[] = ":.debug:" SYSTEM_DEBUG_DIR;
static char *debug_directories = system_directories;

/* Appends a directory, and the system's debug directory below it, if there is room. */
static void add_directories(char *list, size_t room, const char *root)
{
	size_t used = strlen(list);

	if (root && root[0] &&
	    snprintf(list + used, room - used, ":%s" SYSTEM_DEBUG_DIR ":%s", root, root) >= (int)(room - used))
		list[used] = 0;
}

/* As they are for the image that is asked about: libdwfl reads the list at each search. */
static void set_debug_directories(const struct image *image, const char *extra)
{
	static char list[2 * PATH_MAX + 256];

	snprintf(list, sizeof list, "%s", system_directories);
	add_directories(list, sizeof list, image->root);
	add_directories(list, sizeof list, extra);
	debug_directories = list;
}

static int find_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *program,
                           const char *link, GElf_Word crc, char **path)
{
	const struct image_file *file = *data;

	set_debug_directories(file->image, file->search->debug_path);
	int fd = dwfl_standard_find_debuginfo(module, data, name, base, program, link, crc, path);
	const char *fetched = file->search->fetched;
	if (fd >= 0 || !fetched || is_file_of(file->image, fetched) <= 0)
		return fd;
	*path = strdup(fetched);
	return open_one(file->image, fetched);
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = no_elf,
	.find_debuginfo = find_debug_file,
	.debuginfo_path = &debug_directories,
};

bool image_file_has_lines(const struct image_file *file)
{
	GElf_Addr bias;

	return file->module && dwfl_module_getdwarf(file->module, &bias);
}

void image_file_open(struct image_file *file, const struct image *image, const struct image_search *search)
{
	*file = (struct image_file){ .image = image, .search = search };
	if (!image->path || !image->path[0])
		return;
	file->dwfl = dwfl_begin(&callbacks);
	if (!file->dwfl)
		return;
	if (find(file, image, search)) {
		if (file->source == IMAGE_SOURCE_FILE)
			file->reason = NULL;
		return;
	}
	if (image->flags & DUMP_MODULE_VDSO)
		file->reason = "it is part of the kernel";
	else if (!file->reason)
		file->reason = image->deleted ? "the file was deleted" : "the file is not on this machine";
}
