/* SPDX-License-Identifier: MIT */
#include "report/folding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/fold.h"
#include "base/grow.h"

#define SHARED_CALLERS 8u /* in its own module */
#define SHARED_LEVELS 3

/* ---- functions that all pass through ---- */

struct callers {
	struct map of; /* place -> how many different ones */
	struct map pairs;
};

static bool is_shared(const struct report *r, uint64_t place)
{
	return map_find(&r->shared_places, place);
}

static int count_caller(struct callers *c, uint64_t place, uint64_t caller)
{
	uint64_t pair = map_mix(place) ^ caller;
	const uint32_t *known = map_find(&c->of, place);

	if (PLACE_IMAGE(place) != PLACE_IMAGE(caller) || map_find(&c->pairs, pair))
		return 0;
	return map_put(&c->of, place, known ? *known + 1 : 1) || map_put(&c->pairs, pair, 1) ? -ENOMEM : 0;
}

static bool is_unnamed(const struct report *r, uint64_t place)
{
	size_t n;

	return PLACE_IMAGE(place) && !source_places_have(&r->images, place) &&
	       !report_locations(r, place, &n)->function;
}

/* Adds those that are the innermost ones behind those that are known; 1: there was one. */
static int find_level(struct report *r, struct callers *c)
{
	int s = 0, found = 0;

	for (size_t i = 0; !s && i < r->rows.count; i++) {
		const struct report_row *row = &r->rows.list[i];
		uint32_t k = 0;
		while (k < row->frame_count && is_shared(r, row->frames[k]))
			k++;
		if (k + 1 < row->frame_count)
			s = count_caller(c, row->frames[k], row->frames[k + 1]);
	}
	for (size_t i = 0; !s && i < c->of.room; i++) {
		const struct map_entry *entry = &c->of.entries[i];
		if (!entry->used || entry->value < SHARED_CALLERS || is_shared(r, entry->key) ||
		    !is_unnamed(r, entry->key))
			continue;
		s = map_put(&r->shared_places, entry->key, 1);
		found = 1;
	}
	return s ?: found;
}

int folding_find_shared(struct report *r)
{
	int s = r->symbols && !r->options.show_std;

	for (int level = 0; s > 0 && level < SHARED_LEVELS; level++) {
		struct callers c = { 0 };
		s = find_level(r, &c);
		map_done(&c.of);
		map_done(&c.pairs);
	}
	return s < 0 ? s : 0;
}

/* ---- who holds it ---- */

enum part { PART_OWN, PART_ALLOCATOR, PART_UNNAMED };

static enum part part_of(const struct report *r, uint64_t place, const struct location *l)
{
	if (!l->function)
		return is_shared(r, place) ? PART_ALLOCATOR : PART_UNNAMED;
	for (size_t i = 0; i < r->options.alloc_fn_count; i++)
		if (fold_is_called(l->function, r->options.alloc_fns[i]))
			return PART_ALLOCATOR;
	return fold_is_wrapper(l->function) ? PART_ALLOCATOR : PART_OWN;
}

const char *folding_kind(const struct report *r, uint64_t place, const struct location *l)
{
	return part_of(r, place, l) == PART_ALLOCATOR   ? "allocator"
	       : fold_is_startup(l->function)           ? "startup"
	       : fold_is_standard(l->function, l->file) ? "standard"
	                                                : NULL;
}

/* The first line of Python or Java, of Java the first one that is not in the JDK, if there is one. */
static bool first_source(const struct report *r, const struct report_row *row, struct report_own *own)
{
	bool found = false;

	for (uint32_t i = 0; i < row->frame_count; i++) {
		if (!source_places_have(&r->images, row->frames[i]))
			continue;
		const bool library = source_places_jdk(&r->images, row->frames[i]);
		if (!found || !library)
			*own = (struct report_own){ i, 0 };
		found = true;
		if (!library)
			break;
	}
	return found;
}

static struct report_own first_own(const struct report *r, const struct report_row *row)
{
	struct report_own own = { 0, 0 }, unnamed = { 0, 0 };
	bool have_unnamed = false;
	size_t n;

