/* SPDX-License-Identifier: MIT */
#include "image_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "build_id.h"
#include "cleanup.h"
#include "file_identity.h"

#define SYSTEM_DEBUG_DIR "/usr/lib/debug"

static int no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
	(void)module, (void)data, (void)name, (void)base, (void)path, (void)elf;
	return -1; /* the file was handed over when the module was reported */
}

/* -1: no such file; 0: another file; 1: the file of the image. */
static int is_file_of(const struct image *image, const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
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
	file->identity = file_identity_fd(fd);
	dwfl_report_begin(file->dwfl);
	file->module = dwfl_report_elf(file->dwfl, path, path, fd, 0, true);
	if (!file->module)
		close(fd);
	dwfl_report_end(file->dwfl, NULL, NULL);
	return file->module != NULL;
}

/* The same file in another module: libdwfl keeps what it has found in the module that it was asked about. False: it is
 * gone, or another one. */
static bool open_twin(struct image_file *twin, struct image_file *file, const Dwfl_Callbacks *callbacks)
{
	const char *path = dwfl_module_info(file->module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	void **data;

	*twin = (struct image_file){ .dwfl = dwfl_begin(callbacks) };
	if (twin->dwfl && report(twin, path) && twin->identity == file->identity) {
		dwfl_module_info(twin->module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
		*data = file;
		return true;
	}
	if (twin->dwfl)
		dwfl_end(twin->dwfl);
	return false;
}

/*
 * libdwfl's own search for a debug file leaves that in the module without its descriptor, for which the module has 0
 * then, and closes it at the end: it may be that of another file by now.
 */
static void end_twin(struct image_file *twin)
{
	AUTO_CLOSE int zero = dup(0);

	dwfl_end(twin->dwfl);
	if (zero >= 0)
		dup2(zero, 0);
}

static bool try_path(struct image_file *file, const struct image *image, enum image_source source, const char *path)
{
	int match = is_file_of(image, path);

	if (match == 0 && source == IMAGE_SOURCE_FILE && !file->reason)
		file->reason = image->build_id_bytes ? "the file was replaced since (its build-id differs)"
		                                     : "the file at its path is another one";
	if (match <= 0 || !report(file, path))
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

/* Whether libdwfl asks for the debug file of the module, else for the one that it shares with others. */
static bool is_own_debug_file(Dwfl_Module *module, const char *link)
{
	GElf_Addr bias;
	GElf_Word crc;
	Elf *elf = dwfl_module_getelf(module, &bias);
	const char *own = elf ? dwelf_elf_gnu_debuglink(elf, &crc) : NULL;

	return link && own ? !strcmp(link, own) : !link && !own;
}

static void note_alt(struct image_file *file, const char *path, uint64_t identity)
{
	free(file->alt.path);
	file->alt = (struct image_alt){ .path = strdup(path) };
	if (file->alt.path)
		file->alt.identity = identity;
	file->settled = file->settled && file->alt.identity;
}

static void note_debug_file(struct image_file *file, const char *path, uint64_t identity)
{
	free(file->debug_path);
	file->debug_path = path ? realpath(path, NULL) : NULL;
	file->settled = file->settled && identity == file->debug_identity;
}

/* Takes down what file libdwfl finds. */
static int find_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *program,
                           const char *link, GElf_Word crc, char **path)
{
	int fd = dwfl_standard_find_debuginfo(module, data, name, base, program, link, crc, path);
	int saved = errno; /* tells libdwfl what to try next */

	if (!*data) /* nobody keeps the answers */
		return fd;
	uint64_t identity = fd < 0 ? 0 : file_identity_fd(fd);
	if (is_own_debug_file(module, link))
		note_debug_file(*data, fd < 0 ? NULL : *path, identity);
	else if (fd >= 0)
		note_alt(*data, *path, identity);
	errno = saved;
	return fd;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = no_elf,
	.find_debuginfo = find_debug_file,
	.debuginfo_path = &debug_directories,
};

/* The same of the search before. */
static int look_for_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *program,
                               const char *link, GElf_Word crc, char **path)
{
	struct image_file *file = *data;
	int fd = dwfl_standard_find_debuginfo(module, data, name, base, program, link, crc, path);
	int saved = errno;

	file->debug_identity = fd < 0 ? 0 : file_identity_fd(fd);
	file->settled = fd < 0 || file->debug_identity;
	errno = saved;
	return fd;
}

static const Dwfl_Callbacks look_callbacks = {
	.find_elf = no_elf,
	.find_debuginfo = look_for_debug_file,
	.debuginfo_path = &debug_directories,
};

static void set_debug_directories(const char *extra)
{
	static char list[PATH_MAX + 64];

	if (extra && snprintf(list, sizeof list, ":.debug:" SYSTEM_DEBUG_DIR ":%s", extra) < (int)sizeof list)
		debug_directories = list;
}

struct contents {
	bool lines, symbols;
};

static struct contents contents_of(Dwfl_Module *module)
{
	struct contents has = { false, false };
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names))
		return has;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
		if (!name || header.sh_type == SHT_NOBITS)
			continue;
		has.lines |= !strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info");
		has.symbols |= header.sh_type == SHT_SYMTAB;
	}
	return has;
}

