/* SPDX-License-Identifier: MIT */
#include "symbol_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "demangled_name.h"
#include "dump_symbols.h"
#include "grow.h"
#include "now.h"
#include "perf_map.h"
#include "symbol_reader.h"
#include "symbol_request.h"
#include "symbol_section.h"
#include "symbols.h"
#include "whole_io.h"

#define FRAMES_MAX (8u << 20)
#define REASONS_BYTES 4096u /* of modules: few different ones, of a line each */

struct writer {
	struct dump *dump;
	struct images images;
	struct image_map map;
	struct image_search search;
	struct symbols *symbols;
	struct symbol_section section;
	struct perf_map perf;
	uint64_t *frames; /* distinct */
	size_t frame_count;
	struct map frame_at;
	int files[JAIL_FILES_MAX]; /* ascending */
	bool *lines;               /* by image: some file was told */
	uint64_t deadline_ns;
	uint64_t max_bytes;
	int root, perf_fd;
};

/* ---- the request ---- */

static bool take_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return !errno && end != text && !*end;
}

static int by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void add_file(struct writer *w, int fd)
{
	if (fd > JAIL_DESCRIPTOR && w->search.files.count < JAIL_FILES_MAX)
		w->files[w->search.files.count++] = fd;
}

/* ID:DESCRIPTOR, … */
static void take_files(struct writer *w, const char *text)
{
	unsigned id;
	int fd, used;

	for (; sscanf(text, "%u:%d%n", &id, &fd, &used) == 2; text += text[used] == ',' ? used + 1 : used) {
		uint32_t image = id <= UINT16_MAX ? w->map.image_of[id] : 0;
		if (image && !w->images.list[image].file && fd > JAIL_DESCRIPTOR) {
			w->images.list[image].file = fd;
			add_file(w, fd);
		}
	}
}

static int open_dump(struct writer *w, const char *files)
{
	char root[IMAGE_ROOT_TEXT] = "";
	struct err e;

	if (dump_open_fd(SYMBOL_REQUEST_DUMP, &w->dump, &e))
		return -EPROTO;
	if (w->root > JAIL_DESCRIPTOR)
		snprintf(root, sizeof root, "/proc/self/fd/%d", w->root);
	int r = images_init(&w->images);
	if (!r)
		r = images_add(&w->images, w->dump, root, &w->map);
	if (r)
		return r;
	take_files(w, files);
	add_file(w, w->root);
	qsort(w->files, w->search.files.count, sizeof *w->files, by_number);
	w->search.files.list = w->files;
	w->symbols = symbols_new(&w->images, &w->search, true);
	w->lines = calloc(w->images.count, sizeof *w->lines);
	return w->symbols && w->lines ? symbols_take_dump(w->symbols, w->dump, &w->map) : -ENOMEM;
}

/* ---- frames ---- */

static int add_stack(void *arg, uint32_t reference)
{
	struct writer *w = arg;
	struct dump_stack_copy copy;

	if (dump_read_stack(w->dump, reference, &copy))
		return 0;
	for (uint32_t i = 0; i < copy.stack.frame_count; i++) {
		uint64_t frame = copy.frames[i];
		if (map_find(&w->frame_at, frame))
			continue;
		if (w->frame_count == FRAMES_MAX) {
			w->section.cut = true;
			return 0;
		}
		if (!grow_list(w->frames, w->frame_count) || map_put(&w->frame_at, frame, (uint32_t)w->frame_count))
			return -ENOMEM;
		w->frames[w->frame_count++] = frame;
	}
	return 0;
}

