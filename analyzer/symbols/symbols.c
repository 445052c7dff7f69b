/* SPDX-License-Identifier: MIT */
#include "symbols/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "debug_info/debug_server.h"
#include "dump/dump_symbols.h"
#include "base/grow.h"
#include "base/map.h"
#include "debug_info/source_lines.h"
#include "debug_info/symbol_ranges.h"
#include "symbols/symbol_reader.h"
#include "symbols/symbol_worker.h"
#include "symbols/wire.h"

/* Of all that is known of places, and as much as the dumps have. A file may name 64 inlined calls of 64 KiB at each
 * byte of its code. */
#define KNOWN_BYTES (64u << 20)

struct image_symbols {
	unsigned opened; /* by the worker of this number, 0: not yet */
	bool found;      /* there is a file to ask about */
	bool told;       /* a dump has names of its frames */
	bool asked_server;
	bool asked_ranges;
	struct image_found file;
	struct symbol_ranges allocator;
	char *reason;  /* file.reason, owned */
	char *fetched; /* the path of its debug file from a server */
};

/* What is known of a place: a run of locations, owned together with their strings, which of those told are a dump's. */
struct known {
	uint64_t place;
	struct location *list;
	uint32_t count;
	bool told;      /* by a dump, which then also says: */
	bool allocator; /* inside one of the hooked functions */
};

struct symbols {
	const struct images *images;
	const struct image_search *search;
	bool lines; /* are wanted */
	struct symbol_worker worker;
	struct wire question, answer;
	struct image_symbols **image; /* by image number, as far as they were asked for */
	uint32_t image_count;
	struct map known_at; /* place -> index in known */
	struct known *known;
	size_t known_count;
	size_t known_bytes;
	uint64_t dump_bytes;
	struct dump_symbols **blocks; /* of dumps: what is told points into them */
	size_t block_count;
	uint64_t wanted[SYMBOL_PLACES_MAX]; /* places that will be asked for, and are not known */
	size_t wanted_count;
};

static const struct location nothing;
static const struct location own_code = { .function = "[jit]" };
static const char went_wrong[] = "names may be missing: reading them took too much time or memory, or failed";
static const char not_all[] = "names may be missing: not all are in the dump, and the file is not there or another one";
static const char no_room[] = "names may be missing: there is no room for more of them";

struct symbols *symbols_new(const struct images *images, const struct image_search *search, bool lines)
{
	struct symbols *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->images = images;
	s->search = search;
	s->lines = lines;
	symbol_worker_init(&s->worker, &search->files);
	return s;
}

/* ---- images ---- */

/* Makes room for the images that dumps have added meanwhile. */
static struct image_symbols *image_entry(struct symbols *s, uint32_t i)
{
	if (i >= s->image_count) {
		struct image_symbols **more = reallocarray(s->image, s->images->count, sizeof(struct image_symbols *));
		if (!more)
			return NULL;
		memset(more + s->image_count, 0, (s->images->count - s->image_count) * sizeof(struct image_symbols *));
		s->image = more;
		s->image_count = s->images->count;
	}
	if (!s->image[i])
		s->image[i] = calloc(1, sizeof *s->image[i]);
	return s->image[i];
}

/* It has no more answers; those that it gave stay. */
static void give_up(struct image_symbols *image, const char *reason)
{
	free(image->reason);
	image->reason = strdup(reason);
	image->file.reason = image->reason;
	image->file.incomplete = true;
	image->found = false;
}

static void ask(struct symbols *s, enum symbol_question question, uint64_t what)
{
	wire_clear(&s->question);
	wire_put_number(&s->question, question);
	wire_put_number(&s->question, what);
}

/* The worker is gone, and the image that it was at has given its last answer: next time it would end the same way. */
static void lose_worker(struct symbols *s)
{
	uint32_t i = *s->worker.doing;

	if (i < s->image_count && s->image[i])
		give_up(s->image[i], went_wrong);
}

