/* SPDX-License-Identifier: MIT */
#include "live/live_keys.h"

#include <string.h>

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

static size_t scrolled(size_t first, enum live_key key, size_t rows, size_t page)
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

/* Up and down move the mark, and the rows where it would leave the screen; other keys move both. */
static void choose(struct live_choice *c, enum live_key key, size_t rows, size_t page)
{
	size_t shown = page ? page : 1, end = rows ? rows - 1 : 0, offset = c->chosen - c->first;
	bool by_one = key == LIVE_KEY_UP || key == LIVE_KEY_DOWN;

	c->first = scrolled(c->first, by_one ? LIVE_KEY_NONE : key, rows, page);
	if (key == LIVE_KEY_UP)
		c->chosen -= c->chosen > 0;
	else if (key == LIVE_KEY_DOWN)
		c->chosen++;
	else if (key == LIVE_KEY_HOME || key == LIVE_KEY_END)
		c->chosen = key == LIVE_KEY_END ? end : 0;
	else if (key == LIVE_KEY_PAGE_UP || key == LIVE_KEY_PAGE_DOWN)
		c->chosen = c->first + offset;
	c->chosen = c->chosen < end ? c->chosen : end;
	c->first = c->first < c->chosen ? c->first : c->chosen;
	c->first = c->chosen - c->first >= shown ? c->chosen - shown + 1 : c->first;
}

void live_choice_fit(struct live_choice *c, size_t rows, size_t page)
{
	choose(c, LIVE_KEY_NONE, rows, page);
}

/* Other rows are shown from now on. */
static void show_first(struct live_choice *c)
{
	c->first = c->chosen = 0;
	c->whole = false;
}

void live_choice_type(struct live_choice *c, char byte)
{
	size_t length = strlen(c->filter);

	if (byte == '\r' || byte == '\n') {
		c->typing = false;
	} else if (byte == 0x7f || byte == '\b') {
		while (length && ((unsigned char)c->filter[--length] & 0xc0) == 0x80)
			; /* the rest of a character of UTF-8 */
		c->filter[length] = 0;
	} else if ((unsigned char)byte >= 0x20 && length + 1 < sizeof c->filter) {
		c->filter[length] = byte;
		c->filter[length + 1] = 0;
	}
	show_first(c);
}

static void escape(struct live_choice *c)
{
	if (c->whole) {
		c->whole = false;
		return;
	}
	c->typing = false;
	c->filter[0] = 0;
	show_first(c);
}

void live_choice_apply(struct live_choice *c, enum live_key key, size_t rows, size_t page)
{
	bool help = c->help;

	c->help = false; /* each key leaves the help */
	if (c->whole)
		c->line = scrolled(c->line, key, rows, page);
	else
		choose(c, key, rows, page);
	switch (key) {
	case LIVE_KEY_QUIT: c->quit = true; break;
	case LIVE_KEY_PAUSE: c->paused = !c->paused; break;
	case LIVE_KEY_HELP: c->help = !help; break;
	case LIVE_KEY_SORT:
		c->sort = (enum live_sort)((c->sort + 1) % LIVE_SORT_COUNT);
		show_first(c);
		break;
	case LIVE_KEY_BY:
		c->by = c->by >= BY_MODULE ? BY_STACK : (enum group_by)(c->by + 1);
		show_first(c);
		break;
	case LIVE_KEY_ENTER:
		c->whole = !c->whole && rows;
		c->line = 0;
		break;
	case LIVE_KEY_FILTER:
		c->typing = true;
		show_first(c);
		break;
	case LIVE_KEY_ESCAPE:
		if (!help)
			escape(c);
		break;
	default: break;
	}
}
