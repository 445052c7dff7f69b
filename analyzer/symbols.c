/* SPDX-License-Identifier: MIT */
#include "symbols.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "map.h"
#include "plain_name.h"
#include "source_lines.h"
#include "symbol_table.h"

struct image_symbols {
	bool opened;
	bool no_ranges;            /* of the allocator */
	bool has_table, has_lines; /* they are read when they are needed: they may be large, and compressed */
	bool changed;              /* something is known that the cache does not have */
	bool failed;               /* not all could be read: this is nothing to keep */
	struct image_file file;
	struct symbol_file *kept;  /* from the cache, or NULL */
	struct symbol_table table;
	struct symbol_ranges allocator;
	struct source_lines lines;
};

/* What is known of a place: a run of locations, owned. */
struct known {
	uint64_t place;
	struct location *list;
	uint32_t count;
	bool kept; /* the functions belong to the cache, else to the list */
};

struct symbols {
	const struct images *images;
	const struct image_search *search;
	struct symbol_cache *cache; /* or NULL */
	bool lines; /* are wanted */
	struct image_symbols **image; /* by image number, as far as they were asked for */
	uint32_t image_count;
	struct map known_at;         /* place -> index in known */
	struct known *known;
	size_t known_count;
};

static const struct location nothing;

struct symbols *symbols_new(const struct images *images, const struct image_search *search, struct symbol_cache *cache, bool lines)
{
	struct symbols *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->images = images;
	s->search = search;
	s->cache = cache;
	s->lines = lines;
	elf_version(EV_CURRENT);
	return s;
}

/* ---- what is kept for the next report ---- */

/* Whether it answers what this report asks for. */
static bool is_enough(const struct symbols *s, const struct symbol_place *place)
{
	return place && (!s->lines || place->flags & SYMBOL_PLACE_LINES);
}

/* Whether what was read is all that there is, and stays so as long as the files do. */
static bool is_worth_keeping(struct image_symbols *image)
{
	const struct source_lines *lines = &image->lines;

	if (!image->changed || image->failed || !image->file.settled || (image->has_table && !image->table.count))
		return false;
	if (!image->has_lines)
		return true;
	if (lines->failed || lines->split || (!lines->module && (image->file.own_lines || image->file.debug_identity)))
		return false;
	image_file_settle_alt(&image->file);
	return image->file.settled;
}

/* Places of the cache that this report has nothing better for; with all, those it did not ask for, too. */
static void add_kept(const struct symbols *s, uint32_t i, bool all, struct symbol_file_builder *b)
{
	const struct symbol_file *f = s->image[i]->kept;

	for (uint32_t k = 0; f && k < f->place_count; k++) {
		const struct symbol_place *place = &symbol_file_places(f)[k];
		bool asked = map_find(&s->known_at, PLACE(i, place->offset)) != NULL;
		bool lines = place->flags & SYMBOL_PLACE_LINES;
		if (asked ? !is_enough(s, place) : !all)
			continue;
		struct location *list = symbol_file_locations(f, place, lines);
		if (list)
			symbol_file_add(b, place->offset, lines, list, place->count);
		b->failed |= !list;
		free(list);
	}
}

/* What is known of the places of one image; the list is sorted. */
struct known_run {
	const struct known *first, *end;
};

static struct symbol_file *build(const struct symbols *s, uint32_t i, const struct known_run *run, bool all, size_t *bytes)
{
	static const struct image_alt no_alt;
	const struct image_symbols *image = s->image[i];
	const struct image_alt kept_alt = { .path = image->kept ? (char *)symbol_file_string(image->kept, image->kept->alt_path) : NULL,
					    .identity = image->kept ? image->kept->alt_identity : 0 };
	struct symbol_file_builder b;

