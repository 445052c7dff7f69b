/* SPDX-License-Identifier: MIT */
/*
 * memattach's side of the dump file: creates it, gives it room before the payload needs it, renews the lease, and writes what only the
 * outside knows (modules, threads, notes, how the session ended). include/dump_format.h is the contract.
 *
 * Room is made by fallocate, so the target never meets a block that the disk cannot hold. When the disk is full or max_bytes is reached, the
 * present regions are all there is; the payload counts what it then cannot keep.
 */
#ifndef MEMATTACH_DUMP_WRITER_H
#define MEMATTACH_DUMP_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "dump_format.h"
#include "err.h"
#include "modules.h"
#include "thinning.h"

struct dump_writer {
	int fd;
	struct dump_header *header; /* mapped, shared; the map covers max_bytes, only bytes below used are touched */
	uint64_t max_bytes;
	uint64_t used;
	bool live_full, stacks_full, index_full, history_full; /* that can grow no more */
	struct thinning *thinnings; /* as recorded */
	size_t thinning_count;
	bool exact;                 /* it began with every allocation */
	bool dense;                 /* it began with so small a rate that room is filled quickly */
	char path[4096];
};

struct dump_writer_options {
	const char *path;      /* must not exist */
	uint64_t max_bytes;
	uint64_t rate_bytes;
	double max_overhead;   /* of sampling, 0: the rate stays as it is */
};

/* Creates the file, mode 0600, never over an existing one. -EEXIST, -ENOSPC … dump_writer_close afterwards. */
int dump_writer_create(struct dump_writer *w, const struct dump_writer_options *options, struct err *e) WARN_UNUSED;
/* Unmaps and closes; the file stays. */
void dump_writer_close(struct dump_writer *w);
/* Removes the file again: for an attach that did not come about. */
void dump_writer_discard(struct dump_writer *w);

/* Makes room where it grows short. Cheap when there is nothing to do. What cannot grow any more fails once, with what follows from it. */
int dump_writer_grow(struct dump_writer *w, struct err *e) WARN_UNUSED;
/* Live samples, and how many the table has entries for. */
uint64_t dump_writer_live(const struct dump_writer *w);
uint64_t dump_writer_live_capacity(const struct dump_writer *w);
/* A live sample of this stack was given up. A reference that leads to no stack is passed over: the target's memory may be damaged. */
void dump_writer_unkept(struct dump_writer *w, uint32_t stack);
/* Clock and lease. */
struct dump_clock dump_clock_now(void);
void dump_writer_renew(struct dump_writer *w, uint64_t lease_ns);
/*
 * Ends the recording from outside: the recorder sees at its next sample that the lease has run out, and is passed by from then on. Where every
 * allocation is recorded a thread may be nearly always in the recorder else, and no safe point for the detach would come.
 */
void dump_writer_end_lease(struct dump_writer *w);
void dump_writer_set_state(struct dump_writer *w, enum dump_state state, int detail);
enum dump_state dump_writer_state(const struct dump_writer *w);

/* rows and slots as in struct dump_module. */
int dump_writer_module(struct dump_writer *w, const struct elf_module *m, uint32_t rows, uint32_t slots, uint32_t flags,
		       struct err *e) WARN_UNUSED;
/* Sets unloaded_stamp of the module record with this id. */
void dump_writer_module_gone(struct dump_writer *w, uint32_t id);
int dump_writer_thread(struct dump_writer *w, uint32_t tid, const char *name, struct err *e) WARN_UNUSED;
int dump_writer_note(struct dump_writer *w, enum dump_note_kind kind, const char *text, struct err *e) WARN_UNUSED;

/* Puts another rate in force, and records that; the record's size is filled in. Without room for the record it is in force all the same,
 * except that nothing may be thinned then. */
int dump_writer_rate(struct dump_writer *w, const struct dump_rate_change *change, struct err *e) WARN_UNUSED;
/* How many changes have room without another region. */
uint64_t dump_writer_rate_changes_left(const struct dump_writer *w);

void dump_writer_count(struct dump_writer *w, enum dump_counter counter, uint64_t n);
uint64_t dump_writer_counter(const struct dump_writer *w, enum dump_counter counter);

/* Cycle counter of this machine, and how many of its ticks make a second (measured against CLOCK_MONOTONIC_RAW). */
uint64_t dump_clock_stamp(void);

#endif
