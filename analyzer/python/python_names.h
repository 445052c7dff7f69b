/* SPDX-License-Identifier: MIT */
/* From the Python frames of a dump to places (source_places.h). Each frame is looked up once, each code object read
 * seldom more than once, and a dump whose records ask for more work than a real one does loses names, not time. */
#pragma once

#include "dump/dump_reader.h"
#include "input/images.h"
#include "input/python_path.h"

struct python_names {
	struct images *images;
	struct dump *dump;
	struct python_path path;
	struct map place_of; /* frame without its entry bit -> index in places */
	uint64_t *places;
	uint32_t count;
	struct dump_code_copy *code; /* that was read last, for */
	uint32_t reference;
	uint64_t work; /* bytes read and decoded */
};

/* images and dump must outlive it. -ENOMEM. */
int python_names_init(struct python_names *names, struct images *images, struct dump *dump) WARN_UNUSED;
void python_names_done(struct python_names *names);

/* The place of a Python frame; of one whose code is not known, that which says so, and *known is false. 0: no memory.
 */
uint64_t python_names_place(struct python_names *names, uint64_t frame, bool *known);
