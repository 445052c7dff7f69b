/* SPDX-License-Identifier: MIT */
#include "symbols/symbol_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "debug_info/demangled_name.h"
#include "symbols/given_files.h"
#include "base/grow.h"
#include "base/now.h"
#include "symbols/perf_map.h"
#include "symbols/perf_map_file.h"
#include "sandbox/rights.h"
#include "symbols/symbol_reader.h"
#include "symbol_request.h"
#include "symbols/symbol_section.h"
#include "symbols/symbols.h"
#include "files/whole_io.h"
#include "base/order.h"

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
	struct given_files given;
	bool *lines; /* by image: some file was told */
	uint64_t deadline_ns;
	uint64_t max_bytes;
	enum symbol_map map_refused;
	int perf_fd;
};

/* ---- the request ---- */

static bool take_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return !errno && end != text && !*end;
}

static int open_dump(struct writer *w)
{
	if (dump_open_fd(SYMBOL_REQUEST_DUMP, &w->dump, ERR_IGNORED))
		return -EPROTO;
	int r = images_init(&w->images);
	r = r ?: images_add(&w->images, w->dump, w->given.root, &w->map);
	if (r)
		return r;
	given_files_apply(&w->given, &w->images, &w->map);
	w->search.files = given_files_descriptors(&w->given);
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
ORDER_NUMBERS(compare_frames, uint64_t);

/* Of code that the process has made; nothing is put down for what is not known. */
static void name_own_code(struct writer *w, uint64_t frame)
{
	const char *name = perf_map_find(&w->perf, frame ? frame - 1 : 0);
	const struct location location = { .function = name };

	if (name && strlen(name) < DEMANGLED_MAX_BYTES)
		symbol_section_place(&w->section, frame, 0, &location, 1);
}

static void frame_name_text(struct writer *w, uint64_t frame)
{
	uint64_t place = images_place(&w->map, frame);
	uint32_t image = PLACE_IMAGE(place);
	size_t count;

	if (images_is_java(&w->map, frame))
		return; /* the dump says it already, or nobody knows */
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
	const struct symbol_result result = { done, w->frame_count, w->map_refused, 0 };

	if (!whole_io_pwrite(SYMBOL_REQUEST_RESULT, &result, sizeof result, 0) ||
	    now_ns(CLOCK_MONOTONIC) > w->deadline_ns)
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
			frame_name_text(w, w->frames[first + i]);
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
	const struct symbol_result all = { w->frame_count, w->frame_count, w->map_refused, 0 };

	if (!built)
		return -ENOMEM;
	return whole_io_pwrite(SYMBOL_REQUEST_RESULT, built, built->bytes, SYMBOL_RESULT_AT) &&
	                       whole_io_pwrite(SYMBOL_REQUEST_RESULT, &all, sizeof all, 0)
	               ? 0
	               : -EIO;
}

static int work(struct writer *w)
{
	int r = open_dump(w);

	if (r)
		return r;
	if (modules_room(w) > w->max_bytes)
		return -ENOSPC;
	symbol_section_init(&w->section, w->max_bytes - modules_room(w));
	if (w->perf_fd >= 0 && perf_map_read(&w->perf, w->perf_fd))
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

/* With the rights of the user whose map it is, before these go, too. */
static int give_up_rights(struct writer *w, const struct rights *rights, const struct perf_map_file *map)
{
	if (rights_lend(rights))
		return -EPERM;
	w->perf_fd = map->root > JAIL_DESCRIPTOR ? perf_map_file_open(map, &w->map_refused) : -1;
	return rights_drop(rights);
}

int symbol_writer_main(int argc, char **argv)
{
	static struct writer w;
	struct perf_map_file map;
	struct rights rights;
	uint64_t root, pid, seconds;

	if (argc != 8 || strcmp(argv[0], SYMBOL_REQUEST_VERSION) != 0 || !rights_parse(argv[1], &rights) ||
	    !take_number(argv[2], &root) || !take_number(argv[3], &pid) ||
	    !take_number(argv[4], &map.started_realtime_ns) || !take_number(argv[5], &seconds) ||
	    !take_number(argv[6], &w.max_bytes) || root > INT32_MAX || pid > INT32_MAX || seconds > 86400)
		return SYMBOL_REQUEST_UNKNOWN;
	map.root = (int)root;
	map.pid = (pid_t)pid;
	map.uid = rights.uid;
	if (give_up_rights(&w, &rights, &map))
		return REQUEST_NOT_DROPPED;
	w.deadline_ns = now_ns(CLOCK_MONOTONIC) + seconds * 1000000000u;
	given_files_take(&w.given, (int)root, argv[7]);
	int r = work(&w);
	symbols_free(w.symbols);
	return r ? 1 : 0;
}