/* False: the worker is gone. */
static bool exchange(struct symbols *s)
{
	if (symbol_worker_ask(&s->worker, &s->question) && symbol_worker_answer(&s->worker, &s->answer))
		return true;
	lose_worker(s);
	return false;
}

static void put_open(struct symbols *s, uint32_t i)
{
	const struct image *image = &s->images->list[i];

	ask(s, SYMBOL_OPEN, i);
	wire_put_number(&s->question, image->flags);
	wire_put_number(&s->question, image->deleted);
	wire_put_number(&s->question, (uint64_t)image->file);
	wire_put_number(&s->question, s->lines);
	wire_put_number(&s->question, image->build_id_bytes);
	wire_put(&s->question, image->build_id, sizeof image->build_id);
	wire_put_string(&s->question, image->path);
	wire_put_string(&s->question, image->root);
	wire_put_string(&s->question, s->search->debug_path);
	wire_put_string(&s->question, s->image[i]->fetched);
}

static void take_opened(struct image_symbols *image, struct wire *answer)
{
	image->found = wire_take_number(answer);
	if (image->told && !image->found) {
		give_up(image, not_all);
		return;
	}
	uint64_t source = wire_take_number(answer);
	image->file.source = source <= IMAGE_SOURCE_DEBUG ? (enum image_source)source : IMAGE_SOURCE_NONE;
	const char *reason = wire_take_string(answer);
	free(image->reason);
	image->reason = reason ? strdup(reason) : NULL;
	image->file.reason = image->reason;
}

static bool has_lines(struct symbols *s, uint32_t i)
{
	ask(s, SYMBOL_LINES, i);
	return exchange(s) && wire_take_number(&s->answer);
}

/* Where there is no debug information here, that of a server; then the image is opened once more. */
static void ask_server(struct symbols *s, uint32_t i, struct image_symbols *image)
{
	const struct image *of = &s->images->list[i];

	image->asked_server = true;
	if (of->flags & DUMP_MODULE_VDSO || (image->found && has_lines(s, i)) || image->opened != s->worker.starts)
		return;
	image->fetched = debug_server_find(s->search->server, of->build_id, of->build_id_bytes);
	if (!image->fetched)
		return;
	put_open(s, i);
	*s->worker.doing = i;
	if (exchange(s))
		take_opened(image, &s->answer);
}

/* Opens the image in the worker that there is now. */
static void open_in_worker(struct symbols *s, uint32_t i, struct image_symbols *image)
{
	if (!symbol_worker_start(&s->worker)) {
		image->opened = s->worker.starts + 1;
		give_up(image, s->worker.error.text);
		return;
	}
	image->opened = s->worker.starts;
	put_open(s, i);
	*s->worker.doing = i;
	if (exchange(s))
		take_opened(image, &s->answer);
	if (s->search->server && !image->asked_server)
		ask_server(s, i, image);
}

static struct image_symbols *open_image(struct symbols *s, uint32_t i)
{
	bool is_file = i && i < s->images->count && s->images->list[i].language == IMAGE_NATIVE;
	struct image_symbols *image = is_file ? image_entry(s, i) : NULL;

	if (!image)
		return NULL;
	/* A worker that has taken the place of another one knows of no image. */
	if (!image->opened || (image->found && (s->worker.fd < 0 || image->opened != s->worker.starts)))
		open_in_worker(s, i, image);
	return image->found ? image : NULL;
}

const struct image_found *symbols_image_file(const struct symbols *s, uint32_t i)
{
	return i < s->image_count && s->image[i] && (s->image[i]->opened || s->image[i]->told) ? &s->image[i]->file
	                                                                                       : NULL;
}

/* ---- the allocator ---- */

