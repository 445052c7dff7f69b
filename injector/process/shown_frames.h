/* SPDX-License-Identifier: MIT */
/* Frames of a language in the target, as text for people: what was proved of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/budget.h"

/* Both texts are malloc'ed. */
struct shown_frame {
	char *function;
	char *file;   /* "" not known */
	int32_t line; /* as its language has it, also for none */
	bool native;
};

/* The next one outwards, with copies of the texts, which are charged to the budget. */
int shown_frames_add(struct shown_frame **list, uint32_t *count, const struct shown_frame *frame, struct budget *budget,
                     struct err *e) WARN_UNUSED;
void shown_frames_free(struct shown_frame **list, uint32_t *count);
