/* SPDX-License-Identifier: MIT */
#include "filter/filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

bool filter_by_stack(const struct filter_options *o)
{
	return o->focus || o->ignore || o->show_from;
}

bool filter_by_record(const struct filter_options *o)
{
	return o->thread || o->size_low || o->size_high || o->older_ns;
}

bool filter_any(const struct filter_options *o)
{
	return filter_by_stack(o) || filter_by_record(o);
}

int filter_init(struct filter *f, const struct filter_options *o, const struct images *images, struct symbols *symbols,
                struct err *e)
{
	const char *const texts[FILTER_NAMES] = { [FILTER_FOCUS] = o->focus,
		                                  [FILTER_IGNORE] = o->ignore,
		                                  [FILTER_SHOW_FROM] = o->show_from,
		                                  [FILTER_HIDE] = o->hide,
		                                  [FILTER_THREAD] = o->thread };
	int r = 0;

	*f = (struct filter){ .images = images, .symbols = symbols, .thread = o->thread };
	for (int i = 0; !r && i < FILTER_NAMES; i++)
		r = pattern_init(&f->patterns[i], texts[i], e);
	return r;
}

static bool has(const struct filter *f, enum filter_name name)
{
	return f->patterns[name].text;
}

static uint32_t bits_of(struct filter *f, const char *name)
{
	uint32_t bits = 0;

	for (int i = 0; i < FILTER_THREAD; i++)
		bits |= pattern_matches(&f->patterns[i], name) ? 1u << i : 0;
	return bits;
}

static void keep(struct filter *f, struct map *map, uint64_t key, uint32_t value)
{
	f->failed = map_put(map, key, value) || f->failed;
}

/* The path of a module may be long, and is that of many places. */
static uint32_t match_image(struct filter *f, uint32_t image)
{
	const uint32_t *known = map_find(&f->images_of, image);

	if (known)
		return *known;
	uint32_t bits = bits_of(f, f->images->list[image].path);
	keep(f, &f->images_of, image, bits);
	return bits;
}

static const struct location *all_locations(const struct filter *f, uint64_t place, size_t *count)
{
	static const struct location nothing;
	const struct location *python = source_places_find(f->images, place);

	*count = 1;
	if (python)
		return python;
	return f->symbols ? symbols_find(f->symbols, place, count) : &nothing;
}

static uint32_t match_location(struct filter *f, const struct location *l, uint32_t image)
{
	return bits_of(f, l->function) | bits_of(f, l->file) | image;
}

/* Keeps what is shown of a place of which some functions are hidden. */
static void keep_shown(struct filter *f, uint64_t place, struct location *list, size_t count)
{
	if (!list || !grow_list(f->shown, f->shown_count) || map_put(&f->shown_at, place, (uint32_t)f->shown_count)) {
		f->failed = true;
		free(list);
		return;
	}
	f->shown[f->shown_count++] = (struct filter_shown){ list, count };
}

/* All of its functions must match for a place to be hidden as a whole, one for it to match otherwise. */
static uint32_t match_place(struct filter *f, uint64_t place)
{
	const uint32_t *known = map_find(&f->matches_of, place);
	uint32_t any = 0, hidden = 0, image;
	size_t n, left = 0;

	if (known)
		return *known;
	image = match_image(f, PLACE_IMAGE(place));
	const struct location *list = all_locations(f, place, &n);
	struct location *shown = has(f, FILTER_HIDE) ? malloc(n * sizeof *shown) : NULL;
	for (size_t i = 0; i < n; i++) {
		uint32_t bits = match_location(f, &list[i], image);
		any |= bits;
		hidden += bits >> FILTER_HIDE & 1;
		if (shown && !(bits >> FILTER_HIDE & 1))
			shown[left++] = list[i];
	}
	if (has(f, FILTER_HIDE) && hidden && hidden < n) {
		if (shown)
			shown[left - 1].inlined = false; /* the last one stands for the place now */
		keep_shown(f, place, shown, left);
	} else {
		free(shown);
	}
	any &= ~(1u << FILTER_HIDE);
	any |= hidden == n ? 1u << FILTER_HIDE : 0;
	keep(f, &f->matches_of, place, any);
	return any;
}

bool filter_keeps(struct filter *f, const uint64_t *places, uint32_t count)
{
	uint32_t found = 0;

	if (!has(f, FILTER_FOCUS) && !has(f, FILTER_IGNORE) && !has(f, FILTER_SHOW_FROM))
		return true;
	for (uint32_t i = 0; i < count; i++)
		found |= match_place(f, places[i]);
	if (found >> FILTER_IGNORE & 1)
		return false;
	return (!has(f, FILTER_FOCUS) || found >> FILTER_FOCUS & 1) &&
	       (!has(f, FILTER_SHOW_FROM) || found >> FILTER_SHOW_FROM & 1);
}

uint32_t filter_frames(struct filter *f, uint64_t *places, uint32_t count, bool *cut)
{
	uint32_t outermost = count, left = 0;

	*cut = false;
	while (has(f, FILTER_SHOW_FROM) && outermost &&
	       !(match_place(f, places[outermost - 1]) >> FILTER_SHOW_FROM & 1))
		outermost--;
	if (outermost && outermost < count) {
		*cut = true;
		count = outermost;
	}
	for (uint32_t i = 0; i < count; i++)
		if (!has(f, FILTER_HIDE) || !(match_place(f, places[i]) >> FILTER_HIDE & 1))
			places[left++] = places[i];
	return left;
}

const struct location *filter_locations(const struct filter *f, uint64_t place, size_t *count)
{
	const uint32_t *known = map_find(&f->shown_at, place);

	if (!known)
		return all_locations(f, place, count);
	*count = f->shown[*known].count;
	return f->shown[*known].list;
}

bool filter_thread(struct filter *f, uint32_t tid, const char *name)
{
	char number[16];

	snprintf(number, sizeof number, "%" PRIu32, tid);
	return (name[0] && pattern_matches(&f->patterns[FILTER_THREAD], name)) ||
	       (f->thread && !strcmp(f->thread, number));
}

bool filter_failed(const struct filter *f)
{
	bool failed = f->failed;

	for (int i = 0; i < FILTER_NAMES; i++)
		failed = failed || f->patterns[i].failed;
	return failed;
}

void filter_done(struct filter *f)
{
	for (int i = 0; i < FILTER_NAMES; i++)
		pattern_done(&f->patterns[i]);
	for (size_t i = 0; i < f->shown_count; i++)
		free(f->shown[i].list);
	free(f->shown);
	map_done(&f->matches_of);
	map_done(&f->images_of);
	map_done(&f->shown_at);
	*f = (struct filter){ 0 };
}