static void ask_ranges(struct symbols *s, uint32_t i, struct image_symbols *image)
{
	struct symbol_ranges *ranges = &image->allocator;
	struct wire *a = &s->answer;

	image->asked_ranges = true;
	ask(s, SYMBOL_RANGES, i);
	if (!exchange(s))
		return;
	bool known = wire_take_number(a);
	uint64_t count = wire_take_number(a);
	const void *list = count < WIRE_MAX_BYTES / sizeof *ranges->list ? wire_take(a, count * sizeof *ranges->list)
	                                                                 : NULL;
	if (!known || !list)
		return;
	ranges->list = malloc(count * sizeof *ranges->list + 1);
	if (!ranges->list)
		return;
	memcpy(ranges->list, list, count * sizeof *ranges->list);
	ranges->count = count;
	ranges->known = true;
}

bool symbols_in_allocator(struct symbols *s, uint64_t place)
{
	const uint32_t *known = map_find(&s->known_at, place);
	uint32_t i = PLACE_IMAGE(place);

	if (known && s->known[*known].told)
		return s->known[*known].allocator;
	struct image_symbols *image = open_image(s, i);

	if (image && !image->allocator.known && !image->asked_ranges)
		ask_ranges(s, i, image);
	if (!image || image->allocator.known)
		return image && symbol_ranges_have(&image->allocator, image_place_call(place));
	if (!open_image(s, i))
		return false;
	ask(s, SYMBOL_ALLOCATOR, place);
	return exchange(s) && wire_take_number(&s->answer);
}

static bool ask_segment(struct symbols *s, uint64_t place, struct symbol_segment *segment)
{
	struct wire *a = &s->answer;

	if (!open_image(s, PLACE_IMAGE(place)))
		return false;
	ask(s, SYMBOL_SEGMENT, place);
	if (!exchange(s) || !wire_take_number(a))
		return false;
	*segment = (struct symbol_segment){ .address = wire_take_number(a) };
	segment->bytes = wire_take_number(a);
	segment->offset = wire_take_number(a);
	return !a->failed && segment->bytes && PLACE_OFFSET(segment->bytes) == segment->bytes &&
	       PLACE_OFFSET(segment->address + segment->bytes) == segment->address + segment->bytes;
}

/* Where a dump has named the frames its file need not be here, and what is said of the names stays as it is. */
bool symbols_segment(struct symbols *s, uint64_t place, struct symbol_segment *segment)
{
	uint32_t i = PLACE_IMAGE(place);
	struct image_symbols *image = i < s->image_count ? s->image[i] : NULL;

	if (!image || !image->told || image->opened)
		return ask_segment(s, place, segment);
	const struct image_symbols before = *image;
	image->reason = NULL;
	image->asked_server = true;
	bool known = ask_segment(s, place, segment);
	free(image->reason);
	*image = before; /* not opened: for a name that is not in the dump it is opened anew */
	return known;
}

/* ---- places ---- */

/* Of one allocation: the list, then the strings. NULL: no memory, or the answer makes no sense. */
static struct location *take_locations(struct wire *a, uint64_t count, size_t *bytes)
{
	size_t text = a->used - a->taken;

	if (!count || count > SOURCE_DEPTH_MAX)
		return NULL;
	struct location *list = calloc(1, count * sizeof *list + text);
	char *at = list ? (char *)(list + count) : NULL;
	for (uint64_t i = 0; list && i < count; i++) {
		const char *strings[] = { wire_take_string(a), wire_take_string(a) };
		const char **to[] = { &list[i].function, &list[i].file };
		for (int k = 0; k < 2; k++) {
			if (!strings[k])
				continue;
			*to[k] = at;
			at = stpcpy(at, strings[k]) + 1;
		}
		list[i].line = (int)wire_take_number(a);
		list[i].inlined = i + 1 < count;
	}
	*bytes = count * sizeof *list + text;
	if (a->failed) {
		free(list);
		return NULL;
	}
	return list;
}

/* Takes the list. */
static void add_known(struct symbols *s, const struct known *known)
{
	if (!grow_list(s->known, s->known_count) || map_put(&s->known_at, known->place, (uint32_t)s->known_count)) {
		free(known->list);
		return;
	}
	s->known[s->known_count++] = *known;
}

