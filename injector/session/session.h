/* SPDX-License-Identifier: MIT */
/*
 * A session: everything that memattach knows about one target between the first inspection and the receipt. The steps:
 * inspect.h (touches nothing), attach.h, follow.h (while it lasts), detach.h, receipt.h. Terms: docs/glossary.md
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "touch/remote/borrow.h"
#include "control.h"
#include "base/string_table.h"
#include "recording/dump_file.h"
#include "recording/dump_writer.h"
#include "entry/entry_hooks.h"
#include "got/got_plan.h"
#include "recording/governor.h"
#include "recording/session_share.h"
#include "elf/libc.h"
#include "process/memory_room.h"
#include "process/ours.h"
#include "census/census_by.h"
#include "files/output_file.h"
#include "entry/python_allocators.h"
#include "java_layout.h"
#include "python/python_find.h"
#include "python/python_paths.h"
#include "process/snapshot.h"
#include "children/symbol_sources.h"
#include "unwind/table_writer.h"
#include "process/target.h"
#include "choose/trigger.h"
#include "maps/maps.h"

#define SESSION_LEASE_NS 10000000000ull /* recording stops by itself when memattach is not heard of for so long */

/* Pages of code that are set apart from their mapping (touch/patches/code_pages.h). */
#define CODE_RUNS_MAX 16u /* further ones stay in their mapping */

struct code_run {
	uint64_t start, end;
	struct mapping file; /* what is mapped there, from start on; without its path */
	unsigned char *copy; /* what was there; NULL: the private copies are to stay */
};

struct code_runs {
	struct code_run list[CODE_RUNS_MAX];
	unsigned count;
};

static inline void code_runs_free(struct code_runs *runs)
{
	for (unsigned i = 0; i < runs->count; i++)
		free(runs->list[i].copy);
	runs->count = 0;
}

#define TRIGGERS_MAX 8u

#define SESSION_REPORTS_MAX 16u

/* Whose loader takes the payload in (load.h). */
enum loader_mode {
	LOADER_AUTO,
	LOADER_TARGET,
	LOADER_OWN,
};

/* Are blocks from CPython's arenas recorded (python_hooks.h)? */
enum python_objects {
	PYTHON_OBJECTS_AUTO, /* if that is cheap enough */
	PYTHON_OBJECTS_ON,
	PYTHON_OBJECTS_OFF,
};

