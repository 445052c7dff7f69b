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
	const char *name = image->path && !image->python ? image_name(image) : "";

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
	return python_names_init(&m->names, images, dump);
}

void stack_maker_done(struct stack_maker *m)
{
	python_names_done(&m->names);
}

/* /usr/bin/python3.11, libpython3.13.so.1.0 */
static bool is_interpreter(const struct images *images, uint64_t place)
{
	const struct image *image = &images->list[PLACE_IMAGE(place)];
	const char *name = image->path && !image->python ? image_name(image) : "";

	return begins(name, "libpython") || (begins(name, "python") && (!name[6] || isdigit((unsigned char)name[6])));
}

static bool is_c_library(const struct images *images, uint64_t place)
{
	const struct image *image = &images->list[PLACE_IMAGE(place)];
	const char *name = image->path && !image->python ? image_name(image) : "";

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
static bool is_entrance(const struct merged_stack *merged, uint32_t i)
{
	return i && merged->frames[i - 1].python && !merged->frames[i].python &&
	       !DUMP_FRAME_MODULE(merged->frames[i].word);
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
		uint64_t place = python ? python_names_place(&m->names, word, &known) : images_place(m->modules, word);
		if (!m->native && !python && (is_interpreter(m->images, place) || is_entrance(&merged, i)))
			continue;
		places->list[places->count++] = place;
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

	places->count = 0;
	places->python = places->python_complete = false;
	if (dump_python_count(copy))
		make_merged(m, copy, first, places);
	else
		make_native(m, copy, first, places);
}
