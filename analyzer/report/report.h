/* SPDX-License-Identifier: MIT */
/*
 * What one or more dumps say, ready to be shown: totals and one row for each stack, sorted. The text and the JSON
 * report show the same report. Stacks are told apart by their frames (image and offset) after the allocator's own
 * wrappers are taken off; equal ones are one row, of whatever dump, and their variances add up. Dumps are read one
 * after the other: memory grows with the number of different stacks, not with the number of dumps or samples.
 *
 *   report_init, report_add for each dump (or report_add_pair), report_finish, then show it, report_done
 * Terms: docs/glossary.md
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dump/dump_reader.h"
#include "stats/estimate.h"
#include "report/resident.h"
#include "filter/filter.h"
#include "report/groups.h"
#include "input/images.h"
#include "dumps/machine.h"
#include "input/progress.h"
#include "input/recorded_session.h"
#include "input/memory/usage.h"
#include "input/rows.h"
#include "stats/spans.h"
#include "input/stack_threads.h"
#include "symbols/symbols.h"
#include "stats/timeline.h"
#include "stats/trust.h"

/* "live-bytes" …; -1 if there is none of that name. */
int report_figure_parse(const char *name);
const char *report_figure_name(enum report_figure figure);
/* Whether it is bytes, else blocks. */
static inline bool report_is_bytes(enum report_figure f)
{
	return f == FIGURE_LIVE_BYTES || f == FIGURE_ALLOCATED_BYTES;
}

static inline bool report_is_live(enum report_figure f)
{
	return f == FIGURE_LIVE_BYTES || f == FIGURE_LIVE_COUNT;
}

struct report_options {
	enum report_figure sort;
	double confidence;
	size_t top;   /* rows to show, 0: all */
	size_t depth; /* frames to show of each, 0: all */
	bool symbols;
	const char *package_lists; /* DEBUG_PACKAGE_LISTS; NULL: packages are not looked for */
	bool native;               /* the interpreter's own frames are shown with those of Python */
	bool show_std;             /* no frame is folded (folding.h) */
	const char **alloc_fns;    /* functions that are taken for allocation functions; of the caller */
	size_t alloc_fn_count;
	bool verbose;    /* in the text: all that is known of the session, and of each row */
	bool full_names; /* do not abbreviate template arguments in the text */
	bool diff;       /* two dumps, the older first */
	bool files;      /* about mappings of files, not about memory: no figure has both */
	bool tree;       /* in the text: functions below their callers instead of stacks */
	bool leaks;
	uint64_t age_ns;   /* of leaks: live blocks older than this, 0: a third of the session */
	uint64_t at_ns;    /* the heap at this time after the attach, 0: at the end */
	uint64_t since_ns; /* growth since this time, 0: none */
	double plan;       /* the precision that is wanted, as a fraction, 0: none */
	enum group_by by;
	bool peak;          /* at_ns is to be found: when most was live; of one dump */
	size_t timeline;    /* moments to look at, of one dump; 0: none */
	size_t moments;     /* the same for outputs that show a timeline beside the stacks; timeline comes first */
	bool stack_threads; /* for outputs that show the threads of each stack */
	bool times;         /* for outputs that show what was live at the peak, and lifetimes, beside the stacks */
	bool processes;     /* for outputs that show processes, programs, units and containers beside the stacks */
	bool sample_groups; /* for outputs that show groups by thread, size and lifetime beside the stacks */
	bool beside_leaks;  /* for outputs that show what --leaks does beside the stacks */
	struct filter_options filter;
	struct image_search search;
	struct progress *progress;     /* NULL: nobody wants to know */
	const struct machine *machine; /* whose dumps these are; NULL: single dumps */
};

/* Whether a report is about the end, and about all of the session. */
bool report_is_whole(const struct report_options *options);

/* Of different ones, as many as are kept. memattach writes one for each module, at most. */
#define REPORT_NOTES_MAX 1000u

/* Of how many moments the peak is the one at which most was live. */
#define REPORT_PEAK_MOMENTS 1000u

struct report_note {
	uint32_t kind; /* enum dump_note_kind */
	char *text;
};

