/* SPDX-License-Identifier: MIT */
/*
 * Reads a dump file (include/dump_format.h) that may be growing, changing under us, truncated, damaged or hostile.
 *
 * The file is read with pread(2) into buffers of bounded size, never mapped, so a file that shrinks while we read ends
 * the data and raises no SIGBUS; nothing is allocated by a number that is in the file. Every offset passes one
 * checked accessor. What does not hold together is left out and counted by reason; only a file that is no dump, or that
 * is from a newer memattach, cannot be opened at all.
 *
 * While a session runs, each dump_each_* sees the records that were complete when it came by. Read live records before
 * stacks: then the cumulative sums of a stack are never older than its live records.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dump_format.h"
#include "base/err.h"

struct dump;

/* Why something was left out. */
#define DUMP_SKIP_LIST(X)                                                                                              \
	X(short_file, "the file ends before the data it announces")                                                    \
	X(read_error, "reads that failed")                                                                             \
	X(header, "header fields that make no sense")                                                                  \
	X(region, "regions with an impossible place, size or kind")                                                    \
	X(busy, "live records that changed while they were read")                                                      \
	X(live, "live records that contradict themselves")                                                             \
	X(stack, "stacks that cannot be read")                                                                         \
	X(sums, "stacks whose sums make no sense")                                                                     \
	X(history, "history records that contradict themselves")                                                       \
	X(module, "module records that cannot be read")                                                                \
	X(thread, "thread records that cannot be read")                                                                \
	X(note, "notes that cannot be read")                                                                           \
	X(rate, "changes of the rate that cannot be read")                                                             \
	X(symbols, "tables of names that cannot be read")                                                              \
	X(code, "Python frames whose code object cannot be read")                                                      \
	X(path, "entries of sys.path that cannot be read")                                                             \
	X(java, "names of Java methods that cannot be read")                                                           \
	X(memory, "rows of what the memory is that cannot be read")                                                    \
	X(block, "lists of what blocks are that cannot be read")                                                       \
	X(usage, "records of how much was resident that cannot be read")

#define DUMP_SKIP_ENUM_(name, text) DUMP_SKIP_##name,
enum dump_skip { DUMP_SKIP_LIST(DUMP_SKIP_ENUM_) DUMP_SKIP_COUNT };
#undef DUMP_SKIP_ENUM_

/* How the session ended, as far as the file tells. */
enum dump_end { DUMP_END_RUNNING, DUMP_END_DETACHED, DUMP_END_EXITED, DUMP_END_KILLED, DUMP_END_ABANDONED };

/*
 * -EISDIR, -ESPIPE: not a regular file, which alone is opened. -EPROTO: not a dump, or its header is destroyed.
 * -ENOTSUP: made by a newer memattach. Else -errno of open or read. dump_open_fd takes a descriptor that can pread and
 * leaves it to the caller.
 */
int dump_open(const char *path, struct dump **dump, struct err *e) WARN_UNUSED;
int dump_open_fd(int fd, struct dump **dump, struct err *e) WARN_UNUSED;
void dump_close(struct dump *dump);

/* A copy of the header as it was at opening; its strings are NUL-terminated, its rates at least 1. */
const struct dump_header *dump_header(const struct dump *dump);
enum dump_end dump_end(const struct dump *dump);
const char *dump_end_name(enum dump_end end);

/* What the file takes where it is, its holes left out. */
uint64_t dump_disk_bytes(const struct dump *dump);

/* One of the named counters, summed over its shards. */
uint64_t dump_counter(const struct dump *dump, enum dump_counter counter);

/* How many things were left out so far for this reason; the text says what they are. */
uint64_t dump_skipped(const struct dump *dump, enum dump_skip reason);
const char *dump_skip_text(enum dump_skip reason);
bool dump_complete(const struct dump *dump); /* nothing was left out that a whole file would have had */

/* A stamp as nanoseconds of CLOCK_REALTIME; 0 if the clocks make no sense. */
uint64_t dump_stamp_realtime_ns(const struct dump *dump, uint64_t stamp);
/*
 * dump_duration_ns: how long the session recorded. dump_latest_stamp: the stamp of its end. 0 and any value if the
 * clocks make no sense.
 *
 * dump_has_no_end: memattach has died without writing the end. Then both are lower bounds, taken from the header.
 * dump_find_latest makes them better by the latest time of all samples; it reads nothing of other dumps. 0, -ENOMEM.
 */
uint64_t dump_duration_ns(const struct dump *dump);
uint64_t dump_latest_stamp(const struct dump *dump);
bool dump_has_no_end(const struct dump *dump);
int dump_find_latest(struct dump *dump) WARN_UNUSED;
/* The stamp ns nanoseconds after recording began; plain nanoseconds after it if the clocks make no sense. */
uint64_t dump_stamp_after(const struct dump *dump, uint64_t ns);

