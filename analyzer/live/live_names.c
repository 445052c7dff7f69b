/* SPDX-License-Identifier: MIT */
#include "live/live_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/fold.h"
#include "base/grow.h"
#include "base/printable.h"
#include "output/short_name.h"
#include "text/text.h"

#define AHEAD 4 /* frames of a stack that are asked for at once */
#define CALLERS 6
#define KEY_TEXT 4096

static const struct location nothing;
static const char not_yet[] = "(not named yet)";
static const char not_known[] = "(stack not known)";

void live_names_init(struct live_names *n, bool show_std)
{
	*n = (struct live_names){ .show_std = show_std };
}

static void forget(struct live_names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->list[i]);
	free(n->list);
	map_done(&n->name_of);
	n->list = NULL;
	n->count = 0;
	n->name_of = (struct map){ 0 };
}

void live_names_done(struct live_names *n)
{
	forget(n);
}

void live_names_set(struct live_names *n, struct live_heap *heap, enum group_by by)
{
	forget(n);
	n->by = by;
	for (size_t i = 0; i < heap->count; i++)
		heap->list[i].group = 0;
}

/* ---- frames ---- */

static const struct location *locations(const struct live_heap *heap, uint64_t place, size_t *count)
{
	const struct location *python = source_places_find(&heap->images, place);

	*count = 1;
	if (python)
		return python;
	return heap->symbols ? symbols_find(heap->symbols, place, count) : &nothing;
}

/* A function at a frame of a stack. */
struct own {
	size_t frame, location;
};

static size_t after_wrappers(const struct live_heap *heap, const struct live_stack *stack)
{
	size_t i = 0;

	while (heap->symbols && i < stack->place_count && symbols_in_allocator(heap->symbols, stack->places[i]))
		i++;
	return i == stack->place_count ? 0 : i; /* else nothing would be left */
}

/* As report_own(), but for what only all stacks together show. */
static struct own find_own(const struct live_names *n, const struct live_heap *heap, const struct live_stack *stack)
{
	struct own first = { after_wrappers(heap, stack), 0 }, own = first;

	bool python = n->by == BY_LINE || n->by == BY_FILE || (n->by != BY_MODULE && !n->show_std);

	for (size_t i = first.frame; python && i < stack->place_count; i++)
		if (source_places_have(&heap->images, stack->places[i]))
			return (struct own){ i, 0 };
	if (n->show_std || n->by == BY_MODULE || !heap->symbols)
		return first;
	for (; own.frame < stack->place_count; own.frame++) {
		size_t count;
		const struct location *list = locations(heap, stack->places[own.frame], &count);
		for (own.location = 0; own.location < count; own.location++)
			if (!fold_is_wrapper(list[own.location].function) &&
			    !fold_is_standard(list[own.location].function, list[own.location].file))
				return own;
	}
	return first;
}

void live_names_want(const struct live_heap *heap, const struct live_stack *stack)
{
	if (!heap->symbols || !stack->place_count)
		return;
	size_t first = after_wrappers(heap, stack), left = stack->place_count - first;
	symbols_want(heap->symbols, stack->places + first, left < AHEAD ? left : AHEAD);
}

/* ---- text ---- */

static void name_function(const struct live_heap *heap, uint64_t place, const struct location *l, char *out,
                          size_t size)
{
	const struct image *image = &heap->images.list[PLACE_IMAGE(place)];

	if (l->function)
		short_name_templates(l->function, out, size);
	else if (PLACE_IMAGE(place))
		snprintf(out, size, "%s+0x%" PRIx64, image_name(image), PLACE_OFFSET(place));
	else
		snprintf(out, size, "0x%" PRIx64, PLACE_OFFSET(place));
	printable_copy(out, out, size);
}

static void add_text(char out[LIVE_NAME_TEXT], const char *text)
{
	size_t used = strlen(out);

	/* Cut where it does not fit. */
	snprintf(out + used, LIVE_NAME_TEXT - used, "%.*s", (int)(LIVE_NAME_TEXT - used - 1), text);
}

void live_names_stack(const struct live_names *n, const struct live_heap *heap, const struct live_stack *stack,
                      char out[LIVE_NAME_TEXT])
{
	struct own own = find_own(n, heap, stack);
	char text[LIVE_NAME_TEXT], source[LINE_TEXT];
	int shown = 0;

	out[0] = 0;
	for (size_t i = own.frame; i < stack->place_count && shown < CALLERS; i++) {
		size_t count;
		const struct location *list = locations(heap, stack->places[i], &count);
		for (size_t k = i == own.frame ? own.location : 0; k < count && shown < CALLERS; k++, shown++) {
			name_function(heap, stack->places[i], &list[k], text, sizeof text);
			add_text(out, shown ? " < " : "");
			add_text(out, text);
			text_source(&heap->images, stack->places[i], &list[k], source);
			add_text(out, !shown && source[0] ? " " : "");
			add_text(out, shown ? "" : source);
		}
	}
	if (!out[0])
		add_text(out, not_known);
	printable_copy(out, out, LIVE_NAME_TEXT); /* the end may be half a character */
}

