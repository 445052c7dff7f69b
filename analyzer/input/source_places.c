/* SPDX-License-Identifier: MIT */
#include "input/source_places.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "input/images.h"
#include "input/python_files.h"
#include "input/python_path.h"

/* A dump may have a record of code at every sixteenth byte, each with a name and a file of kilobytes. */
#define STRING_BYTES_MAX (256u << 20)

#define NONE UINT32_MAX

struct python_file {
	uint32_t image; /* the module */
	uint32_t below; /* string: the part below its entry of path; NONE: it is in none */
};

struct source_place {
	uint64_t place;
	uint32_t function, file; /* strings */
	struct location location;
};

static bool add_string(struct source_places *p, const char *text, uint32_t *number)
{
	uint32_t before = p->strings.count;

	if (p->bytes > STRING_BYTES_MAX || string_table_add(&p->strings, text, number))
		return false;
	if (p->strings.count > before)
		p->bytes += strlen(text);
	return true;
}

/* Cuts the root down to what it has in common with the directory of a file. */
static void note_root(struct source_places *p, const char *file)
{
	const char *end = strrchr(file, '/');
	size_t same = 0;

	if (file[0] != '/')
		return;
	if (!p->root) {
		p->root = strndup(file, (size_t)(end - file) + 1);
		return;
	}
	for (size_t i = 0; p->root[i] && p->root[i] == file[i]; i++)
		if (file[i] == '/')
			same = i + 1;
	p->root[same] = 0;
}

/* Names a file of which there is no place yet. */
static bool add_file(struct images *images, const struct python_path *path, uint32_t number)
{
	struct source_places *p = &images->sources;
	const char *file = p->strings.list[number];
	char below[DUMP_CODE_FILE_TEXT], module[PYTHON_MODULE_TEXT];
	struct python_file added = { .below = NONE };

	bool found = python_path_below(path, file, below);
	python_file_module(file, found ? below : NULL, module);
	added.image = images_add_module(images, IMAGE_PYTHON, module);
	if (!added.image || (found && !add_string(p, below, &added.below)) || !grow_list(p->files, p->file_count) ||
	    map_put(&p->file_of, number, p->file_count))
		return false;
	if (!found)
		note_root(p, file);
	p->files[p->file_count++] = added;
	return true;
}

static const struct python_file *file_of(const struct source_places *p, uint32_t number)
{
	const uint32_t *known = map_find(&p->file_of, number);

	return known ? &p->files[*known] : NULL;
}

static uint64_t add_place(struct images *images, uint64_t hash, uint32_t image, uint32_t function, uint32_t file,
                          int line)
{
	struct source_places *p = &images->sources;
	struct source_place *place = grow_list(p->list, p->count) ? malloc(sizeof *place) : NULL;

	if (!place)
		return 0;
	if (map_put(&p->place_of, hash, p->count)) {
		free(place);
		return 0;
	}
	*place = (struct source_place){ .place = PLACE(image, p->count), .function = function, .file = file };
	place->location.function = p->strings.list[function];
	place->location.file = p->strings.list[file][0] ? p->strings.list[file] : NULL;
	place->location.line = line;
	p->list[p->count++] = place;
	return place->place;
}

/* Where it is; a new one if there is none yet. */
static uint64_t find_place(struct images *images, uint32_t image, uint32_t function, uint32_t file, int line)
{
	struct source_places *p = &images->sources;
	uint64_t hash = map_mix(map_mix((uint64_t)function << 32 | file) ^ (uint64_t)image << 32 ^ (uint32_t)line);
	const uint32_t *known;

	for (; (known = map_find(&p->place_of, hash)); hash++) {
		const struct source_place *place = p->list[*known];
		if (place->function == function && place->file == file && place->location.line == line &&
		    PLACE_IMAGE(place->place) == image)
			return place->place;
	}
	return add_place(images, hash, image, function, file, line);
}

uint64_t source_places_add_python(struct images *images, const struct python_path *path, const char *function,
                                  const char *file, int line)
{
	struct source_places *p = &images->sources;
	uint32_t f, n;

	if (!add_string(p, function, &f) || !add_string(p, file, &n) || (!file_of(p, n) && !add_file(images, path, n)))
		return 0;
	return find_place(images, file_of(p, n)->image, f, n, line);
}

uint64_t source_places_add_java(struct images *images, const char *package, const char *function, const char *file,
                                int line)
{
	struct source_places *p = &images->sources;
	uint32_t image = images_add_module(images, IMAGE_JAVA, package), f, n;

	if (!image || !add_string(p, function, &f) || !add_string(p, file, &n))
		return 0;
	return find_place(images, image, f, n, line);
}

bool source_places_have(const struct images *images, uint64_t place)
{
	return PLACE_IMAGE(place) < images->count && images->list[PLACE_IMAGE(place)].language;
}

enum image_language source_places_language(const struct images *images, uint64_t place)
{
	return source_places_have(images, place) ? images->list[PLACE_IMAGE(place)].language : IMAGE_NATIVE;
}

const struct location *source_places_find(const struct images *images, uint64_t place)
{
	return source_places_have(images, place) ? &images->sources.list[PLACE_OFFSET(place)]->location : NULL;
}

const char *source_places_jdk(const struct images *images, uint64_t place)
{
	static const char *const jdk[] = {
		"java.", "javax.", "jdk.", "sun.", "com.sun.", "io.netty.buffer", "io.netty.util.internal"
	};
	const char *package = images->list[PLACE_IMAGE(place)].path;

	if (source_places_language(images, place) != IMAGE_JAVA)
		return NULL;
	for (size_t i = 0; i < sizeof jdk / sizeof jdk[0]; i++)
		if (!strncmp(package, jdk[i], strlen(jdk[i])))
			return package;
	return NULL;
}

const char *source_places_short(const struct source_places *p, const char *file)
{
	size_t n = p->root ? strlen(p->root) : 0;
	uint32_t number;

	const struct python_file *known = string_table_find(&p->strings, file, &number) ? file_of(p, number) : NULL;
	if (known && known->below != NONE)
		return p->strings.list[known->below];
	return n && !strncmp(file, p->root, n) && file[n] ? file + n : file;
}

void source_places_done(struct source_places *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		free(p->list[i]);
	free(p->list);
	free(p->files);
	free(p->root);
	map_done(&p->file_of);
	string_table_done(&p->strings);
	map_done(&p->place_of);
	*p = (struct source_places){ 0 };
}