/* How the growth of private memory is to what is live, with what the allocator adds. */
enum report_kernel {
	KERNEL_CANNOT_TELL, /* what is known of it is wider than what is compared */
	KERNEL_AGREES,
	KERNEL_LESS,
	KERNEL_FREED, /* more, but not more than what was allocated and may have been freed, and not given back */
	KERNEL_MORE
};

/* A growth of memory below this says nothing: arenas, stacks and caches of the allocator, pages of programs. */
#define MEMORY_NOISE_BYTES (4u << 20)

/* How much of the growth of private memory the live blocks explain; of the sessions for which it is known. */
struct report_memory {
	bool known;
	bool ended; /* a process has: the growth is that of a moment before, when what it freed last was live */
	double private_growth;    /* bytes; may be negative */
	double allocators_growth; /* the part of it that allocators may have: all of it where nothing is known */
	double shared_growth, files_growth; /* the same of resident shared memory and files; NAN unknown */
	bool mmap_sampled;                  /* in every session: --mmap would not tell more */
	struct estimate live;               /* of what was captured and is live */
	struct estimate seen;               /* and of all that was captured */
	enum report_kernel verdict;
	double not_live;    /* of a growth, what at most is not in the blocks that are live, as often as the confidence
	                       says */
	bool mostly_unseen; /* a large growth, most of which was never ours for certain, not even if what was freed is
	                       still the allocator's */
};

/* Whether rows have times: of one dump that has all records, as it is at its end. */
struct report_times {
	bool known;
	uint64_t peak_ns; /* after the attach: when most was live, of REPORT_PEAK_MOMENTS */
};

/* Of stacks that Python takes part in; of a pair, the newer ones. */
struct report_python {
	uint32_t version;           /* as Py_Version, of the last dump that has one; 0: none */
	uint64_t samples, complete; /* taken, and of these, those whose Python frames are all there and known */
};

/* The same of Java. */
struct report_java {
	uint32_t version;           /* of HotSpot, as 17, of the last dump that has one; 0: none */
	uint64_t samples, complete; /* … and of these, those whose Java frames are all there and have names */
};

/* Of stacks through code in no module, which the process has made itself; of a pair, the newer ones. */
struct report_own_code {
	uint64_t samples; /* taken, of all stacks */
	uint64_t cut;     /* of these, whose stack ends early, in such code */
	uint64_t unnamed; /* … with such code that has no name; 0 if names are not asked for */
	bool named;       /* some of it has a name: there was a map */
};

/* "3.11.2", "3.14.0rc1" */
#define PYTHON_VERSION_TEXT 48u
const char *report_python_version(uint32_t version, char text[PYTHON_VERSION_TEXT]);

struct report {
	struct report_options options;
	struct recorded_session *sessions;
	size_t session_count;
	struct images images;
	struct symbols *symbols; /* NULL: none wanted */
	struct rows rows;        /* sorted by report_finish, the largest first */
	size_t stack_count;      /* before equal ones were merged */
	struct report_row total; /* no frames */
	double listed_whole[2];  /* the upper ends of its bytes, live and allocated */
	double growth_tail;      /* with what probability lower ends of rows' growth may be false; 0: as all ends */
	struct report_row unfiltered; /* the same without the filter; only sums */
	struct report_row beside;     /* what the report is not about, options.files, of whole sessions; only sums */
	struct estimate_sum unassigned[FIGURE_COUNT]; /* of samples without a stack, where the filter asks for names */
	struct filter filter;
	struct classes classes;                      /* if options.by or .sample_groups asks for them */
	struct groups groups;                        /* if options.by asks for them */
	struct groups threads;                       /* if options.sample_groups asks for them */
	struct groups labels[LABEL_KINDS];           /* the same, by type and holder */
	struct groups session_groups[SESSION_KINDS]; /* if options ask for processes: by process, program, … */
	struct map shared_places;                    /* of folding.h */
	uint64_t largest_rate;          /* of the sessions and of all samples; 1: every allocation is recorded; */
	uint64_t rate_now, rate_before; /* the same of the dumps but the older one of a pair, and of that */
	bool rates_differ;              /* not all of the dumps have the same largest rate */
	uint64_t lost_busy;             /* samples not taken */
	uint64_t lost_live;             /* samples taken that the live table had no room for */
	uint64_t lost_unknown;          /* of these, those of which no stack knows */
	uint64_t lost_stack;  /* samples whose stack had no room: they are in the total, and in the row whose stack is
	                         not known */
	uint64_t lost_before; /* of a comparison: samples not taken, or not kept, by the older session or before the
	                         time */
	uint64_t age_ns;      /* of leaks: as it was used in the last dump */
	double old_seconds;   /* … of all dumps, the time in which blocks were born that are older at the end */
	bool same_session;    /* the pair is two states of one session: blocks in both cancel out */
	bool past_unknown;    /* the history has dropped what --at or --since would need */
	bool whole;           /* nothing of the files was left out */
	struct timeline timeline;           /* if options ask for it, */
	struct usage usage;                 /* with it, what was resident */
	struct spans spans;                 /* with it, for outputs that show it beside the stacks of the end */
	struct stack_threads stack_threads; /* if options ask for it */
	struct report_times times;          /* if options ask for it */
	struct report_memory memory;
	struct report_resident resident;
	struct report_python python;
	struct report_java java;
	struct report_own_code own_code;
	uint64_t rounded; /* samples of aligned operator new: their sizes are rounded up to the alignment */
	struct trust_evidence evidence; /* collected by judge.h; */
	struct trust trust;             /* what it says */
	struct report_note *notes;
	size_t note_count;
	struct map note_of;      /* hash of a note -> index in notes; collisions step by one */
	uint64_t notes_left_out; /* beyond REPORT_NOTES_MAX */
};