size_t live_names_whole(const struct live_heap *heap, const struct live_stack *stack, size_t first, size_t count,
                        void (*line)(void *arg, const char *text), void *arg)
{
	char text[LIVE_NAME_TEXT], source[LINE_TEXT];
	size_t lines = 0, inlined;

	if (heap->symbols && stack->place_count)
		symbols_want(heap->symbols, stack->places, stack->place_count);
	for (size_t i = 0; i < stack->place_count; i++) {
		const struct location *list = locations(heap, stack->places[i], &inlined);
		for (size_t k = 0; k < inlined; k++, lines++) {
			if (lines < first || lines - first >= count)
				continue;
			name_function(heap, stack->places[i], &list[k], text, sizeof text);
			text_source(&heap->images, stack->places[i], &list[k], source);
			add_text(text, source[0] ? " " : "");
			add_text(text, source);
			printable_copy(text, text, sizeof text);
			line(arg, text);
		}
	}
	if (!lines && count)
		line(arg, not_known);
	return lines;
}

/* ---- groups ---- */

/* The key tells files of one name apart, the text is what people see. */
static void name_group(const struct live_names *n, const struct live_heap *heap, const struct live_stack *stack,
                       char key[KEY_TEXT], char text[LIVE_NAME_TEXT])
{
	struct own own = find_own(n, heap, stack);
	size_t count;

	if (!stack->place_count) {
		snprintf(key, KEY_TEXT, "%s", not_known);
		snprintf(text, LIVE_NAME_TEXT, "%s", not_known);
		return;
	}
	uint64_t place = stack->places[own.frame];
	const struct location *l = &locations(heap, place, &count)[own.location];
	const struct image *image = &heap->images.list[PLACE_IMAGE(place)];
	const char *module = PLACE_IMAGE(place) ? image_name(image) : "no module";
	char source[LINE_TEXT];
	if (n->by == BY_MODULE) {
		snprintf(key, KEY_TEXT, "%u", PLACE_IMAGE(place));
		snprintf(text, LIVE_NAME_TEXT, "%s", module);
	} else if (n->by == BY_FUNCTION || !l->file || (n->by == BY_LINE && !l->line)) {
		name_function(heap, place, l, text, LIVE_NAME_TEXT);
		snprintf(key, KEY_TEXT, "%u %s", PLACE_IMAGE(place), l->function ? l->function : text);
		if (l->function)
			snprintf(text + strlen(text), LIVE_NAME_TEXT - strlen(text), "  (%s)", module);
		if (n->by == BY_FILE) {
			snprintf(key, KEY_TEXT, "%u", PLACE_IMAGE(place));
			snprintf(text, LIVE_NAME_TEXT, "(source file not known)  (%s)", module);
		}
	} else {
		const struct location file = { .file = l->file, .line = n->by == BY_LINE ? l->line : 0 };
		snprintf(key, KEY_TEXT, "%.*s:%d", KEY_TEXT - 16, file.file, file.line);
		snprintf(text, LIVE_NAME_TEXT, "%s", text_source(&heap->images, place, &file, source));
	}
	printable_copy(text, text, LIVE_NAME_TEXT);
}

/* In one block, the text after the key. */
static char *both(const char *key, const char *text)
{
	size_t a = strlen(key) + 1, b = strlen(text) + 1;
	char *name = malloc(a + b);

	if (name) {
		memcpy(name, key, a);
		memcpy(name + a, text, b);
	}
	return name;
}

static int add_name(struct live_names *n, const char *key, const char *text)
{
	if (!grow_list(n->list, n->count))
		return -ENOMEM;
	n->list[n->count] = both(key, text);
	if (!n->list[n->count])
		return -ENOMEM;
	n->count++;
	return 0;
}

static int group_of(struct live_names *n, const char *key, const char *text, uint32_t *group)
{
	uint64_t hash = map_mix(1);
	const uint32_t *known;

	for (const char *s = key; *s; s++)
		hash = map_mix(hash ^ (unsigned char)*s);
	for (; (known = map_find(&n->name_of, hash)); hash++) {
		*group = *known;
		if (!strcmp(n->list[*known], key))
			return 0;
	}
	*group = (uint32_t)n->count;
	int r = add_name(n, key, text);
	return r ?: map_put(&n->name_of, hash, *group);
}

const char *live_names_text(const struct live_names *n, uint32_t group)
{
	return group < n->count ? n->list[group] + strlen(n->list[group]) + 1 : not_yet;
}

int live_names_group(struct live_names *n, struct live_heap *heap, size_t limit, bool *left)
{
	char key[KEY_TEXT], text[LIVE_NAME_TEXT];
	size_t done = 0, wanted = 0;
	int r = n->count ? 0 : add_name(n, "", not_yet);

	for (size_t i = 0; i < heap->count && wanted < limit; i++) {
		if (heap->list[i].group)
			continue;
		live_names_want(heap, &heap->list[i]);
		wanted++;
	}
	*left = false;
	for (size_t i = 0; !r && i < heap->count; i++) {
		struct live_stack *stack = &heap->list[i];
		if (stack->group)
			continue;
		*left = done == limit;
		if (*left)
			break;
		name_group(n, heap, stack, key, text);
		r = group_of(n, key, text, &stack->group);
		done++;
	}
	return r;
}