void image_file_open(struct image_file *file, const struct image *image, const struct image_search *search)
{
	*file = (struct image_file){ 0 };
	if (!image->path || !image->path[0])
		return;
	set_debug_directories(search->debug_path);
	file->dwfl = dwfl_begin(&callbacks);
	if (!file->dwfl)
		return;
	if (find(file, image, search))
		return;
	if (image->flags & DUMP_MODULE_VDSO)
		file->reason = "it is part of the kernel";
	else if (!file->reason)
		file->reason = image->deleted ? "the file was deleted" : "the file is not on this machine";
}

/*
 * libdwfl has no call that finds the debug file and reads nothing else, and a search leaves what it finds in the
 * module. So another module of the same file is asked for symbols: if it has none of its own, they come from the debug
 * file, where they are not compressed, as the debug information is. With both in the program file, no other file is
 * looked for.
 */
void image_file_settle(struct image_file *file)
{
	struct contents has = contents_of(file->module);
	struct image_file twin;
	void **data;

	dwfl_module_info(file->module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
	*data = file;
	file->own_lines = has.lines;
	file->settled = file->identity && has.lines && has.symbols;
	if (!file->identity || has.lines || has.symbols)
		return;
	if (open_twin(&twin, file, &look_callbacks)) {
		dwfl_module_getsymtab(twin.module);
		end_twin(&twin);
	}
}

/* Where libdw looks by itself if libdwfl has not found it: by build-id, then by the name, relative to the debug file.
 */
static void find_alt(struct image_file *file, const char *name, const uint8_t *id, size_t id_bytes)
{
	const char *program = dwfl_module_info(file->module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	AUTO_FREE char *from = file->own_lines    ? realpath(program, NULL)
	                       : file->debug_path ? strdup(file->debug_path)
	                                          : NULL;
	char *slash = from ? strrchr(from, '/') : NULL;
	char hex[BUILD_ID_TEXT];
	char path[PATH_MAX];

	if (!slash || id_bytes < 2 || id_bytes > DUMP_BUILD_ID_MAX)
		return;
	build_id_format(id, (uint32_t)id_bytes, hex);
	if (snprintf(path, sizeof path, SYSTEM_DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2) < (int)sizeof path &&
	    file_identity(path)) {
		note_alt(file, path, file_identity(path));
		return;
	}
	*slash = 0;
	int n = name[0] == '/' ? snprintf(path, sizeof path, "%s", name)
	                       : snprintf(path, sizeof path, "%s/%s", from, name);
	if (n < (int)sizeof path && file_identity(path))
		note_alt(file, path, file_identity(path));
}

void image_file_settle_alt(struct image_file *file)
{
	GElf_Addr bias;
	Dwarf *lines = dwfl_module_getdwarf(file->module, &bias);
	const char *name;
	const void *id;
	ssize_t bytes = lines ? dwelf_dwarf_gnu_debugaltlink(lines, &name, &id) : 0;

	if (bytes > 0 && !file->alt.identity && dwarf_getalt(lines))
		find_alt(file, name, id, (size_t)bytes);
	file->settled = file->settled && (bytes ? file->alt.identity : !file->alt.path);
}