	symbol_file_builder_init(&b, symbol_cache_file_max(s->cache));
	add_kept(s, i, all, &b);
	for (const struct known *known = run->first; known < run->end; known++) {
		if (!known->kept)
			symbol_file_add(&b, PLACE_OFFSET(known->place), s->lines, known->list, known->count);
	}
	const struct image_alt *alt = image->has_lines ? &image->file.alt : image->kept ? &kept_alt : &no_alt;
	struct symbol_file *f = symbol_file_build(&b, &image->allocator, alt, bytes);
	symbol_file_builder_done(&b);
	return f;
}

static void keep_image(struct symbols *s, uint32_t i, const struct known_run *run)
{
	size_t bytes;

	if (!is_worth_keeping(s->image[i]))
		return;
	struct symbol_file *f = build(s, i, run, true, &bytes);
	if (!f) /* too much for one file: what this report needs is likelier to be asked for again */
		f = build(s, i, run, false, &bytes);
	if (f)
		symbol_cache_store(s->cache, &s->images->list[i], &s->image[i]->file, f, bytes);
	free(f);
}

static int compare_known(const void *a, const void *b)
{
	const struct known *x = a;
	const struct known *y = b;

	return (x->place > y->place) - (x->place < y->place);
}

/* Puts what is known into another order: afterwards, known_at tells no more than what there is. */
static void keep(struct symbols *s)
{
	const struct known *end = s->known ? s->known + s->known_count : NULL;
	struct known_run run = { s->known, s->known };

	if (s->known_count)
		qsort(s->known, s->known_count, sizeof *s->known, compare_known);
	for (uint32_t i = 0; i < s->image_count; i++) {
		while (run.end < end && PLACE_IMAGE(run.end->place) == i)
			run.end++;
		if (s->image[i])
			keep_image(s, i, &run);
		run.first = run.end;
	}
}

static void free_known(struct known *known)
{
	for (uint32_t i = 0; i < known->count && !known->kept; i++)
		free((char *)known->list[i].function);
	free(known->list);
}