	for (; own.frame < row->frame_count; own.frame++) {
		const struct location *list = report_locations(r, row->frames[own.frame], &n);
		for (own.location = 0; own.location < n; own.location++) {
			const struct location *l = &list[own.location];
			enum part part = part_of(r, row->frames[own.frame], l);
			if (part == PART_UNNAMED && !have_unnamed)
				unnamed = own;
			have_unnamed = part == PART_UNNAMED || (have_unnamed && part != PART_ALLOCATOR);
			if (part == PART_OWN && !fold_is_standard(l->function, l->file))
				return have_unnamed ? unnamed : own;
		}
	}
	return have_unnamed ? unnamed : (struct report_own){ 0, 0 };
}

struct report_own report_own(const struct report *r, const struct report_row *row)
{
	struct report_own own = { 0, 0 };
	enum group_by by = r->options.by;

	if ((by == BY_LINE || by == BY_FILE) && first_source(r, row, &own))
		return own;
	if (r->options.show_std || by == BY_MODULE || !r->symbols)
		return own;
	if (!r->options.native && first_source(r, row, &own))
		return own;
	return first_own(r, row);
}

/* ---- the list ---- */

static struct folded_frame *add(struct folded_stack *s, uint64_t place, const struct location *l, size_t frame)
{
	if (!grow_list(s->list, s->count))
		return NULL;
	s->list[s->count] =
		(struct folded_frame){ .place = place, .location = l, .frame = (uint32_t)frame, .count = 1 };
	return &s->list[s->count++];
}

/* What Python imports: "numpy" of /usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.cpython-311-….so, "_json"
 * of lib-dynload/_json.cpython-311-….so. Code that the process has made is in no module. */
static void name_package(const struct image *image, char name[64])
{
	static const char packages[] = "-packages/";
	const char *below = image->path ? strstr(image->path, packages) : NULL;
	const char *first = below ? below + sizeof packages - 1 : NULL;

	if (first && strchr(first, '/'))
		snprintf(name, 64, "%.*s", (int)strcspn(first, "/") < 63 ? (int)strcspn(first, "/") : 63, first);
	else if (image->path)
		image_short_name(image, name, 64);
	if (!name[0])
		strcpy(name, "no module");
}

static int add_package(struct folded_stack *s, const struct report *r, const struct report_row *row, size_t count)
{
	const uint64_t place = row->frames[count - 1];
	struct folded_frame *f = add(s, place, NULL, 0);

	if (!f)
		return -ENOMEM;
	f->count = (uint32_t)count;
	f->package = true;
	name_package(&r->images.list[PLACE_IMAGE(place)], f->name);
	return 0;
}

/* Several of a kind in a row become one. */
static int add_frame(struct folded_stack *s, const struct report *r, uint64_t place, const struct location *l,
                     size_t frame, const char **run)
{
	bool folds = r->symbols && !r->options.show_std && !source_places_have(&r->images, place);
	const char *name = folds ? fold_run(l->function, l->file) : NULL;
	bool again = name && *run && !strcmp(name, *run);

	*run = name;
	if (!again)
		return add(s, place, l, frame) ? 0 : -ENOMEM;
	struct folded_frame *last = &s->list[s->count - 1];
	last->count++;
	strcpy(last->name, name);
	return 0;
}

/* The first frame that is listed by itself: those before it are a package, but for one that Java has called. */
static size_t first_listed(const struct report *r, const struct report_row *row, size_t own)
{
	const bool java = source_places_language(&r->images, row->frames[own]) == IMAGE_JAVA;

	return java && own == 1 && !r->options.native ? 0 : own;
}

int folded_stack_make(struct folded_stack *s, const struct report *r, const struct report_row *row)
{
	struct report_own own = row->frame_count ? report_own(r, row) : (struct report_own){ 0, 0 };
	size_t inner = report_inner(r, row), end = report_depth(r, row);
	const char *run = NULL;
	int e = 0;

	s->count = 0;
	const size_t first = row->frame_count ? first_listed(r, row, own.frame) : 0;
	if (first && source_places_have(&r->images, row->frames[first]))
		e = add_package(s, r, row, first);
	for (size_t i = first; !e && i < end; i++) {
		size_t n;
		const struct location *list = report_locations(r, row->frames[i], &n);
		for (size_t k = i == own.frame ? own.location : 0; !e && k < n; k++) {
			run = i < inner ? run : NULL; /* those of start-up stay as they are */
			e = add_frame(s, r, row->frames[i], &list[k], i, &run);
		}
	}
	return e;
}

void folded_stack_done(struct folded_stack *s)
{
	free(s->list);
	*s = (struct folded_stack){ 0 };
}
