/* SPDX-License-Identifier: MIT */
/* What a live view waits for: keys of the terminal, another size of it, or the time of its next look. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "live/live_key.h"

#define LIVE_KEYBOARD_BYTES 64u

struct live_keyboard {
	char keys[LIVE_KEYBOARD_BYTES]; /* that a terminal has sent, and that make no whole key yet */
	size_t bytes;
	const bool *typing, *paused; /* of the view: a filter is typed; it pauses */
	bool *quit;                  /* … it is to end; set when the terminal is gone */
	int ends;                    /* a descriptor that ends a wait when it can be read; 0: none */
	/* Both return 0 or -errno with a text. */
	int (*type)(void *arg, char byte, struct err *e); /* of the filter's text */
	int (*apply)(void *arg, enum live_key key, struct err *e);
	void *arg;
};

/* Signals of the terminal's size end a wait from now on, and come in none but these. */
void live_keyboard_catch_resize(void);
/* Until due_ns of the monotonic clock; without an end while the view pauses. 0, or what type and apply return. */
int live_keyboard_await(struct live_keyboard *keyboard, uint64_t due_ns, struct err *e) WARN_UNUSED;
