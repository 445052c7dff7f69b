/* SPDX-License-Identifier: MIT */
/*
 * memattach's side of the dump: creates the memory, gives it room before the payload needs it, renews the lease, and
 * writes what only the outside knows (modules, threads, notes, how the session ended). include/dump_format.h is the
 * contract; dump_file.h copies it to the disk.
 *
 * The target maps this memory, so it decides what is in it. Three rules follow.
 *
 *   - It is a memfd that memattach owns: sealed against shrinking and growing, and allocated ahead by memattach. So
 *     nothing that happens to a file, a file system or a user raises SIGBUS in the target or here, and the pages count
 *     as memattach's.
 *   - memattach keeps its own header and its own table of regions (`own`), decides by them alone, and publishes copies.
 *     Of what the target writes it reads counters, the fill of the arena of stacks, the state, and live records:
 *     bounded values, used for the report and for when to make room, never as a place or as an end of a loop.
 *   - The payload touches nothing outside of published regions. When memory is short or max_bytes is reached, the
 *     present regions are all there is; the payload counts what it then cannot keep.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/clocks.h"
#include "dump_format.h"
#include "base/err.h"
#include "elf/modules.h"
#include "stats/thinning.h"

#define DUMP_MEMFD_NAME "memattach-dump"

/* The youngest arena of a kind that memattach alone fills. */
struct writer_arena {
	uint64_t offset; /* 0: none yet */
	uint64_t bytes;
	uint64_t used;
};

/* Where the record of a module is that has not gone. */
struct writer_module {
	uint32_t id;
	uint64_t offset;
};

struct session_share;

struct dump_writer {
	int fd;                  /* of the memfd, -1: none */
	struct dump_header *own; /* what memattach knows; shared with children that copy, out of reach of the target */
	struct dump_header *shared; /* mapped, max_bytes long; only bytes below used are touched */
	uint64_t max_bytes;
	uint64_t used;                                         /* by the header and by regions */
	uint64_t allocated;                                    /* not less than used: what has memory */
	bool live_full, stacks_full, index_full, history_full; /* that can grow no more, … */
	uint64_t short_until_ns; /* … or, if it is not 0, not until then, because memory was short; CLOCK_MONOTONIC */
	bool said_short;
	struct writer_arena arenas[DUMP_REGION_USAGE + 1];
	struct writer_module *modules;
	size_t module_count;
	struct thinning *thinnings; /* as recorded */
	size_t thinning_count;
	bool exact;                  /* it began with every allocation */
	bool dense;                  /* it began with so small a rate that room is filled quickly */
	struct session_share *share; /* room is taken from there; NULL: there is only max_bytes */
};

struct dump_writer_options {
	uint64_t max_bytes;
	uint64_t rate_bytes;
	double max_overhead; /* of sampling, 0: the rate stays as it is */
	struct session_share *share;
};

/*
 * Creates the memory. -ENOSPC, -ENOMEM … dump_writer_close afterwards. Members of `own` may be changed until
 * dump_writer_publish, which shows them to the payload and so comes before the target gets the descriptor.
 */
int dump_writer_create(struct dump_writer *w, const struct dump_writer_options *options, struct err *e) WARN_UNUSED;
void dump_writer_publish(struct dump_writer *w);
/* Unmaps and closes. */
void dump_writer_close(struct dump_writer *w);

/* Makes room where it grows short. Cheap when there is nothing to do. What cannot grow any more fails once, with what
 * follows from it. */
int dump_writer_grow(struct dump_writer *w, struct err *e) WARN_UNUSED;
/* Live samples, and how many the table has entries for. */
uint64_t dump_writer_live(const struct dump_writer *w);
uint64_t dump_writer_live_capacity(const struct dump_writer *w);
/* NULL: the reference leads to no stack, as the target's memory may be damaged. */
struct dump_stack *dump_writer_stack(const struct dump_writer *w, uint32_t stack);
/* A live sample was given up. */
void dump_writer_unkept(struct dump_writer *w, const struct dump_live_record *sample);
/* Clock and lease. */
void dump_writer_renew(struct dump_writer *w, uint64_t lease_ns);
/* Of a recorder that has stopped by itself: the recording ended with the lease. Returns how long it lasted. */
uint64_t dump_writer_end_with_lease(struct dump_writer *w);
/*
 * Ends the recording from outside: the recorder sees at its next sample that the lease has run out, and is passed by
 * from then on. Where every allocation is recorded a thread may be nearly always in the recorder else, and no safe
 * point for the detach would come.
 */
