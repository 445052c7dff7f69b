/* SPDX-License-Identifier: MIT */
#include "report/stack_places.h"

#include <ctype.h>
#include <string.h>

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* greenlet.cpython-39-x86_64-linux-gnu.so, from version 1 on greenlet/_greenlet.cpython-310-x86_64-linux-gnu.so */
static bool is_greenlet(const struct image *image)
{
	const char *name = image->path && !image->language ? image_name(image) : "";

	return begins(name, "greenlet.") || begins(name, "_greenlet.");
}

int stack_maker_init(struct stack_maker *m, struct dump *dump, const struct image_map *modules, struct images *images,
                     struct symbols *symbols, bool native)
{
	*m = (struct stack_maker){ .header = dump_header(dump),
		                   .modules = modules,
		                   .images = images,
		                   .symbols = symbols,
		                   .native = native,
		                   .coroutines = images_any(images, modules, is_greenlet) };
	int r = python_names_init(&m->names, images, dump);
	return r ?: java_places_init(&m->java_frames, images, dump);
}

void stack_maker_done(struct stack_maker *m)
{
	python_names_done(&m->names);
	java_places_done(&m->java_frames);
}

/* /usr/bin/python3.11, libpython3.13.so.1.0 */
static bool is_interpreter(const struct images *images, uint64_t place)
{
	const struct image *image = &images->list[PLACE_IMAGE(place)];
	const char *name = image->path && !image->language ? image_name(image) : "";

	return begins(name, "libpython") || (begins(name, "python") && (!name[6] || isdigit((unsigned char)name[6])));
}

static bool is_hotspot(const struct images *images, uint64_t place)
{
	const struct image *image = &images->list[PLACE_IMAGE(place)];

	return image->path && !image->language && begins(image_name(image), "libjvm.so");
}

static bool is_c_library(const struct images *images, uint64_t place)
{
	const struct image *image = &images->list[PLACE_IMAGE(place)];
	const char *name = image->path && !image->language ? image_name(image) : "";

	return begins(name, "libc.so") || begins(name, "libc-") || begins(name, "libc.musl") ||
	       begins(name, "libpthread") || begins(name, "ld-");
}

/* How many of the first native frames are those of wrappers; 0 if nothing would be left. */
static uint32_t count_wrappers(const struct stack_maker *m, const struct dump_stack_copy *copy)
{
	uint32_t n = copy->stack.frame_count, wrappers = 0;

	while (m->symbols && wrappers < n &&
	       symbols_in_allocator(m->symbols, images_place(m->modules, copy->frames[wrappers])))
		wrappers++;
	return wrappers < n ? wrappers : 0;
}

/* ---- Java ---- */

/* Of C1 and of C2, which take a method to be compiled. */
static bool is_compiler(const struct stack_maker *m, uint64_t place)
{
	size_t count;

	if (!is_hotspot(m->images, place))
		return false;
	const struct location *list = symbols_find(m->symbols, place, &count);
	const char *function = list[count - 1].function;
	return function &&
	       (begins(function, "Compiler::compile_method") || begins(function, "C2Compiler::compile_method"));
}

/* How many of the first frames are what a compiler of HotSpot calls: a hundred stacks of its tables say one thing. */
static uint32_t count_compiler(const struct stack_maker *m, const struct dump_stack_copy *copy, uint32_t first)
{
	for (uint32_t i = first; m->symbols && !m->native && i < copy->stack.frame_count; i++)
		if (is_compiler(m, images_place(m->modules, copy->frames[i])))
			return i;
	return first;
}

static void add(struct stack_places *places, uint64_t place)
{
	if (places->count < STACK_PLACES_MAX)
		places->list[places->count++] = place;
	else
		places->flags |= DUMP_STACK_DEEP;
}

/* Of all Java frames, but for HotSpot's own code: is any to be shown? Where none is, the internal ones are. */
static enum java_visibility look_at_java(struct stack_maker *m, const struct dump_stack_copy *copy, uint32_t first,
                                         struct stack_places *places)
{
	enum java_visibility least = JAVA_STUB;

	for (uint32_t i = first; i < copy->stack.frame_count; i++) {
		uint32_t count;
		bool known;

		if (!images_is_java(m->modules, copy->frames[i]))
			continue;
		const struct java_shown_place *list = java_places_of(&m->java_frames, copy->frames[i], &count, &known);
		places->java = true;
		places->java_complete &= known;
		places->java_nameless |= !known;
		for (uint32_t k = 0; k < count; k++)
			least = list[k].visibility < least ? list[k].visibility : least;
	}
	return m->native ? JAVA_STUB : least;
}

static void add_java(struct stack_maker *m, uint64_t frame, enum java_visibility shown, struct stack_places *places)
{
	uint32_t count;
	bool known;

	const struct java_shown_place *list = java_places_of(&m->java_frames, frame, &count, &known);
	for (uint32_t i = 0; i < count; i++)
		if (list[i].visibility <= shown)
			add(places, list[i].place);
}

