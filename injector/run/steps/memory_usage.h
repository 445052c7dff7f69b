/* SPDX-License-Identifier: MIT */
/*
 * How much is resident while a session lasts, by kind, into the dump: each second what the kernel's sums say, and as
 * often as that is cheap a look (census/memory_look.h), by a process of its own, as at the beginning and at the end. A
 * look is followed by a rest of fifty times the CPU time that it took, so that all take two percent of a processor at
 * most. Long sessions have fewer moments, so that the dump grows by the logarithm of the time. One of many sessions
 * (--system) has none.
 */
#pragma once

#include "session/session.h"

struct usage_look;

struct memory_usage {
	pid_t child; /* that looks; 0: none does */
	struct usage_look *look;
	uint64_t next_look_ns, next_ns, give_up_ns; /* CLOCK_MONOTONIC */
	uint64_t own_bytes;                         /* of memattach's, in the last look */
	bool full;                                  /* the dump has no more room */
};

/* To be called now and then: it does what is due. */
void memory_usage_tick(struct memory_usage *u, struct session *s, uint64_t now_ns);
/* Ends a look that is under way. */
void memory_usage_end(struct memory_usage *u);