static void add_nothing(struct symbols *s, uint64_t place)
{
	struct known known = { .place = place, .list = calloc(1, sizeof nothing), .count = 1 };

	if (known.list)
		add_known(s, &known);
}

static void add_answer(struct symbols *s, uint64_t place)
{
	struct image_symbols *image = s->image[PLACE_IMAGE(place)];
	bool failed = wire_take_number(&s->answer);
	struct known known = { .place = place, .count = (uint32_t)wire_take_number(&s->answer) };
	size_t bytes = 0;

	known.list = take_locations(&s->answer, known.count, &bytes);
	if (failed && !image->file.incomplete) {
		image->file.incomplete = true;
		image->file.reason = went_wrong;
	}
	if (!known.list) {
		add_nothing(s, place);
		return;
	}
	s->known_bytes += bytes + sizeof known;
	add_known(s, &known);
}

/* What needs no question: there is no file, or no room. */
static bool is_answered(struct symbols *s, uint64_t place)
{
	struct image_symbols *image = open_image(s, PLACE_IMAGE(place));

	if (image && s->known_bytes > KNOWN_BYTES + s->dump_bytes)
		give_up(image, no_room);
	if (image && image->found)
		return false;
	add_nothing(s, place);
	return true;
}

/* Asks for places of images that are open, all of them in this worker; how many were answered. */
static size_t ask_places(struct symbols *s, const uint64_t *places, size_t count)
{
	ask(s, SYMBOL_PLACES, count);
	wire_put(&s->question, places, count * sizeof *places);
	if (!symbol_worker_ask(&s->worker, &s->question)) {
		lose_worker(s);
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		if (!symbol_worker_answer(&s->worker, &s->answer)) {
			lose_worker(s);
			return i;
		}
		add_answer(s, places[i]);
	}
	return count;
}

/* Each turn answers some, or costs an image its answers, or a worker, of which there is not any number. */
static void ask_all(struct symbols *s, uint64_t *places, size_t count)
{
	while (count) {
		unsigned starts = s->worker.starts;
		size_t left = 0;
		for (size_t i = 0; i < count; i++)
			if (!is_answered(s, places[i]))
				places[left++] = places[i];
		count = left;
		/* To open the last one may have cost the worker in which the others were. */
		if (!count || s->worker.fd < 0 || s->worker.starts != starts)
			continue;
		size_t done = ask_places(s, places, count);
		count -= done;
		memmove(places, places + done, count * sizeof *places);
	}
}

static bool is_new(const struct symbols *s, uint64_t place, const uint64_t *others, size_t count)
{
	if (source_places_have(s->images, place))
		return false;
	for (size_t i = 0; i < count; i++)
		if (others[i] == place)
			return false;
	return !map_find(&s->known_at, place);
}

static void ask_wanted(struct symbols *s)
{
	ask_all(s, s->wanted, s->wanted_count);
	s->wanted_count = 0;
}

void symbols_want(struct symbols *s, const uint64_t *places, size_t count)
{
	for (; count; places++, count--) {
		if (!is_new(s, *places, s->wanted, s->wanted_count))
			continue;
		s->wanted[s->wanted_count++] = *places;
		if (s->wanted_count == SYMBOL_PLACES_MAX)
			ask_wanted(s);
	}
}

const struct location *symbols_find(struct symbols *s, uint64_t place, size_t *count)
{
	const struct location *python = source_places_find(s->images, place);
	const uint32_t *at = map_find(&s->known_at, place);

	*count = 1;
	if (python)
		return python;
	if (!at) {
		symbols_want(s, &place, 1);
		ask_wanted(s);
		at = map_find(&s->known_at, place);
	}
	/* In no module: code that the process has made itself, unless the dump has its name. */
	if (!PLACE_IMAGE(place) && place && !(at && s->known[*at].told))
		return &own_code;
	*count = at ? s->known[*at].count : 1;
	return at ? s->known[*at].list : &nothing;
}

