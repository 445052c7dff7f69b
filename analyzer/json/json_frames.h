/* SPDX-License-Identifier: MIT */
/* The tables of frames and modules of the JSON report, to which its stacks refer by number. */
#pragma once

#include "base/json.h"
#include "output/place_table.h"
#include "report/report.h"

struct json_frames {
	const struct report *report;
	struct place_table places;
	uint32_t *modules; /* images in the order of the table of modules */
	uint32_t module_count;
	struct map module_of; /* image -> index in modules */
};

void json_frames_init(struct json_frames *frames, const struct report *report);
void json_frames_done(struct json_frames *frames);
/* The member "frames" of a stack: numbers. All stacks come before the tables. -ENOMEM. */
int json_frames_stack(struct json_frames *frames, struct json *j, const struct report_row *row) WARN_UNUSED;
/* The members "frames" and "modules" of the report. -ENOMEM. */
int json_frames_tables(struct json_frames *frames, struct json *j) WARN_UNUSED;
