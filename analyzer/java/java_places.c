/* SPDX-License-Identifier: MIT */
#include "java/java_places.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define GONE "[gone]"
#define NO_PACKAGE "(no package)"
#define NO_MODULE "(Java)" /* of what has no name */
#define STUBS "(HotSpot)"
#define CALLS_MAX (16u << 20)

/* ---- what the dump has ---- */

/* Ids are in order in what memattach writes; room is made for as many as there are, whatever they say. */
static int on_method(void *arg, const struct dump_java_method *m, const char *file)
{
	struct java_places *n = arg;

	if (m->id >= n->method_room) {
		uint32_t room = 2 * m->id + 64; /* an id is at most DUMP_JAVA_METHODS_MAX */
		struct java_method_text *more = reallocarray(n->methods, room, sizeof *more);
		if (!more)
			return -ENOMEM;
		memset(more + n->method_room, 0, (room - n->method_room) * sizeof *more);
		n->methods = more;
		n->method_room = room;
	}
	struct java_method_text *text = &n->methods[m->id];
	if (text->name)
		return 0; /* the first one is the one that frames before this knew */
	*text = (struct java_method_text){ strdup(m->text), strdup(file), m->flags };
	return text->name && text->file ? 0 : -ENOMEM;
}

static bool is_method(const struct java_places *n, uint32_t id)
{
	return id < n->method_room && n->methods[id].name && n->methods[id].file;
}

static int on_calls(void *arg, const struct dump_java_calls *c)
{
	struct java_places *n = arg;
	struct java_frame_calls frame = { .first = n->call_count, .count = c->count, .gone = c->gone != 0 };

	frame.gone |= n->outdated && c->flags & DUMP_JAVA_INTERPRETED;

	if (map_find(&n->frame_at, c->frame) || n->call_count > CALLS_MAX)
		return 0;
	for (uint32_t i = 0; i < c->count; i++) {
		frame.gone |= !is_method(n, c->calls[i].method);
		if (!grow_list(n->calls, n->call_count))
			return -ENOMEM;
		n->calls[n->call_count++] = c->calls[i];
	}
	if (!grow_list(n->frames, n->frame_count) || map_put(&n->frame_at, c->frame, n->frame_count))
		return -ENOMEM;
	n->frames[n->frame_count++] = frame;
	return 0;
}

int java_places_init(struct java_places *n, struct images *images, struct dump *dump)
{
	const struct dump_java_visitor visitor = { on_method, on_calls, n };

	const enum dump_end end = dump_end(dump);

	*n = (struct java_places){ .images = images };
	n->outdated = end == DUMP_END_ABANDONED || (end == DUMP_END_RUNNING && dump_header(dump)->java_behind);
	int r = dump_each_java(dump, &visitor);
	if (!r && n->call_count) {
		n->places = calloc(n->call_count, sizeof *n->places);
		r = n->places ? 0 : -ENOMEM;
	}
	return r;
}

void java_places_done(struct java_places *n)
{
	for (uint32_t i = 0; i < n->method_room; i++) {
		free(n->methods[i].name);
		free(n->methods[i].file);
	}
	free(n->methods);
	free(n->frames);
	free(n->calls);
	free(n->places);
	map_done(&n->frame_at);
	*n = (struct java_places){ 0 };
}

/* ---- places ---- */

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* What the JDK is made of beneath what programs call, and classes that it has made while it ran (lambdas, forms of
 * method handles), which stack traces of Java hide. */
static bool is_internal(const char *package, const char *function)
{
	return begins(package, "jdk.internal.") || begins(package, "java.lang.invoke") || strstr(function, "/0x");
}

/* "java.nio.DirectByteBuffer.<init>" is DirectByteBuffer.<init> of java.nio. */
static struct java_shown_place make_place(struct java_places *n, const struct java_method_text *m, int32_t line)
{
	struct java_shown_place shown = { 0, JAVA_STUB };

	if (m->flags & DUMP_JAVA_STUB) {
		shown.place = source_places_add_java(n->images, STUBS, m->name, "", 0);
		return shown;
	}
	char *method = strrchr(m->name, '.'), *class = m->name;
	for (char *p = m->name; method && p < method; p++)
		class = *p == '.' ? p + 1 : class;
	char *end = class > m->name ? class - 1 : NULL; /* of the package */
	if (end)
		*end = '\0';
	const char *package = end ? m->name : NO_PACKAGE;
	shown.visibility = is_internal(package, class) ? JAVA_INTERNAL : JAVA_SHOWN;
	shown.place = source_places_add_java(n->images, package, class, m->file, m->file[0] && line > 0 ? line : 0);
	if (end)
		*end = '.';
	return shown;
}

static const struct java_shown_place *nameless(struct java_places *n, uint32_t *count)
{
	if (!n->gone.place)
		n->gone.place = source_places_add_java(n->images, NO_MODULE, GONE, "", 0);
	*count = 1;
	return &n->gone;
}

const struct java_shown_place *java_places_of(struct java_places *n, uint64_t frame, uint32_t *count, bool *known)
{
	const uint32_t *at = map_find(&n->frame_at, frame);
	struct java_frame_calls *f = at ? &n->frames[*at] : NULL;

	*known = f && !f->gone;
	if (!*known)
		return nameless(n, count);
	for (uint32_t i = f->first; !f->placed && i < f->first + f->count; i++)
		n->places[i] = make_place(n, &n->methods[n->calls[i].method], n->calls[i].line);
	f->placed = true;
	*count = f->count;
	return &n->places[f->first];
}