/* Frames of one module together: its file is read at once. */
static int compare_frames(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Of code that the process has made; nothing is put down for what is not known. */
static void name_own_code(struct writer *w, uint64_t frame)
{
	const char *name = perf_map_find(&w->perf, frame ? frame - 1 : 0);
	const struct location location = { .function = name };

	if (name && strlen(name) < DEMANGLED_MAX_BYTES)
		symbol_section_place(&w->section, frame, 0, &location, 1);
}

static void name_frame(struct writer *w, uint64_t frame)
{
	uint64_t place = images_place(&w->map, frame);
	uint32_t image = PLACE_IMAGE(place);
	size_t count;

	if (!image) {
		name_own_code(w, frame);
		return;
	}
	const struct location *list = symbols_find(w->symbols, place, &count);
	uint16_t flags = symbols_in_allocator(w->symbols, place) ? DUMP_SYMBOL_ALLOCATOR : 0;
	for (size_t i = 0; i < count; i++)
		w->lines[image] |= list[i].file != NULL;
	symbol_section_place(&w->section, frame, flags, list, count);
}

static bool in_time(struct writer *w, size_t done)
{
	const struct symbol_result result = { done, w->frame_count };

	if (!pwrite_all(SYMBOL_REQUEST_RESULT, &result, sizeof result, 0) || now_ns(CLOCK_MONOTONIC) > w->deadline_ns)
		w->section.cut = true;
	return !w->section.cut;
}

static void name_frames(struct writer *w)
{
	uint64_t places[SYMBOL_PLACES_MAX];

	for (size_t first = 0; first < w->frame_count && in_time(w, first); first += SYMBOL_PLACES_MAX) {
		size_t count = w->frame_count - first < SYMBOL_PLACES_MAX ? w->frame_count - first : SYMBOL_PLACES_MAX;
		size_t wanted = 0;
		for (size_t i = 0; i < count; i++) {
			uint64_t place = images_place(&w->map, w->frames[first + i]);
			if (PLACE_IMAGE(place))
				places[wanted++] = place;
		}
		symbols_want(w->symbols, places, wanted);
		for (size_t i = 0; i < count; i++)
			name_frame(w, w->frames[first + i]);
	}
}

/* ---- modules ---- */

static void add_module(struct writer *w, uint32_t id)
{
	uint32_t image = w->map.image_of[id];
	const struct image_found *file = symbols_image_file(w->symbols, image);
	struct dump_symbol_module m = { .id = id };

	if (!image || !file)
		return;
	m.source = (uint16_t)file->source;
	m.flags = (file->incomplete ? DUMP_SYMBOL_INCOMPLETE : 0) | (w->lines[image] ? DUMP_SYMBOL_LINES : 0);
	symbol_section_module(&w->section, &m, file->reason);
}

/* Room for them is kept first: without its module no place is believed. */
static uint64_t modules_room(const struct writer *w)
{
	uint64_t bytes = sizeof(struct dump_symbols) + REASONS_BYTES;

	for (uint32_t id = 1; id <= UINT16_MAX; id++)
		bytes += w->map.image_of[id] ? sizeof(struct dump_symbol_module) : 0;
	return bytes;
}

/* ---- all of it ---- */

static int write_result(struct writer *w)
{
	AUTO_FREE struct dump_symbols *built = symbol_section_build(&w->section);
	const struct symbol_result all = { w->frame_count, w->frame_count };

	if (!built)
		return -ENOMEM;
	return pwrite_all(SYMBOL_REQUEST_RESULT, built, built->bytes, SYMBOL_RESULT_AT) &&
	                       pwrite_all(SYMBOL_REQUEST_RESULT, &all, sizeof all, 0)
	               ? 0
	               : -EIO;
}

static int work(struct writer *w, const char *files)
{
	int r = open_dump(w, files);

	if (r)
		return r;
	if (modules_room(w) > w->max_bytes)
		return -ENOSPC;
	symbol_section_init(&w->section, w->max_bytes - modules_room(w));
	if (w->perf_fd > JAIL_DESCRIPTOR && perf_map_read(&w->perf, w->perf_fd))
		perf_map_done(&w->perf);
	r = dump_each_stack(w->dump, add_stack, w);
	if (r)
		return r;
	if (w->frame_count)
		qsort(w->frames, w->frame_count, sizeof *w->frames, compare_frames);
	name_frames(w);
	w->section.max_bytes = w->max_bytes;
	for (uint32_t id = 1; id <= UINT16_MAX; id++)
		add_module(w, id);
	return write_result(w);
}

int symbol_writer_main(int argc, char **argv)
{
	static struct writer w;
	uint64_t root, perf, seconds;

	if (argc != 6 || strcmp(argv[0], SYMBOL_REQUEST_VERSION) != 0 || !take_number(argv[1], &root) ||
	    !take_number(argv[2], &perf) || !take_number(argv[3], &seconds) || !take_number(argv[4], &w.max_bytes) ||
	    root > INT32_MAX || perf > INT32_MAX || seconds > 86400)
		return SYMBOL_REQUEST_UNKNOWN;
	w.root = (int)root;
	w.perf_fd = (int)perf;
	w.deadline_ns = now_ns(CLOCK_MONOTONIC) + seconds * 1000000000u;
	int r = work(&w, argv[5]);
	symbols_free(w.symbols);
	return r ? 1 : 0;
}
