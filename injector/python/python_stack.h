/* SPDX-License-Identifier: MIT */
/*
 * The thread states of an interpreter and the frames of each, read from outside while it runs. A frame that the thread
 * leaves meanwhile leaves its words behind, so that most looks succeed; where something changes under a look, it ends
 * with an error as in python_object.h, and is tried again by python_proof.h.
 */
#pragma once

#include "python/python_object.h"

#define PYTHON_INTERPRETERS_MAX 256u
#define PYTHON_STATES_MAX 4096u

struct python_state {
	uint64_t address;
	uint64_t thread; /* pthread_self() of its thread */
	uint64_t native; /* tid as the target sees it; 0: this version does not keep it */
	int64_t interpreter;
};

/* All thread states of all interpreters. *list is malloc'ed, NULL if there are none. */
int python_states_read(struct python_view *v, struct python_state **list, size_t *count, struct err *e) WARN_UNUSED;

/* A frame that has begun, innermost first. */
struct python_frame {
	struct python_code code;
	uint64_t address;
	int64_t offset; /* of the instruction, bytes from the start of the code; below 0: none has run */
};

/* Called for each, until it returns something else than 0. */
typedef int (*python_frame_fn)(void *context, const struct python_frame *frame, struct err *e);

/* Walks; *truncated: there are more than PYTHON_DEPTH_MAX frames. A chain that returns to itself is -EINVAL. */
int python_stack_walk(struct python_view *v, uint64_t state, python_frame_fn fn, void *context, bool *truncated,
                      struct err *e) WARN_UNUSED;
