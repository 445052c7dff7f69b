/* SPDX-License-Identifier: MIT */
/*
 * A session: everything that memattach knows about one target between the first look and the receipt. The steps are in
 * inspect.c (only looks), attach.c, follow.c (while it lasts), detach.c and receipt.c.
 */
#ifndef MEMATTACH_SESSION_H
#define MEMATTACH_SESSION_H

#include <stdbool.h>
#include <stdio.h>

#include "borrow.h"
#include "control.h"
#include "dump_file.h"
#include "dump_writer.h"
#include "governor.h"
#include "libc.h"
#include "ours.h"
#include "pending_error.h"
#include "got_plan.h"
#include "snapshot.h"
#include "target.h"
#include "table_writer.h"

struct session_options {
	pid_t pid;
	uint64_t rate_bytes;
	const char *output;   /* NULL: a name is made */
	uint64_t duration_ns; /* 0: until told to end */
	uint64_t max_bytes;
	const char *receipt;  /* NULL: none */
	uint64_t deadline_ns; /* how long to look for a safe point */
	uint64_t seed;        /* 0: from the kernel */
	double max_overhead;  /* of sampling, as a part of the target's CPU time; 0: no limit */
	uint32_t groups;      /* GROUP_BIT() of the functions to hook */
	bool no_cache;        /* compile unwind tables anew, keep none */
	bool quiet;
	bool verbose;
};

/* Where the parts of the payload are in the target. */
struct payload_place {
	uint64_t base; /* of the payload's image, 0: not loaded */
	uint64_t end;
	uint64_t code_end;              /* after its executable segment, which is its first */
	uint64_t session;               /* address of memattach_session */
	uint64_t control;               /* address of memattach_control */
	struct memattach_session block; /* as last read */
};

struct session {
	struct session_options options;
	struct target target;
	struct target_memory memory;
	struct target_writer writer;
	struct maps maps; /* as of the last look */
	struct modules modules;
	struct libc libc;
	struct got_plan plans;
	struct safe_points points;
	struct unwind_tables tables;
	struct unwind_coverage *coverage; /* one for each module */
	struct dump_writer dump;
	struct dump_file file; /* the dump on disk */
	struct snapshot before;
	struct payload_place payload;
	uint64_t own_base;   /* of the payload that this memattach has loaded or taken over, 0 none */
	const char *save_as; /* where the recording of a session whose memattach died is saved, NULL: a name is made */
	bool unsaved;        /* it could not be */
	bool detaching;      /* --detach: no session of our own is to come */
	struct ours ours;    /* files of memattach that the target has, or had */
	uint64_t cave;
	uint32_t next_module_id;
	struct named_thread *named_threads; /* sorted: threads that the dump has names of */
	size_t named_thread_count;
	uint32_t recorded_names; /* records of threads in the dump */
	uint32_t entries_patched, entries_restored, entries_foreign, entries_gone, entries_refused;
	uint64_t attach_longest_ns, detach_longest_ns;
	uint64_t started_ns;   /* CLOCK_MONOTONIC when recording began */
	uint64_t cpu_start_ns; /* CPU time that the target had used then */
	struct governor governor;
	struct got_entry *final_entries; /* as they stood after the restore */
	uint32_t final_entry_count;
	char *residue; /* lines: what had to stay */
	char *notes; /* lines: what the program itself did to its GOT entries, and the like: nothing that had to stay */
	struct pending_error pending_error; /* of the thread that is borrowed for the detach */
	bool touched;                       /* this memattach has loaded or started the payload */
	bool asks_usable_size;              /* the payload asks malloc_usable_size */
	bool have_target, have_memory, have_maps, have_modules, have_plans, have_points, have_tables, have_dump,
		have_file, have_before;
};

void session_init(struct session *s, const struct session_options *options);
void session_done(struct session *s);

/* Finds the process; nothing is read of its memory. */
int session_open(struct session *s, struct err *e) WARN_UNUSED;
/* Looks at the target: process, maps, modules, C library. Touches nothing. */
int session_inspect(struct session *s, struct err *e) WARN_UNUSED;
/* The same again after modules came or went; ids are kept. */
int session_inspect_again(struct session *s, struct err *e) WARN_UNUSED;
/* A stub that an earlier memattach left in the padding of some module: that place is used again. */
bool session_old_cave(const struct session *s, uint64_t *cave);
/* Would dlopen crash on a library that the program has torn apart? -EFAULT, named. */
int session_check_loader(const struct session *s, struct err *e) WARN_UNUSED;
/* Would a hook kill a thread, because it may not read the cycle counter? Only what can be seen from outside. -EPERM,
 * named. */
int session_check_threads(const struct session *s, struct err *e) WARN_UNUSED;
/* Chooses cave, safe points. */
int session_choose(struct session *s, struct err *e) WARN_UNUSED;

/* Loads the payload, starts recording, patches. On failure the target is as before. */
int session_attach(struct session *s, struct err *e) WARN_UNUSED;
/* Patches what modules that were loaded later brought with them. */
int session_patch_more(struct session *s, struct err *e) WARN_UNUSED;
/* Restores, proves, unloads, verifies. -EBUSY and the like: still attached. What had to stay is in residue. */
int session_detach(struct session *s, struct err *e) WARN_UNUSED;
/* Looks for a payload as session_find_payload, after a thread that a dead memattach left on its way has come to its
 * end. */
int session_settle(struct session *s, struct err *e) WARN_UNUSED;
/* Clears the padding that stubs of earlier memattachs are in. */
int session_erase_caves(struct session *s, struct err *e) WARN_UNUSED;
/* Is it mapped where it was loaded? Not after execve; what is in it may be anything. */
bool session_payload_is_mapped(const struct session *s);
/* Finds the payload of this session, or if it has none of its own yet, that of another one in the target; base 0 if
 * there is none. */
int session_find_payload(struct session *s, struct err *e) WARN_UNUSED;
/* The payload that was found has hooks in force, or inert ones. */
bool session_is_active(const struct session *s);
/*
 * What dlopen returned for the payload. A memattach that died between dlopen and CONTROL_START could not note it; then
 * the link map tells, which is what both C libraries use as handle. 0: unknown.
 */
uint64_t session_payload_handle(const struct session *s);

/* Runs until the end of the session is asked for, or the target ends. */
enum session_end {
	SESSION_END_ASKED,  /* signal or duration: detach now */
	SESSION_END_EXITED, /* the target has ended; detail: exit status */
	SESSION_END_KILLED, /* detail: signal */
	SESSION_END_EXECED,
};
int session_follow(struct session *s, enum session_end *end, int *detail, struct err *e) WARN_UNUSED;

void session_borrower(const struct session *s, struct borrower *b, uint64_t extra_bytes, uint64_t *longest_ns);
void session_add_residue(struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void session_add_note(struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Messages for people: stderr, not with --quiet. */
void session_say(const struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
