/* SPDX-License-Identifier: MIT */
#include "live/live_key.h"

#define ESCAPE '\033'
#define SEQUENCE_MAX 16

static enum live_key plain_key(char c)
{
	switch (c) {
	case 'q':
	case 'Q': return LIVE_KEY_QUIT;
	case 'p':
	case ' ': return LIVE_KEY_PAUSE;
	case 's': return LIVE_KEY_SORT;
	case 'b': return LIVE_KEY_BY;
	case 'z': return LIVE_KEY_RESTART;
	case 'h':
	case '?': return LIVE_KEY_HELP;
	case 'k': return LIVE_KEY_UP;
	case 'j': return LIVE_KEY_DOWN;
	case 'g': return LIVE_KEY_HOME;
	case 'G': return LIVE_KEY_END;
	case '\r':
	case '\n': return LIVE_KEY_ENTER;
	case '/': return LIVE_KEY_FILTER;
	default: return LIVE_KEY_NONE;
	}
}

/* By the last byte of the sequence, and the number in it. */
static enum live_key sequence_key(char last, char number)
{
	switch (last) {
	case 'A': return LIVE_KEY_UP;
	case 'B': return LIVE_KEY_DOWN;
	case 'H': return LIVE_KEY_HOME;
	case 'F': return LIVE_KEY_END;
	default: break;
	}
	switch (last == '~' ? number : 0) {
	case '1':
	case '7': return LIVE_KEY_HOME;
	case '4':
	case '8': return LIVE_KEY_END;
	case '5': return LIVE_KEY_PAGE_UP;
	case '6': return LIVE_KEY_PAGE_DOWN;
	default: return LIVE_KEY_NONE;
	}
}

size_t live_key_read(const char *bytes, size_t count, enum live_key *key)
{
	*key = LIVE_KEY_NONE;
	if (!count)
		return 0;
	if (bytes[0] != ESCAPE) {
		*key = plain_key(bytes[0]);
		return 1;
	}
	if (count < 2)
		return 0;
	if (bytes[1] != '[' && bytes[1] != 'O') {
		*key = LIVE_KEY_ESCAPE; /* and another key */
		return 1;
	}
	/* ECMA-48, 5.4: bytes below 0x40 belong to the sequence, the next one ends it. */
	for (size_t i = 2; i < count && i < SEQUENCE_MAX; i++) {
		if (bytes[i] < 0x40) /* also what is no ASCII */
			continue;
		*key = sequence_key(bytes[i], i == 3 ? bytes[2] : 0);
		return i + 1;
	}
	return count < SEQUENCE_MAX ? 0 : SEQUENCE_MAX;
}

static size_t last_page(size_t rows, size_t page)
{
	return rows > page ? rows - page : 0;
}

size_t live_key_scroll(size_t first, enum live_key key, size_t rows, size_t page)
{
	size_t last = last_page(rows, page), step = page ? page : 1;

	first = first < last ? first : last; /* rows may have gone meanwhile */
	switch (key) {
	case LIVE_KEY_UP: return first ? first - 1 : 0;
	case LIVE_KEY_DOWN: return first < last ? first + 1 : last;
	case LIVE_KEY_PAGE_UP: return first > step ? first - step : 0;
	case LIVE_KEY_PAGE_DOWN: return first + step < last ? first + step : last;
	case LIVE_KEY_HOME: return 0;
	case LIVE_KEY_END: return last;
	default: return first;
	}
}
