/* SPDX-License-Identifier: MIT */
/*
 * Several processes at once: a session for each, in a process of its own, so that one that is held up, refused or ends
 * does not touch the others. Each has its own dump, under the name that memattach makes. SIGINT, SIGTERM and SIGHUP are
 * passed on to all sessions, which then detach; at the end one line says how they ended.
 *
 * With children, processes that the targets make get a session, too. They are found by reading
 * /proc/PID/task/TID/children five times a second, more seldom where that takes more than a fiftieth of a processor;
 * nobody is traced for it. A child gets its session when it has lived for a fifth of a second, so one that ends or
 * executes another program before costs nothing and is not seen. When it executes another program after that, its
 * session ends, and a new one begins. A process is found through its parent: one whose parent has ended before it was
 * found is not.
 */
#pragma once

#include "choose/chosen.h"
#include "launch/session_process.h"

#define SEVERAL_MAX 64u          /* sessions at one time */
#define SEVERAL_EVER_MAX 1024u   /* … and in all */
#define SEVERAL_PROGRAMS_MAX 16u /* of one process, that it executes one after the other */

struct several_member {
	const struct chosen *target;
	size_t ordinal;    /* 0: the first of the targets */
	unsigned programs; /* that it has executed since it was found */
	bool found_later;  /* none of the targets, but a child */
};

struct several_options {
	bool children;
	bool quiet;
	/* Runs in a process of its own. */
	struct session_result (*session)(void *context, const struct several_member *member);
	void *context;
	/* When the session of the first target has ended; may be NULL. */
	void (*first_ended)(void *context);
};

/* The worst exit status of all sessions: 2 (also of one that was killed) before 3 before 1 before 0. */
enum exit_status several_run(const struct several_options *options, const struct chosen_list *targets);
