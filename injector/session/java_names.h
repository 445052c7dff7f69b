/* SPDX-License-Identifier: MIT */
/*
 * Names of the Java frames that the payload records, read while the JVM still has them and written into the dump.
 *
 * Each poll, some five in a second, takes the stacks that are new and names the frames in them that are new, once each.
 * A name that is written is the right one (java_frame.h). For a Method, which has no number of its own, that is so if
 *
 *   no class has been unloaded since before the frame was recorded: since the poll before the one that has found it; or
 *   the Method was known at that poll already, and still is called the same.
 *
 * Else it is not named, but known from then on, and frames of the interpreter get another age (header.java_age): those
 * that are recorded from now on are new ones, and can be proved at the next poll.
 *
 * When classes have been unloaded, all Methods that are known are looked at again: where one is not what it was, or its
 * class is not loaded any more (java_loaded.h), a later sample may have the same frame and mean another, so the frame
 * loses its name (dump_java_calls.gone). Code and Methods that had gone before they could be named have no name either.
 * A look costs what the JVM has of classes, so after one there is none for JAVA_LOOK_PAUSE times as long as it took;
 * frames that it could prove wait for the next, and who reads the dump meanwhile is told (header.java_behind).
 *
 * A JVM that ends takes what is looked at with it. What was unloaded since the last poll is not known then: mostly that
 * is a fifth of a second ago. Where it is longer than JAVA_HELD_UP_NS, as memattach was held up, no Method keeps its
 * name; where it is only the look that waits, counted from the poll before classes were unloaded, none that it would
 * have looked at.
 *
 * Bounded: frames and methods by number, the region JAVA by a part of the dump, a poll by time; what had no room stays
 * without a name, and that is said once.
 */
#pragma once

#include "base/map.h"
#include "base/string_table.h"
#include "java/java_frame.h"
#include "java/java_loaded.h"
#include "recording/new_stacks.h"

#define JAVA_POLL_NS 20000000ull  /* how long one poll names frames, and how long it looks at Methods again */
#define JAVA_LAST_NS 500000000ull /* … and the last one */
#define JAVA_LOOK_PAUSE 20u
#define JAVA_HELD_UP_NS 1000000000ull

/* A frame of the stacks. */
struct java_word {
	uint64_t frame;
	uint64_t unloads; /* classes that had been unloaded before it was recorded */
	uint64_t poll;    /* that has found it */
	uint64_t record;  /* offset of its dump_java_calls, 0: none */
	uint64_t method;  /* that the interpreter runs in it, once it is named; else 0 */
	uint32_t tries;
	uint32_t look; /* number of the one that it waits for, 0: of none */
};

/* A Method that was proved. */
struct java_known {
	uint64_t method;
	uint32_t id;      /* in the dump */
	uint64_t since;   /* number of the poll */
	uint64_t unloads; /* when it was looked at last */
	bool again;       /* it is looked at once more: a class is counted a moment before its loader leaves the list */
	bool gone;
};

struct java_names {
	struct java_view view; /* without a budget */
	uint64_t counter;      /* address of the number of unloaded classes, 0: nobody counts them */
	uint64_t unloads;      /* at the begin of the last poll */
	uint64_t polls;
	uint64_t polled_ns; /* the last one that has found the process; UINT64_MAX: it came when all was recorded */
	struct new_stacks stacks;
	struct map word_at; /* frame -> index in words */
	struct java_word *words;
	uint32_t word_count;
	uint32_t *pending; /* indexes of words that are not decided yet */
	uint32_t pending_count;
	struct map known_at; /* Method -> index in known */
	struct java_known *known;
	uint32_t known_count;
	struct string_table methods; /* name and file; the id is the number + 1 */
	uint64_t bytes, bytes_max;   /* of the records */
	uint32_t next_look;          /* at what is known, once classes have been unloaded */
	uint32_t looks;              /* that have been */
	uint64_t rest_until_ns;      /* from these */
	uint64_t behind_ns;          /* since when classes may have been unloaded that no look knows of, 0: none have */
	uint64_t age_poll;           /* that has changed the age */
	uint32_t unsure;             /* frames of this poll that could not be proved */
	uint32_t named, gone, no_room;
	bool failed; /* no memory: what comes has no names */
	struct java_called list[JAVA_INLINED_MAX];
};

/* view: of a proof. Before the recording begins. NULL: no memory. */
struct java_names *java_names_new(const struct java_view *view, const struct target_memory *tm,
                                  uint64_t dump_max_bytes);
void java_names_free(struct java_names *n);

/* last: of the session. Never fails: what cannot be read has no name. */
void java_names_poll(struct java_names *n, struct dump_writer *w, const struct target_memory *tm, bool last);

/* The process has ended. True: Methods have lost their names, as memattach was held up before that. */
bool java_names_ended(struct java_names *n, struct dump_writer *w);
