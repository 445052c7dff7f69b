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
	bool opened, has_lines; /* the debug information is read when a line is asked for: it may be large, and compressed */
	struct image_file file;
	struct symbol_table table;
	struct source_lines lines;
};

/* What is known of a place: a run of locations, owned. */
struct known {
	struct location *list;
	size_t count;
};

struct symbols {
	const struct images *images;
	const struct image_search *search;
	bool lines; /* are wanted */
	struct image_symbols **image; /* by image number, as far as they were asked for */
	uint32_t image_count;
	struct map known_at;         /* place -> index in known */
	struct known *known;
	size_t known_count;
};

static const struct location nothing;

struct symbols *symbols_new(const struct images *images, const struct image_search *search, bool lines)
{
	struct symbols *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->images = images;
	s->search = search;
	s->lines = lines;
	elf_version(EV_CURRENT);
	return s;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->known_count; i++) {
		for (size_t k = 0; k < s->known[i].count; k++)
			free((char *)s->known[i].list[k].function);
		free(s->known[i].list);
	}
	for (uint32_t i = 0; i < s->image_count; i++) {
		if (!s->image[i])
			continue;
		symbol_table_done(&s->image[i]->table);
		source_lines_close(&s->image[i]->lines);
		image_file_close(&s->image[i]->file);
		free(s->image[i]);
	}
	map_done(&s->known_at);
	free(s->known);
	free(s->image);
	free(s);
}

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

static struct image_symbols *open_image(struct symbols *s, uint32_t i)
{
	struct image_symbols *image = i && i < s->images->count ? image_entry(s, i) : NULL;

	if (!image)
		return NULL;
	if (!image->opened) {
		image->opened = true;
		image_file_open(&image->file, &s->images->list[i], s->search);
		if (image->file.module && symbol_table_load(&image->table, image->file.module))
			symbol_table_done(&image->table);
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
	const struct symbol *symbol = image ? symbol_table_find(&image->table, call_of(place)) : NULL;

	return symbol && symbol->allocator;
}

/* The name with its arguments where one has them: the mangled name of DWARF, of the symbol table, the plain name. */
static char *best_name(const struct source_line *line, const struct symbol *symbol)
{
	if (line && line->linkage)
		return plain_name(line->linkage);
	if (symbol && (!line || !line->name || !strncmp(symbol->name, "_Z", 2) || !strncmp(symbol->name, "_R", 2)))
		return plain_name(symbol->name);
	return line && line->name ? strdup(line->name) : NULL;
}

static size_t find_lines(const struct symbols *s, struct image_symbols *image, uint64_t address,
			 struct source_line lines[SOURCE_DEPTH_MAX])
{
	if (!image->has_lines)
		source_lines_open(&image->lines, image->file.module, s->lines);
	image->has_lines = true;
	return source_lines_find(&image->lines, address, lines);
}

static struct known look_up(struct symbols *s, uint64_t place)
{
	struct image_symbols *image = open_image(s, PLACE_IMAGE(place));
	struct source_line lines[SOURCE_DEPTH_MAX];
	size_t depth = image ? find_lines(s, image, call_of(place), lines) : 0;
	const struct symbol *symbol = image ? symbol_table_find(&image->table, call_of(place)) : NULL;
	struct known known = { .count = depth ? depth : 1 };

	known.list = calloc(known.count, sizeof *known.list);
	if (!known.list)
		return (struct known){ 0 };
	for (size_t i = 0; i < known.count; i++) {
		bool outermost = i + 1 == known.count;
		struct location *l = &known.list[i];
		l->function = best_name(depth ? &lines[i] : NULL, outermost ? symbol : NULL);
		l->file = depth ? lines[i].file : NULL;
		l->line = depth && l->file ? lines[i].line : 0;
		l->inlined = !outermost;
	}
	return known;
}

const struct location *symbols_find(struct symbols *s, uint64_t place, size_t *count)
{
	const uint32_t *at = map_find(&s->known_at, place);

	*count = 1;
	if (!at) {
		if (!grow_list(s->known, s->known_count))
			return &nothing;
		struct known known = look_up(s, place);
		if (!known.list)
			return &nothing;
		if (map_put(&s->known_at, place, (uint32_t)s->known_count)) {
			for (size_t i = 0; i < known.count; i++)
				free((char *)known.list[i].function);
			free(known.list);
			return &nothing;
		}
		s->known[s->known_count++] = known;
		at = map_find(&s->known_at, place);
	}
	*count = s->known[*at].count;
	return s->known[*at].list;
}
