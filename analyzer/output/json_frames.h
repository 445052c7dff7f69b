/* SPDX-License-Identifier: MIT */
/* The frames of stacks in JSON. Stacks share most of their frames, so what a place becomes is kept as text. */
#ifndef MEMATTACH_JSON_FRAMES_H
#define MEMATTACH_JSON_FRAMES_H

#include "json.h"
#include "report.h"

struct json_frames {
	const struct report *report;
	struct map text_of; /* place -> index in list */
	struct json_frame_text {
		char *text;
		size_t length;
	} * list;
	size_t count;
	size_t bytes; /* of all texts */
};

void json_frames_init(struct json_frames *frames, const struct report *report);
void json_frames_done(struct json_frames *frames);
/* Writes the objects of one place into the array that is open; always at the same depth. */
void json_frames_put(struct json_frames *frames, struct json *j, uint64_t place);
/* The member "build_id". */
void json_build_id(struct json *j, const struct image *image);

#endif
