/* SPDX-License-Identifier: MIT */
/* What keys do to the live view. Touches no terminal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "live/live_key.h"
#include "live/live_rows.h"

#define LIVE_FILTER_TEXT 64u

/* What is shown, as the keys have chosen it. */
struct live_choice {
	enum group_by by;
	enum live_sort sort;
	size_t first;  /* row at the top */
	size_t chosen; /* row that Enter is about */
	size_t line;   /* of the whole stack, at the top */
	bool paused, help, quit;
	bool whole;  /* the stack of the chosen row is shown instead of rows */
	bool typing; /* keys are the text of the filter */
	char filter[LIVE_FILTER_TEXT];
};

/* rows: how many there are, or lines of the whole stack while it is shown; page: how many are shown at once. */
void live_choice_apply(struct live_choice *choice, enum live_key key, size_t rows, size_t page);
/* There are so many rows now. */
void live_choice_fit(struct live_choice *choice, size_t rows, size_t page);
/* A byte while typing: text, backspace, or Enter, which keeps the filter. */
void live_choice_type(struct live_choice *choice, char byte);