struct session_options {
	pid_t pid;
	uint64_t start_ticks; /* of the process that is meant, 0: whichever has the number */
	uint64_t rate_bytes;
	const char *output;   /* NULL: a name is made */
	uint64_t duration_ns; /* 0: until told to end */
	uint64_t max_bytes;
	const char *receipt;                      /* NULL: none */
	const char *reports[SESSION_REPORTS_MAX]; /* files to be written after the session */
	unsigned report_count;
	uint64_t deadline_ns; /* how long to look for a safe point */
	uint64_t seed;        /* 0: from the kernel */
	double max_overhead;  /* of sampling, as a part of the target's CPU time; 0: no limit */
	uint32_t groups;      /* GROUP_BIT() of the functions to hook */
	enum hooks_mode hooks;
	enum loader_mode loader;
	enum python_objects python_objects;
	struct given_name given[GIVEN_MAX]; /* more functions to hook, at their entries */
	unsigned given_count;
	bool launched;                         /* the target was started by this memattach, and has its terminal */
	int ready;                             /* launched: where a byte says that it has been attached to */
	bool among_several;                    /* other sessions use the same terminal */
	struct session_share *share;           /* of one budget for all sessions; NULL: it is alone */
	bool found_later;                      /* by --children: that it ends before it is attached to is no error */
	struct trigger triggers[TRIGGERS_MAX]; /* any of them begins the session; none: it begins at once */
	unsigned trigger_count;
	uint64_t every_ns;               /* sessions begin so far apart; 0: there is one */
	unsigned keep;                   /* dumps of them */
	bool no_cache;                   /* compile unwind tables anew, keep none */
	bool no_symbols;                 /* do not name the frames at the end */
	bool live;                       /* show the live heap meanwhile */
	bool json;                       /* --census: as JSON */
	uint64_t for_ns;                 /* --census: so long between its two looks; 0: there is one */
	enum census_by by;               /* --census: what its rows are */
	bool unreachable;                /* --census: also what nothing points to */
	bool clone;                      /* --census: also where that splits huge pages */
	bool freeze;                     /* --census: it is stopped for that, not cloned */
	bool holders;                    /* at the end, who holds the sampled blocks */
	uint64_t max_stop_ns, budget_ns; /* for that; 0: as usual */
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

/* What the last inspection found (inspect.h). */
struct session_view {
	struct maps maps;
	struct modules modules;
	uint32_t next_module_id;
	struct libc libc;
	struct got_plan plan;
	struct safe_points points;
	struct unwind_coverage *coverage; /* one for each module */
	struct stub_place cave;           /* where the stub is put; all zeros: not chosen */
};

/* What is recorded, how, and since when. */
struct session_recording {
	struct dump_writer dump;
	struct dump_file file; /* the dump on disk */
	struct unwind_tables tables;
	struct governor governor;
	struct named_thread *named_threads; /* sorted: threads that the dump has names of */
	size_t named_thread_count;
	struct string_table unseen; /* texts of record_unseen_once() */
	uint32_t recorded_names;    /* records of threads in the dump */
	uint64_t started_ns;        /* CLOCK_MONOTONIC when recording began */
	uint64_t cpu_start_ns;      /* CPU time that the target had used then */
	bool asks_usable_size;      /* the payload asks malloc_usable_size */
};

/* The function that ends code objects (python_code.h). */
struct python_code_end {
	uint64_t word;     /* that leads to it */
	uint64_t function; /* what the word holds */
	bool hooked;
	char why[480]; /* it is not; "" where no Python frames are recorded */
};

/* A word that leads to a function of CPython, and is to hold another address of it (arch/function_alias.h). */
struct python_word {
	uint64_t address, value, alias;
};

#define PYTHON_FUNCTIONS_MAX 5u
#define PYTHON_WORDS_MAX 8u

/* What is hooked of CPython (python_functions.h). */
struct session_python_functions {
	struct entry_hook hooks[PYTHON_FUNCTIONS_MAX];
	unsigned count;
	struct python_word words[PYTHON_WORDS_MAX];
	unsigned word_count;
};

/* A CPython that could not be proved at the attach, since no thread ran it. */
struct python_awaited {
	struct python_runtime runtime;
	uint32_t module; /* its id; 0: none is awaited */
	char why[480];
	bool said;               /* … in the dump */
	uint64_t fails_since_ns; /* for another reason, at each look; 0: it does not */
};

/* The CPython whose frames are recorded (python_session.h). */
struct session_python {
	struct python_layout layout; /* version 0: none is */
	struct python_awaited awaited;
	uint64_t runtime;          /* address of _PyRuntime */
	struct python_paths paths; /* that are in the dump */
	struct session_python_functions functions;
	struct python_code_end code_end;
	struct dump_evaluator evaluators[DUMP_EVALUATORS];
	uint32_t hooked_module;              /* id of the interpreter whose table of allocators is hooked, 0: none */
	struct python_allocators allocators; /* of that one */
	bool words_are_back;                 /* the program has undone those hooks, and that was said */
	char *objects;                       /* a line: its small objects are recorded, too; NULL: they are not */
	char *notes;                         /* lines: whose frames or small objects are not, and why; NULL none */
	char *unseen;                        /* lines: what it may allocate of any size unseen; NULL none */
	char *details;                       /* lines for --verbose; NULL none */
};

/* Words that were patched, and what became of them; refused: that should have been, for something to be seen. */
struct word_counts {
	uint32_t patched, restored, foreign, gone, refused;
};

/* What the receipt tells (receipt.h). */
struct session_outcome {
	struct snapshot before;
	char oom_events[MEMORY_ROOM_PATH];             /* memory_room.h */
	uint64_t oom_kills;                            /* that it told of before */
	struct word_counts entries;                    /* GOT entries */
	struct word_counts python;                     /* words of CPython (patched_words.h) */
	unsigned functions_hooked, functions_restored; /* at their entries */
	uint64_t attach_longest_ns, detach_longest_ns;
	char *residue; /* lines: what had to stay */
	char *notes; /* lines: what the program itself did to its GOT entries, and the like: nothing that had to stay */
};

/* Messages that wait while something else has the terminal. */
struct held_lines {
	char *text; /* NULL: none */
};

struct java_names;

/* What no descriptor or pointer in it says is there, has not been made yet. */
struct session {
	struct session_options options;
	struct target target;
	struct target_memory memory;
	struct target_writer writer; /* with the next one */
	struct changes changes;
	struct session_view view;
	struct session_recording recording;
	struct session_outcome outcome;
	struct session_python python;
	struct java_layout java;       /* bytes 0: stacks are not walked through Java code */
	struct java_names *java_names; /* of what they go through; NULL: of nothing */
	struct {
		uint32_t modules; /* view.next_module_id at the last look for one */
		uint64_t next_ns; /* when the next proof is tried; 0: there is none to be proved */
		uint64_t wait_ns;
	} java_awaited; /* a JVM that was not there at the attach, or could not be proved */
	struct payload_place payload;
	struct entry_hooks hooks;
	struct code_runs code_runs; /* pages of their entries */
	struct symbol_sources symbols;
	struct output_file reports[SESSION_REPORTS_MAX]; /* session_reports.h */
	unsigned report_count;                           /* that are open */
	unsigned programs;   /* that the process has executed, each while it was attached to */
	uint64_t own_base;   /* of the payload that this memattach has loaded or taken over, 0 none */
	const char *save_as; /* where the recording of a session whose memattach died is saved, NULL: a name is made */
	pid_t live_child;    /* live_child.h, 0: none */
	struct held_lines *held; /* NULL: messages are written at once */
	bool unsaved;            /* it could not be */
	bool detaching;          /* --detach: no session of our own is to come */
	bool touched;            /* this memattach has loaded or started the payload */
	bool maps_payload;       /* it is mapped by memattach though the C library could load it (load.h) */
	char loader_reason[160]; /* … and why, if the user has not asked for it (loader_choice.h) */
	struct ours ours;        /* files of memattach that the target has, or had */
};

void session_init(struct session *s, const struct session_options *options);
void session_done(struct session *s);
/* Drops what the last inspection found. */
void session_forget_view(struct session *s);

/* For a thread that is borrowed: with room for so many bytes; its longest stop goes to *longest_ns. */
void session_borrower(const struct session *s, struct borrower *b, uint64_t extra_bytes, uint64_t *longest_ns);
/* The same for a detach, which is not given up as easily as an attach. */
void session_patient_borrower(const struct session *s, struct borrower *b, uint64_t *longest_ns);
void session_add_residue(struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void session_add_note(struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Messages for people: stderr, not with --quiet. */
void session_say(const struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void session_say_lines(const struct session *s, const char *lines); /* NULL: none */
