/* SPDX-License-Identifier: MIT */
/*
 * The processes of the machine, as looks at /proc find them: which are to be profiled, which not and why, and which
 * come next. Nothing here touches a process.
 *
 * Left out without a word are this memattach and all that it has made, other memattach, kernel threads, and what the
 * user has not meant. Process 1 of the machine is left out and said: what harms it ends the machine. A process is
 * taken up when it has lived for a second: most of those that live shorter are about to execute another program.
 */
#pragma once

#include "choose/chosen.h"
#include "recording/session_share.h"
#include "system/fork_budget.h"
#include "system/unseen.h"

#define PROCESS_AGE_NS 1000000000ull
#define PROCESS_TRIES 4u     /* to attach to one */
#define PROCESS_PROGRAMS 16u /* that one executes, one after the other */

enum process_state {
	PROCESS_LEFT_OUT, /* of no concern */
	PROCESS_WAITING,
	PROCESS_IN_SESSION,
	PROCESS_REFUSED, /* why says it */
	PROCESS_DONE,    /* was profiled; it is not taken again */
};

struct seen_process {
	struct chosen is;
	enum process_state state;
	bool present, told; /* at the last look; its session was told to end */
	unsigned tries, programs;
	uint64_t looked_ns, next_try_ns;
	double growth; /* of private memory, bytes per second */
	struct fork_count forks;
	bool forking;  /* too often: it has lost its session, or has got none */
	unsigned lost; /* sessions, for that */
	char why[UNSEEN_WHY];
	/* Of its session. */
	pid_t session; /* 0: none */
	struct session_share *share;
	uint64_t begun_ns;
	bool attached; /* … has attached, and was seen to */
	bool cleaning; /* it is none: it takes out what a session has left that was killed */
	struct {
		uint64_t at_ns, cost_ns, cpu_ns, private_bytes;
	} last; /* as of the last division of the budget */
};

struct process_table {
	struct seen_process *list; /* by PID, then by start */
	size_t count;
	const char *what; /* NULL: all */
	enum chosen_by by;
	struct unseen ended; /* who ended without a session */
	bool young;          /* at the last look there were some that are to be taken up soon */
};

/* Looks at all. Pointers into the list do not hold on. */
void process_table_look(struct process_table *t, uint64_t now_ns);
/* Its session has ended because it executes another program: which may be none to be profiled. */
void process_table_execed(const struct process_table *t, struct seen_process *p);
/* The one that comes next, by its size and growth; NULL: none. */
struct seen_process *process_table_next(struct process_table *t, uint64_t now_ns);
size_t process_table_count(const struct process_table *t, enum process_state state);
/* Another try comes later, or never. */
void process_table_refuse(struct seen_process *p, const char *why, uint64_t now_ns);
/* All that are so old or older, so that on a machine where others begin all the time it comes true. */
bool process_table_had_a_turn(const struct process_table *t, uint64_t age_ns);
/* The process whose number this is now, as of the last look; NULL: none. */
struct seen_process *process_table_find(struct process_table *t, pid_t pid);
/* Those that wait have to wait longer, for this reason. */
void process_table_hold(struct process_table *t, const char *why);
/* Those that are there, and those that have ended; added to u. */
void process_table_unseen(const struct process_table *t, struct unseen *u);
void process_table_free(struct process_table *t);
