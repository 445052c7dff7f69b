/* SPDX-License-Identifier: MIT */
#include "debug_info/demangled_name.h"

#include <demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Longer ones are cut by nobody's eye and cost the demangler time without bound. */
#define NAME_MAX_BYTES 16384u
#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

/* Where the demangler puts a name. */
struct plain {
	char *text;
	size_t used, room;
	bool failed; /* no memory, or too long */
	jmp_buf enough;
};

static bool make_room(struct plain *p, size_t bytes)
{
	if (bytes <= p->room - p->used)
		return true;
	size_t room = p->used + bytes <= DEMANGLED_MAX_BYTES / 2 ? 2 * (p->used + bytes) : DEMANGLED_MAX_BYTES;
	char *more = bytes <= DEMANGLED_MAX_BYTES - p->used ? realloc(p->text, room) : NULL;
	if (!more)
		return false;
	p->text = more;
	p->room = room;
	return true;
}

/*
 * A name of 300 bytes may stand for one of gigabytes: each part repeats what came before twice. The demanglers have
 * their parts on the stack, so they can be left at any moment; Rust's may lose a small piece of heap.
 */
static void on_part(const char *part, size_t bytes, void *arg)
{
	struct plain *p = arg;

	if (!bytes)
		return; /* then part may be NULL */
	if (!make_room(p, bytes + 1)) {
		p->failed = true;
		longjmp(p->enough, 1);
	}
	memcpy(p->text + p->used, part, bytes);
	p->used += bytes;
	p->text[p->used] = 0;
}

/* Whether the name is mangled in this way, and all of what it stands for is in p. */
static bool demangle(struct plain *p, const char *name, int (*how)(const char *, int, demangle_callbackref, void *))
{
	p->used = 0;
	return !setjmp(p->enough) && how(name, OPTIONS, on_part, p) && p->used;
}

char *demangled_name(const char *name)
{
	struct plain p = { 0 };

	if (name[0] == '_' && strnlen(name, NAME_MAX_BYTES) < NAME_MAX_BYTES &&
	    (demangle(&p, name, rust_demangle_callback) ||
	     (!p.failed && demangle(&p, name, cplus_demangle_v3_callback))))
		return p.text;
	free(p.text);
	return strdup(name);
}