bool symbols_is_unnamed(const struct location *location)
{
	return location == &own_code;
}

/* ---- what dumps have ---- */

/* The strings are those of the block, which is kept. */
static struct location *told_locations(const struct symbols *s, const struct dump_symbols *from,
                                       const struct dump_symbol_place *place)
{
	const struct dump_symbol_location *l = dump_symbols_locations(from) + place->first;
	struct location *list = calloc(place->count, sizeof *list);

	for (uint16_t i = 0; list && i < place->count; i++)
		list[i] = (struct location){ .function = dump_symbols_string(from, l[i].function),
			                     .file = s->lines ? dump_symbols_string(from, l[i].file) : NULL,
			                     .line = s->lines ? l[i].line : 0,
			                     .inlined = i + 1 < place->count };
	return list;
}

/* Whether somebody who names more places to look at may find debug information where the dump had none. */
static bool asks_anew(struct symbols *s, uint32_t i, const struct dump_symbol_module *m)
{
	return (s->search->debug_path || s->search->server) && !(m->flags & DUMP_SYMBOL_LINES) && open_image(s, i);
}

static int take_module(struct symbols *s, const struct dump_symbols *from, const struct dump_symbol_module *m,
                       const struct image_map *map)
{
	uint32_t i = map->image_of[m->id];
	struct image_symbols *image = i ? image_entry(s, i) : NULL;

	if (!i)
		return 0;
	if (!image)
		return -ENOMEM;
	if (image->opened || image->told || asks_anew(s, i, m))
		return 0;
	const char *reason = dump_symbols_string(from, m->reason);
	free(image->reason);
	image->reason = reason ? strdup(reason) : NULL;
	image->told = true;
	image->file = (struct image_found){ .source = (enum image_source)m->source,
		                            .reason = image->reason,
		                            .incomplete = m->flags & DUMP_SYMBOL_INCOMPLETE };
	return 0;
}

static int take_place(struct symbols *s, const struct dump_symbols *from, const struct dump_symbol_place *p,
                      const struct image_map *map)
{
	uint64_t place = images_place(map, p->frame);
	uint32_t i = PLACE_IMAGE(place);

	if (map_find(&s->known_at, place) || (i && !(i < s->image_count && s->image[i] && s->image[i]->told)))
		return 0;
	struct known known = { .place = place,
		               .list = told_locations(s, from, p),
		               .count = p->count,
		               .told = true,
		               .allocator = p->flags & DUMP_SYMBOL_ALLOCATOR };
	if (!known.list)
		return -ENOMEM;
	add_known(s, &known);
	return 0;
}

int symbols_take_dump(struct symbols *s, struct dump *dump, const struct image_map *map)
{
	struct dump_symbols *from;
	int r = dump_symbols_read(dump, &from);

	s->dump_bytes += dump_disk_bytes(dump);
	if (!from)
		return r;
	if (!grow_list(s->blocks, s->block_count)) {
		free(from);
		return -ENOMEM;
	}
	s->blocks[s->block_count++] = from;
	for (uint32_t i = 0; i < from->module_count && !r; i++)
		r = take_module(s, from, &dump_symbols_modules(from)[i], map);
	for (uint32_t i = 0; i < from->place_count && !r; i++)
		r = take_place(s, from, &dump_symbols_places(from)[i], map);
	return r;
}

static void free_image(struct image_symbols *image)
{
	symbol_ranges_done(&image->allocator);
	free(image->reason);
	free(image->fetched);
	free(image);
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->known_count; i++)
		free(s->known[i].list);
	for (size_t i = 0; i < s->block_count; i++)
		free(s->blocks[i]);
	free(s->blocks);
	for (uint32_t i = 0; i < s->image_count; i++)
		if (s->image[i])
			free_image(s->image[i]);
	symbol_worker_done(&s->worker);
	wire_done(&s->question);
	wire_done(&s->answer);
	map_done(&s->known_at);
	free(s->known);
	free(s->image);
	free(s);
}
