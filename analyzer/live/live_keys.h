/* SPDX-License-Identifier: MIT */
/* The keys of the live view, and what they do to it. Touches no terminal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "live/live_rows.h"

enum live_key {
	LIVE_KEY_NONE, /* one that does nothing */
	LIVE_KEY_QUIT,
	LIVE_KEY_PAUSE,
	LIVE_KEY_SORT,
	LIVE_KEY_BY,
	LIVE_KEY_RESTART, /* growth is counted from now on */
	LIVE_KEY_HELP,
	LIVE_KEY_UP,
	LIVE_KEY_DOWN,
	LIVE_KEY_PAGE_UP,
	LIVE_KEY_PAGE_DOWN,
	LIVE_KEY_HOME,
	LIVE_KEY_END,
	LIVE_KEY_ENTER,  /* the whole stack of the chosen row, and back */
	LIVE_KEY_FILTER, /* a text is typed from now on */
	LIVE_KEY_ESCAPE, /* back; without a filter */
};

/*
 * The first key of what a terminal has sent; returns how many bytes it has. 0: it is the beginning of an escape
 * sequence, of which the rest is to come; if none comes a lone Escape is LIVE_KEY_ESCAPE.
 */
size_t live_key_read(const char *bytes, size_t count, enum live_key *key);

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
