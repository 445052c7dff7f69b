/* SPDX-License-Identifier: MIT */
/*
 * Names of frames, files and modules for the forms that other programs read and show: well-formed UTF-8 in which
 * nothing acts on a terminal; what is otherwise becomes U+FFFD. What means something in a form is its writer's
 * business.
 */
#pragma once

#include <stdint.h>

#include "report/report.h"

/* A growing buffer of text, used again and again. */
struct name_text {
	char *text;
	size_t room;
};

/* Valid until the buffer is used again. NULL: out of memory. */
const char *frame_name_clean(struct name_text *buffer, const char *name);
/* The function, or "library.so+0x1a2b" or "0x1a2b" where it is not known. */
const char *frame_name_text(struct name_text *buffer, const struct report *report, uint64_t place,
                            const struct location *location);
void frame_name_done(struct name_text *buffer);
