/* SPDX-License-Identifier: MIT */
/*
 * A child that executes the memanalyze beside memattach, which then becomes a user of its own that opens files with the
 * rights of the target's user, and keeps nothing that it does not need (common/sandbox/rights.h): what it reads, DWARF
 * and the dump, the target may have written. So it is not the user who typed the command either: what takes over such a
 * child gains nothing that the target has not. That the program does this by itself, after execve, is what keeps others
 * of that user from taking over its descriptors.
 *
 * The child has the descriptors that it was given and no others, none of them a terminal, an empty environment, and a
 * session of its own, without a terminal: Ctrl-C is for memattach, which then ends it. The live view has a terminal
 * (live_child.h).
 */
#pragma once

#include "children/report_pipe.h"
#include "recording/dump_file.h"
#include "sandbox/rights.h"
#include "children/symbol_sources.h"

#define ANALYZER_CHILD_FIRST 4 /* descriptors with a number of their own */
#define ANALYZER_CHILD_VARIABLES 4
#define ANALYZER_CHILD_ROOM_BYTES                                                                                      \
	(64ull << 20) /* that must be free: the kernel would make room by ending a process                             \
	               */

/* ---- in the child ---- */

/* Descriptors that are passed on, each moved to a number that collides with none of the first ones. */
struct passed_on {
	int list[SYMBOL_FILES_MAX + 2 * ANALYZER_CHILD_FIRST];
	size_t count;
};

/* The new number, 0: there is none. */
int passed_on_add(struct passed_on *p, int fd);

#define PASSED_ON_FILES_TEXT (SYMBOL_FILES_MAX * 24u)
/* The files of the modules, as requests name them. */
void passed_on_add_files(struct passed_on *p, const struct symbol_sources *sources, char text[PASSED_ON_FILES_TEXT]);

/*
 * Executes memanalyze. first[]: what becomes 0 to 3, numbers of passed_on_add; 0: /dev/null, or nothing for number 3.
 * stops: as Ctrl-Z does. variables: those of the environment that it gets, with NULL after the last; or NULL.
 * Never returns: the exit status tells memattach what could not be done.
 */
_Noreturn void analyzer_child_execute(struct passed_on *p, const int first[ANALYZER_CHILD_FIRST],
                                      const struct symbol_sources *sources, char **arguments, bool stops,
                                      const char *const variables[]);
/* The argument RIGHTS of a request: limits, and the user of the target. */
void analyzer_child_rights(const struct symbol_sources *sources, struct rights limits, char text[RIGHTS_TEXT]);
/* Ends the child because it could not open what it shall read. */
_Noreturn void analyzer_child_no_dump(void);

/* ---- in memattach ---- */

struct analyzer_child {
	pid_t pid;
	const char *task;                    /* "looks for them" */
	unsigned seconds;                    /* then it is killed */
	double (*done)(void *child_context); /* the part of its work that is done, of 1 */
	void *child_context;
	struct report_pipe *pipe; /* what it hands back is copied meanwhile, and all of it at its end; or NULL */
};

/*
 * Waits for its end, with patience (recording/dump_file.h). *status is its exit status, of which memanalyze has made
 * one below 125. -ENOEXEC, -EPERM, -EIO: it could not be executed, had too many privileges, or no dump; -ECANCELED: a
 * signal ended it; -ETIMEDOUT, also where it has been stopped for 15 s, but not for the time in which memattach itself
 * was; what report_pipe_move returns.
 */
int analyzer_child_await(const struct analyzer_child *child, const struct patience *patience, int *status,
                         struct err *e) WARN_UNUSED;
