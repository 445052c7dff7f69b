/* SPDX-License-Identifier: MIT */
/* The processes of a directory as a screen of so many columns and lines. Nothing that comes from a dump acts on the
 * terminal. */
#pragma once

#include <stdio.h>

#include "live/fleet_rows.h"
#include "live/live_keys.h"

struct fleet_frame {
	const char *directory;
	const struct fleet *fleet;
	const size_t *rows; /* those that are shown, in their order */
	size_t row_count;
	enum fleet_sort sort;
	struct live_choice choice;
	const char *notice; /* NULL: none */
};

#define FLEET_HEAD_LINES 3u /* with the names of the columns; of a low screen that line alone */

/* How many rows a screen of so many lines shows. */
static inline size_t fleet_screen_page(size_t lines)
{
	size_t head = lines > FLEET_HEAD_LINES ? FLEET_HEAD_LINES : 1;

	return lines > head ? lines - head : 0;
}
void fleet_screen_write(const struct fleet_frame *frame, size_t columns, size_t lines, bool colour, FILE *out);
