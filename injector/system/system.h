/* SPDX-License-Identifier: MIT */
/*
 * All processes of a machine, or of a group: one memattach that supervises a session for each, in a process of its own,
 * and divides one budget among them.
 *
 * Order: the process that is the largest with what it will have grown in a minute comes first. One attach follows the
 * other, and between two is a pause of four times the CPU time that the last one took: so attaching takes at most a
 * fifth of one processor. One that lasts for long is not waited for.
 *
 * CPU: sampling on the whole machine may take --max-overhead of its processors (cpu_budget.h). Room: dumps grow out of
 * --max-size together (session_share.h), so it goes to those that need it. When it is short the dumps of processes that
 * have ended make way, the oldest first.
 *
 * Whoever is killed: a session dies without harm to its process, and what it left is taken out by a session process
 * that does only that. When the supervisor dies the sessions detach by themselves. When all die, memattach --detach
 * --all finishes.
 */
#pragma once

#include "choose/chosen.h"
#include "launch/session_process.h"
#include "recording/session_share.h"

#define SYSTEM_SESSIONS_MAX 1024u /* at one time */

struct system_member {
	const struct chosen *target;
	struct session_share *share;
	size_t ordinal; /* of the session */
};

struct system_options {
	const char *what; /* NULL: all processes; else as chosen_fits has it */
	enum chosen_by by;
	const char *directory; /* for the dumps */
	uint64_t duration_ns;  /* 0: until told to end */
	uint64_t max_bytes;    /* of all dumps */
	double part;           /* of the machine's processors, for sampling; 0: no limit */
	bool quiet, verbose;
	/* Both run in a process of their own. */
	struct session_result (*session)(void *context, const struct system_member *member);
	enum exit_status (*detach)(void *context, const struct chosen *target);
	void *context;
};

/* The exit status: the worst of the sessions, those apart that did not come about; 1 if none did. */
enum exit_status system_run(const struct system_options *options);