/* A native frame of a stack with Java ones; inner: no Java frame is further in. */
static bool shows_native(const struct stack_maker *m, const struct dump_stack_copy *copy, uint32_t i, uint64_t place,
                         bool inner)
{
	const bool called = i + 1 < copy->stack.frame_count && images_is_java(m->modules, copy->frames[i + 1]);

	if (m->native)
		return true;
	return PLACE_IMAGE(place) && (!is_hotspot(m->images, place) || (inner && called));
}

static bool is_below_java(const struct images *images, uint64_t place)
{
	const struct image *image = &images->list[PLACE_IMAGE(place)];

	return !image->path || is_hotspot(images, place) || is_c_library(images, place) ||
	       begins(image_name(image), "libjli.so");
}

static void make_java(struct stack_maker *m, const struct dump_stack_copy *copy, uint32_t first,
                      enum java_visibility shown, struct stack_places *places)
{
	uint32_t outside = 0; /* where native frames begin that no Java frame is outside of */
	bool foreign = false, inner = true;

	for (uint32_t i = first; i < copy->stack.frame_count; i++) {
		const uint64_t word = copy->frames[i], place = images_place(m->modules, word);

		if (images_is_java(m->modules, word)) {
			add_java(m, word, shown, places);
			outside = places->count;
			foreign = inner = false;
		} else {
			foreign |= !is_below_java(m->images, place);
			if (shows_native(m, copy, i, place, inner))
				add(places, place);
		}
	}
	if (!m->native && !foreign)
		places->count = outside;
}

/* ---- all ---- */

static void make_native(const struct stack_maker *m, const struct dump_stack_copy *copy, uint32_t first,
                        struct stack_places *places)
{
	for (uint32_t i = first; i < copy->stack.frame_count; i++) {
		places->list[places->count++] = images_place(m->modules, copy->frames[i]);
		places->python |= m->header->python_version && python_is_evaluator(m->header, copy->frames[i]);
	}
	places->flags = copy->stack.flags & (DUMP_STACK_TRUNCATED | DUMP_STACK_DEEP);
}

static uint32_t python_flags(uint32_t flags)
{
	return (flags & DUMP_STACK_PYTHON_TRUNCATED ? DUMP_STACK_TRUNCATED : 0) |
	       (flags & DUMP_STACK_PYTHON_DEEP ? DUMP_STACK_DEEP : 0);
}

/* With -X perf CPython enters its evaluator through code that it makes for each function: that is right outside of the
 * Python frames, in no module. */
static bool is_entrance(const struct stack_maker *m, const struct merged_stack *merged, uint32_t i)
{
	return i && merged->frames[i - 1].python && !merged->frames[i].python &&
	       !PLACE_IMAGE(images_place(m->modules, merged->frames[i].word));
}

static void make_merged(struct stack_maker *m, const struct dump_stack_copy *copy, uint32_t first,
                        struct stack_places *places)
{
	struct merged_stack merged;
	uint32_t outside = 0; /* where native frames begin that no Python frame is outside of */
	bool foreign = false; /* some of them are not of the C library */

	python_merge(m->header, copy, first, m->coroutines, &merged);
	places->python = true;
	places->flags = python_flags(copy->stack.flags) | (merged.ends_early ? DUMP_STACK_TRUNCATED : 0);
	places->python_complete = !places->flags && merged.fits;
	for (uint32_t i = 0; i < merged.count; i++) {
		bool known = true, python = merged.frames[i].python;
		uint64_t word = merged.frames[i].word;
		if (!python && images_is_java(m->modules, word)) {
			add_java(m, word, m->native ? JAVA_STUB : JAVA_INTERNAL, places);
			continue;
		}
		uint64_t place = python ? python_names_place(&m->names, word, &known) : images_place(m->modules, word);
		if (!m->native && !python && (is_interpreter(m->images, place) || is_entrance(m, &merged, i)))
			continue;
		add(places, place);
		places->python_complete &= known;
		foreign = !python && (foreign || !is_c_library(m->images, place));
		outside = python ? places->count : outside;
	}
	if (!m->native && !foreign)
		places->count = outside;
	if (m->native || places->count > outside) /* what is shown ends where the native frames do */
		places->flags |= copy->stack.flags & (DUMP_STACK_TRUNCATED | DUMP_STACK_DEEP);
}

void stack_places_make(struct stack_maker *m, const struct dump_stack_copy *copy, struct stack_places *places)
{
	uint32_t first = count_wrappers(m, copy);

	places->count = places->flags = 0;
	places->python = places->python_complete = places->java = places->java_nameless = false;
	places->java_complete = true;
	const enum java_visibility shown = look_at_java(m, copy, first, places);
	if (dump_python_count(copy)) {
		make_merged(m, copy, first, places);
	} else if (places->java) {
		make_java(m, copy, first, shown, places);
		places->flags |= copy->stack.flags & (DUMP_STACK_TRUNCATED | DUMP_STACK_DEEP);
	} else {
		make_native(m, copy, count_compiler(m, copy, first), places);
	}
	places->java_complete &= places->java && !places->flags;
}