/* All return 0, -ENOMEM or -errno with a text. After a failure only report_done is allowed. */
int report_init(struct report *report, const struct report_options *options, struct err *e) WARN_UNUSED;
int report_add(struct report *report, struct dump *dump, const char *name, struct err *e) WARN_UNUSED;
int report_add_pair(struct report *report, struct dump *old, const char *old_name, struct dump *new,
                    const char *new_name, struct err *e) WARN_UNUSED;
int report_finish(struct report *report, struct err *e) WARN_UNUSED;
void report_done(struct report *report);
/* All of this for one dump; leaves nothing behind on failure. */
int report_make(struct report *report, struct dump *dump, const char *name, const struct report_options *options,
                struct err *e) WARN_UNUSED;

/* How many rows are to be shown. */
size_t report_shown(const struct report *report);
/* How many of these have a sample of the figure. */
size_t report_listed(const struct report *report);
/* How many frames of a row are: options.depth, counted from the one that is said to hold it. */
size_t report_depth(const struct report *report, const struct report_row *row);
/* To be called for each row that is shown, of count, in order: asks for the symbols of some rows at once. */
#define REPORT_AHEAD 32u
void report_want_symbols(const struct report *report, size_t row, size_t count);
/* Whether samples without a stack are in the total: a filter that looks for a name leaves them out, one that only
 * leaves names out does not. */
bool report_has_unassigned(const struct report *report);
/* How many samples the total may lack because their stack had no room. */
uint64_t report_total_lacks(const struct report *report);
/*
 * Lost samples raise the upper end: those that had no room in the live table by what the sums of their stack know of
 * them; others as if they were like the rest and all of this row. So do those without a stack, but in a total that has
 * them. Of a growth, what the older side has lost lowers the lower end.
 */
struct estimate report_estimate(const struct report *report, const struct report_row *row, enum report_figure figure);
/* What the figure is worth. */
enum trust_value report_trust(const struct report *report, enum report_figure figure);
/* Of a sum of live or of allocated ones. It is exact only if the figure is measured, and so are the others. */
struct estimate report_interval(const struct report *report, const struct estimate_sum *sum, enum report_figure figure);
/* What so many lost samples would add to a figure, if they were like the others. */
double report_lost_weight(const struct report *report, enum report_figure figure, uint64_t lost);
/* The functions that are at a place, innermost first, as the report shows them: without those that are hidden. Never
 * NULL; nothing is known without symbols. */
const struct location *report_locations(const struct report *report, uint64_t place, size_t *count);
/* The function that is said to hold what a row has: the innermost one that is not folded (folding.h). */
struct report_own {
	size_t frame, location; /* index in the frames of the row, and in the locations there */
};
struct report_own report_own(const struct report *report, const struct report_row *row);
/* How many of its frames are not those that start a process or a thread, which are the outermost. */
size_t report_inner(const struct report *report, const struct report_row *row);
/* A thread as a row, for the functions that take one: it may lack all samples that the live table had no room for, and
 * none for want of a stack. Only live figures. */