/* Bytes that all stacks can have together; who finds more leaves them out, and counts each. */
uint64_t dump_stack_room(const struct dump *dump);
void dump_skip_stack(struct dump *dump);

/*
 * Each calls fn for every record that holds together, until fn returns other than 0, and returns that; 0 at the end;
 * -ENOMEM. The record is only valid during the call.
 */
int dump_each_live(struct dump *dump, int (*fn)(void *arg, const struct dump_live_record *record), void *arg);
int dump_each_history(struct dump *dump, int (*fn)(void *arg, const struct dump_history_record *record), void *arg);
/* Code records, which are found in the same way, are passed over. */
int dump_each_stack(struct dump *dump, int (*fn)(void *arg, uint32_t reference), void *arg);
int dump_each_module(struct dump *dump, int (*fn)(void *arg, const struct dump_module *module), void *arg);
int dump_each_thread(struct dump *dump, int (*fn)(void *arg, const struct dump_thread *thread), void *arg);
int dump_each_rate(struct dump *dump, int (*fn)(void *arg, const struct dump_rate_change *change), void *arg);
int dump_each_path(struct dump *dump, int (*fn)(void *arg, const char *text), void *arg);
/* Of the region JAVA: texts end within the record; methods and calls are anything. */
struct dump_java_visitor {
	int (*method)(void *arg, const struct dump_java_method *method, const char *file); /* its text is the name */
	int (*calls)(void *arg, const struct dump_java_calls *calls);
	void *arg;
};
int dump_each_java(struct dump *dump, const struct dump_java_visitor *visitor);
/* Of the region MEMORY: names and texts end within the record, and with it at the latest; kinds are known ones. */
struct dump_memory_visitor {
	int (*row)(void *arg, const struct dump_memory *row);
	int (*look)(void *arg, const struct dump_look *look);
	void *arg;
};
int dump_each_memory(struct dump *dump, const struct dump_memory_visitor *visitor);
int dump_each_usage(struct dump *dump, int (*fn)(void *arg, const struct dump_usage *usage), void *arg);
/* Of the region BLOCKS: texts end within the record, and with it at the latest; sources are known ones; ids and
 * addresses are anything. */
struct dump_block_visitor {
	int (*name)(void *arg, const struct dump_block_name *name);
	int (*list)(void *arg, const struct dump_block_list *list);
	int (*look)(void *arg, const struct dump_block_look *look);
	void *arg;
};
int dump_each_block(struct dump *dump, const struct dump_block_visitor *visitor);
int dump_each_note(struct dump *dump, int (*fn)(void *arg, uint32_t kind, const char *text), void *arg);

/* About how many live records and history records there are, to tell how far a reader is. */
uint64_t dump_expected_samples(const struct dump *dump);

/*
 * Thinning (thinning.h): the rate that a record counts with, 0 if it does not count. Records are to be asked for the
 * thinnings that were known when the dump was opened. dump_thinned_meanwhile says, after reading, that there was
 * another one, which the records that were read and those that were not may know of or not: then the thinnings have
 * been read again, and so must be the records. dump_take_thinnings makes the records of an earlier copy of the same
 * session comparable to those of a later one.
 */
uint32_t dump_live_rate(const struct dump *dump, const struct dump_live_record *record);
uint32_t dump_history_rate(const struct dump *dump, const struct dump_history_record *record);
/* The sample counts in a session of which every rate is below this. */
double dump_live_survival(const struct dump_live_record *record);
double dump_history_survival(const struct dump_history_record *record);
/* 1: read again; 0; -ENOMEM. */
int dump_thinned_meanwhile(struct dump *dump) WARN_UNUSED;
int dump_take_thinnings(struct dump *earlier, const struct dump *later) WARN_UNUSED;

/* A stack with room for the deepest. The sums are finite and not negative; dump_python_count Python frames follow the
 * native ones, no more than DUMP_PYTHON_FRAMES_MAX. */
struct dump_stack_copy {
	union {
		struct {
			uint64_t head_[sizeof(struct dump_stack) / sizeof(uint64_t)];
			uint64_t frames[DUMP_FRAMES_MAX + DUMP_PYTHON_FRAMES_MAX];
		};
		struct dump_stack stack;
	};
};

static inline uint32_t dump_python_count(const struct dump_stack_copy *copy)
{
	return DUMP_STACK_PYTHON_COUNT(copy->stack.flags);
}

static inline const uint64_t *dump_python_frames(const struct dump_stack_copy *copy)
{
	return copy->frames + copy->stack.frame_count;
}

/* Reads the stack of a reference: 0, or -EPROTO and counted if there is none that holds together. */
int dump_read_stack(struct dump *dump, uint32_t reference, struct dump_stack_copy *copy) WARN_UNUSED;
