/* SPDX-License-Identifier: MIT */
/*
 * What a report shows of a stack: places, innermost first, without the allocator's own wrappers in front (operator new,
 * reallocarray), and with Python frames in the place of the evaluator's native ones (python_merge.h).
 *
 * Frames of Java are one place for each method, the inlined ones too (java_places.h). A stack with them is shown as a
 * person thinks of it who writes Java: unless native frames are asked for, HotSpot's own are left out, but for the one
 * that Java code has called at the inner end, with the JDK's internal ones, and what is outside of the outermost Java
 * frame if it is nothing but HotSpot and the C library. Libraries that Java code has called stay. Of a stack of
 * HotSpot's compilers what is inside of Compiler::compile_method() or C2Compiler::compile_method() is left out, too,
 * where functions have names.
 *
 * A stack with Python frames is shown as a person thinks of it who writes Python: unless native frames are asked for,
 * those of the interpreter itself (its program and libpython, wherever they stand) are left out, and so is what is
 * outside of the outermost Python frame if it is nothing but the C library. Frames of other libraries stay: an
 * extension that allocates, and a program that runs Python inside of it. Files decide, not names of functions, so the
 * rows are the same with and without symbols.
 */
#pragma once

#include "input/images.h"
#include "java/java_places.h"
#include "python/python_merge.h"
#include "python/python_names.h"
#include "symbols/symbols.h"

struct stack_maker {
	const struct dump_header *header;
	const struct image_map *modules;
	struct images *images;
	struct symbols *symbols; /* NULL: wrappers are not known */
	struct python_names names;
	struct java_places java_frames;
	bool native;     /* all native frames are shown */
	bool coroutines; /* the process has greenlet loaded */
};

/* Inlining makes more places than frames; a stack of more of them ends there. */
#define STACK_PLACES_MAX 1024u

struct stack_places {
	uint64_t list[STACK_PLACES_MAX];
	uint32_t count;
	uint32_t flags;       /* DUMP_STACK_TRUNCATED, DUMP_STACK_DEEP: what is shown ends early */
	bool python;          /* Python takes part in the stack */
	bool python_complete; /* … and each of its frames is there, and known */
	bool java;            /* Java takes part in it */
	bool java_nameless;   /* … and some of its frames have no name */
	bool java_complete;   /* … and each of its frames has a name, and the stack does not end early */
};

/* What it is given must outlive it. -ENOMEM. */
int stack_maker_init(struct stack_maker *maker, struct dump *dump, const struct image_map *modules,
                     struct images *images, struct symbols *symbols, bool native) WARN_UNUSED;
void stack_maker_done(struct stack_maker *maker);
void stack_places_make(struct stack_maker *maker, const struct dump_stack_copy *copy, struct stack_places *places);