void dump_writer_end_lease(struct dump_writer *w);
void dump_writer_set_state(struct dump_writer *w, enum dump_state state, int detail);
/* As memattach has set it, or that the payload says it has stopped recording by itself. */
enum dump_state dump_writer_state(const struct dump_writer *w);
/* What the target holds of private memory, what it held of shared memory and of files when nothing of ours was mapped
 * any more, and what sampling has cost it so far. */
void dump_writer_private(struct dump_writer *w, uint64_t bytes);
void dump_writer_end_resident(struct dump_writer *w, uint64_t shared_bytes, uint64_t files_bytes);
void dump_writer_cost(struct dump_writer *w, uint64_t cpu_ns, uint64_t cost_ns);

/* rows and GOT entries as in struct dump_module. */
int dump_writer_module(struct dump_writer *w, const struct elf_module *m, uint32_t rows, uint32_t entries,
                       uint32_t flags, struct err *e) WARN_UNUSED;
/* Sets unloaded_stamp of the module record with this id. */
void dump_writer_module_gone(struct dump_writer *w, uint32_t id);
int dump_writer_thread(struct dump_writer *w, uint32_t tid, const char *name, struct err *e) WARN_UNUSED;
int dump_writer_note(struct dump_writer *w, enum dump_note_kind kind, const char *text, struct err *e) WARN_UNUSED;
/* Whose Python frames are in stacks from now on. */
void dump_writer_python(struct dump_writer *w, uint32_t version, const struct dump_evaluator *evaluators);
/* An entry of sys.path. */
int dump_writer_path(struct dump_writer *w, const char *text, struct err *e) WARN_UNUSED;
/* A row of what the resident memory is, and after the rows of a look what that is as a whole; texts are cut to
 * DUMP_MEMORY_NAME_MAX. */
int dump_writer_memory(struct dump_writer *w, const struct dump_memory *row, const char *name,
                       struct err *e) WARN_UNUSED;
int dump_writer_look(struct dump_writer *w, const struct dump_look *look, const char *text, struct err *e) WARN_UNUSED;
/* What was resident at a moment of the session. */
int dump_writer_usage(struct dump_writer *w, const struct dump_usage *usage, struct err *e) WARN_UNUSED;
/* Of what blocks are: a name, and some blocks that have names already; at last the look, with its text. */
int dump_writer_block_name(struct dump_writer *w, const struct dump_block_name *name, const char *text,
                           struct err *e) WARN_UNUSED;
int dump_writer_blocks(struct dump_writer *w, const struct dump_block *blocks, uint32_t count,
                       struct err *e) WARN_UNUSED;
int dump_writer_block_look(struct dump_writer *w, const struct dump_block_look *look, const char *text,
                           struct err *e) WARN_UNUSED;
/* Java frames of this HotSpot (17) are in stacks from now on. */
void dump_writer_java(struct dump_writer *w, uint32_t version);
/* A method of Java, with ids from 1 on, flags as DUMP_JAVA_STUB; its texts are cut to DUMP_JAVA_TEXT_MAX. A frame with
 * its calls, *offset is for dump_writer_java_gone(): then it has no name any more. */
int dump_writer_java_method(struct dump_writer *w, uint32_t id, uint32_t flags, const char *name, const char *file,
                            struct err *e) WARN_UNUSED;
int dump_writer_java_calls(struct dump_writer *w, uint64_t frame, uint32_t flags, const struct dump_java_call *calls,
                           uint32_t count, uint64_t *offset, struct err *e) WARN_UNUSED;
/* Frames of the interpreter get other words from now on. */
void dump_writer_java_age(struct dump_writer *w, uint64_t age);
/* Their names may be out of date, or are not any more. */
void dump_writer_java_behind(struct dump_writer *w, bool behind);
void dump_writer_java_gone(struct dump_writer *w, uint64_t offset);

/* Puts another rate in force, and records that; the record's size is filled in. Without room for the record it is in
 * force all the same, except that nothing may be thinned then. */
int dump_writer_rate(struct dump_writer *w, const struct dump_rate_change *change, struct err *e) WARN_UNUSED;
/* How many changes have room without another region. */
uint64_t dump_writer_rate_changes_left(const struct dump_writer *w);

void dump_writer_count(struct dump_writer *w, enum dump_counter counter, uint64_t n);
uint64_t dump_writer_counter(const struct dump_writer *w, enum dump_counter counter);