static void free_image(struct image_symbols *image)
{
	symbol_table_done(&image->table);
	symbol_ranges_done(&image->allocator);
	source_lines_close(&image->lines);
	image_file_close(&image->file);
	free(image->kept);
	free(image);
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	if (s->cache)
		keep(s);
	for (size_t i = 0; i < s->known_count; i++)
		free_known(&s->known[i]);
	for (uint32_t i = 0; i < s->image_count; i++)
		if (s->image[i])
			free_image(s->image[i]);
	map_done(&s->known_at);
	free(s->known);
	free(s->image);
	free(s);
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

static void copy_ranges(struct symbol_ranges *ranges, const struct symbol_file *f)
{
	size_t bytes = f->range_count * sizeof *ranges->list;

	ranges->list = malloc(bytes + 1);
	if (!ranges->list || !(f->flags & SYMBOL_FILE_RANGES))
		return;
	memcpy(ranges->list, symbol_file_ranges(f), bytes);
	ranges->count = f->range_count;
	ranges->known = true;
}

static const struct symbol_table *table_of(struct image_symbols *image)
{
	if (!image->has_table) {
		image->has_table = true;
		if (symbol_table_load(&image->table, image->file.module)) {
			symbol_table_done(&image->table);
			image->failed = true;
		}
	}
	return &image->table;
}

static struct image_symbols *open_image(struct symbols *s, uint32_t i)
{
	struct image_symbols *image = i && i < s->images->count ? image_entry(s, i) : NULL;

	if (!image)
		return NULL;
	if (!image->opened) {
		image->opened = true;
		image_file_open(&image->file, &s->images->list[i], s->search);
		if (image->file.module && s->cache)
			image->kept = symbol_cache_load(s->cache, &s->images->list[i], &image->file);
		if (image->kept)
			copy_ranges(&image->allocator, image->kept);
	}
	return image->file.module ? image : NULL;
}

const struct image_file *symbols_image_file(const struct symbols *s, uint32_t i)
{
	return i < s->image_count && s->image[i] && s->image[i]->opened ? &s->image[i]->file : NULL;
}

/* The call before a return address. */
static uint64_t call_of(uint64_t place)
{
	uint64_t offset = PLACE_OFFSET(place);

	return offset ? offset - 1 : 0;
}

bool symbols_in_allocator(struct symbols *s, uint64_t place)
{
	struct image_symbols *image = open_image(s, PLACE_IMAGE(place));

	if (!image)
		return false;
	if (!image->allocator.known && !image->no_ranges) {
		image->no_ranges = symbol_ranges_find(&image->allocator, table_of(image)) != 0;
		image->changed |= !image->no_ranges;
	}
	if (image->allocator.known)
		return symbol_ranges_have(&image->allocator, call_of(place));
	const struct symbol *symbol = symbol_table_find(table_of(image), call_of(place));
	return symbol && symbol->allocator;
}

/* ---- places ---- */

/* The name with its arguments where one has them: the mangled name of DWARF, of the symbol table, the plain name. -ENOMEM. */
static int best_name(const struct source_line *line, const struct symbol *symbol, const char **name)
{
	const char *mangled = line ? line->linkage : NULL;

	*name = NULL;
	if (!mangled && symbol && (!line || !line->name || !strncmp(symbol->name, "_Z", 2) || !strncmp(symbol->name, "_R", 2)))
		mangled = symbol->name;
	if (!mangled && !(line && line->name))
		return 0;
	*name = mangled ? plain_name(mangled) : strdup(line->name);
	return *name ? 0 : -ENOMEM;
}

static size_t find_lines(const struct symbols *s, struct image_symbols *image, uint64_t address,
			 struct source_line lines[SOURCE_DEPTH_MAX])
{
	if (!image->has_lines)
		source_lines_open(&image->lines, image_file_lines(&image->file), s->lines);
	image->has_lines = true;
	return source_lines_find(&image->lines, address, lines);
}

static bool look_up(struct symbols *s, uint64_t place, struct known *known)
{
	struct image_symbols *image = open_image(s, PLACE_IMAGE(place));
	const struct symbol_place *kept = image && image->kept ? symbol_file_find(image->kept, PLACE_OFFSET(place)) : NULL;
	struct source_line lines[SOURCE_DEPTH_MAX];

	*known = (struct known){ .place = place };
	if (is_enough(s, kept)) {
		known->list = symbol_file_locations(image->kept, kept, s->lines);
		known->count = kept->count;
		known->kept = true;
		return known->list != NULL;
	}
	const struct symbol *symbol = image ? symbol_table_find(table_of(image), call_of(place)) : NULL;
	size_t depth = image ? find_lines(s, image, call_of(place), lines) : 0;
	known->count = depth ? (uint32_t)depth : 1;
	known->list = calloc(known->count, sizeof *known->list);
	if (!known->list)
		return false;
	for (uint32_t i = 0; i < known->count; i++) {
		bool outermost = i + 1 == known->count;
		struct location *l = &known->list[i];
		if (best_name(depth ? &lines[i] : NULL, outermost ? symbol : NULL, &l->function))
			image->failed = true;
		l->file = depth ? lines[i].file : NULL;
		l->line = depth && l->file ? lines[i].line : 0;
		l->inlined = !outermost;
	}
	if (image)
		image->changed = true;
	return true;
}

const struct location *symbols_find(struct symbols *s, uint64_t place, size_t *count)
{
	const uint32_t *at = map_find(&s->known_at, place);

	*count = 1;
	if (!at) {
		struct known known;
		if (!grow_list(s->known, s->known_count) || !look_up(s, place, &known))
			return &nothing;
		if (map_put(&s->known_at, place, (uint32_t)s->known_count)) {
			free_known(&known);
			return &nothing;
		}
		s->known[s->known_count++] = known;
		at = map_find(&s->known_at, place);
	}
	*count = s->known[*at].count;
	return s->known[*at].list;
}
