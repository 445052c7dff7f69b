/* SPDX-License-Identifier: MIT */
/*
 * From the Java frames of a dump to places (source_places.h), by the names that memattach has written beside them. One
 * frame is several places where methods were inlined. A frame without a name is "[gone]": its method had gone, or was
 * another, before it could be named, or nobody knows that it is not.
 */
#pragma once

#include "dump/dump_reader.h"
#include "input/images.h"

enum java_visibility {
	JAVA_SHOWN,
	JAVA_INTERNAL, /* of the JDK's own packages, or hidden as in stack traces of Java */
	JAVA_STUB,     /* HotSpot's own code */
};

struct java_method_text {
	char *name, *file; /* NULL: none has that id */
	uint32_t flags;
};

struct java_frame_calls {
	uint32_t first, count;
	bool gone;
	bool placed; /* places were made of all of its calls */
};

struct java_shown_place {
	uint64_t place; /* 0: no memory */
	enum java_visibility visibility;
};

struct java_places {
	struct images *images;
	struct java_method_text *methods; /* by id */
	uint32_t method_room;
	struct map frame_at; /* frame -> index in frames */
	struct java_frame_calls *frames;
	uint32_t frame_count;
	struct dump_java_call *calls;
	uint32_t call_count;
	struct java_shown_place *places; /* of each call, as far as they were asked for */
	struct java_shown_place gone;
	bool outdated; /* nobody has looked after what the interpreter ran: memattach has died, or is about to */
};

/* images must outlive it. -ENOMEM. */
int java_places_init(struct java_places *names, struct images *images, struct dump *dump) WARN_UNUSED;
void java_places_done(struct java_places *names);

/* The places of a frame, innermost first, *count >= 1; *known is false for one that has no name. */
const struct java_shown_place *java_places_of(struct java_places *names, uint64_t frame, uint32_t *count, bool *known);
