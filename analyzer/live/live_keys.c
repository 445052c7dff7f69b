/* SPDX-License-Identifier: MIT */
#include "live/live_keys.h"

#include <string.h>

/* Up and down move the mark, and the rows where it would leave the screen; other keys move both. */
static void choose(struct live_choice *c, enum live_key key, size_t rows, size_t page)
{
	size_t shown = page ? page : 1, end = rows ? rows - 1 : 0, offset = c->chosen - c->first;
	bool by_one = key == LIVE_KEY_UP || key == LIVE_KEY_DOWN;

	c->first = live_key_scroll(c->first, by_one ? LIVE_KEY_NONE : key, rows, page);
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
		c->line = live_key_scroll(c->line, key, rows, page);
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
