/* SPDX-License-Identifier: MIT */
/* The keys of a program that fills the terminal, as their bytes come. Touches no terminal. */
#pragma once

#include <stddef.h>

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

/* The first row of a page that is scrolled by a key. */
size_t live_key_scroll(size_t first, enum live_key key, size_t rows, size_t page);