/* What a group of functions, files, lines or modules has of its own, or in all, as a row without frames. */
struct report_row report_group(const struct group *group, bool own);
struct report_row report_thread(const struct report *report, const struct group *group);
/* Where leaks are looked for (rows.leaks), the rows that have old blocks, in the order in which --leaks shows them:
 * what leaks, what grows, the rest, each the largest first. As indices, to be freed; NULL: out of memory. */
uint32_t *report_leaks(const struct report *report, size_t *count);
/* How many bytes of a row's old blocks came in a second, on average over the time in which they can have come. */
struct estimate report_leak_rate(const struct report *report, const struct report_row *row);
struct estimate report_growth(const struct report *report, const struct report_row *row, enum report_figure figure);
/* The same for one moment of the timeline, and for what was allocated before it. Of what is live, the intervals hold at
 * all moments together, as often as the confidence says. */
struct estimate report_at_moment(const struct report *report, const struct estimate_sum *sum, bool live);
/* The most that was live at any moment of the timeline, as often as the confidence says: the largest of the ends of the
 * intervals that hold together. The value is that of the largest estimate, which is too high as a rule. */
struct estimate report_highest(const struct report *report);
/* Of a row that grows: the length of a session that would tell whether it is a leak, in seconds; INFINITY: not known.
 */
double report_decides_after(const struct report *report, const struct report_row *row);
/* Of two sessions that are compared, each of which knows only what was allocated since its attach: how fast each grew,
 * so that a process which grows all the time is not said to be as before. */
struct report_pace {
	double seconds;                                     /* that it was recorded */
	struct estimate live;                               /* live bytes, per second */
	uint64_t private_start_bytes, private_latest_bytes; /* 0 unknown */
};
/* Whether there is one. */
bool report_has_pace(const struct report *report);
struct report_pace report_pace(const struct report *report, bool old);
/* What the allocator adds, in two parts: to the blocks of the sizes that samples show, the interval; to smaller ones,
 * of any size, unseen at most, one-sided. */
struct estimate report_slack(const struct report *report, const struct slack *slack);
/* Whether rows have a growth: --diff or --since. */
bool report_compares(const struct report *report);
/*
 * Whether the first row is that of the stack which truly has the most, with the confidence of the report: its estimate
 * is above the second one's by a test on both sides. That the estimates chose which two are compared does no harm to
 * that test (Hung and Fithian 2019).
 */
bool report_first_is_largest(const struct report *report, enum report_figure figure);
/* The row's part of the total, 0 … 1. */
double report_share(const struct report *report, const struct report_row *row, enum report_figure figure);
/* The same with an interval: of the row and of all others, which have no block in common. */
struct estimate report_share_interval(const struct report *report, const struct report_row *row,
                                      enum report_figure figure);
/* The bytes that a stack which is not listed may hold, with the chosen confidence; 0 if all is recorded. */
double report_detection_limit(const struct report *report);
/* The size of the smallest blocks that the unseen ones may be; 0 if all is recorded. */
unsigned report_hidden_bytes(const struct report *report);
/* How many blocks of that size or more a number of blocks may lack, if they are smaller than all its samples. */
double report_unseen_blocks(const struct report *report);
/* Samples that are missing from the figures. */
uint64_t report_lost(const struct report *report);
uint64_t report_counter(const struct report *report, enum dump_counter counter);
uint64_t report_skipped(const struct report *report, enum dump_skip reason);
/* Whether every figure is exact: every allocation was seen and recorded, no sample was lost, all was read. */
bool report_exact(const struct report *report);
/* Whether the figures have all that they should: all was read, no sample was lost, no needed history was dropped. */
bool report_complete(const struct report *report);

/* What the wanted precision takes for a row: a rate for the same time, or a time at the same rate (both may be
 * infinite). */
struct report_plan {
	double now;     /* half of the interval's width in relation to the estimate */
	double rate;    /* bytes */
	double seconds; /* if allocation goes on as in the session */
};
struct report_plan report_plan(const struct report *report, const struct report_row *row);
