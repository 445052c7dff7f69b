/* SPDX-License-Identifier: MIT */
/*
 * Which blocks of malloc something points to: any word of memory that leads into a block keeps it, and so all that it
 * points to.
 *
 * Most of it is done while the process runs (reach_open, reach_look). Pages are noted as they were when they were used
 * (page_sums.h): when blocks were found in them, and when their words were looked at. At the end all threads are
 * stopped, for as long as it takes to read all pages once more (reach_settle): those that are not as they were are
 * walked and looked at again, with the registers and stacks. What is not reached then nothing points to: each pointer
 * is in a page that is as it was, and was followed, or in one that was looked at while nothing could change. So the
 * stop takes time by the memory that is there, and no copy of it is needed. Or only a clone is made while it stands
 * still (memory_clone.h), and that is read in its place.
 *
 * Words that only look like pointers keep blocks, too; what was reached while the process ran stays reached, and of
 * blocks that have come since their walk nothing is said. So blocks may be missed; none is found that is pointed to by
 * a word of memory, at a multiple of four bytes.
 */
#pragma once

#include "census/pages/page_sums.h"
#include "census/reach/block_space.h"

/* A word at no multiple of eight bytes, or with more than an address in it: more often than others it only looks as if
 * it led to a block, so that it does if nothing else leads there. */
struct odd_word {
	uint64_t word, address;
};
#define REACH_ODD_MAX                                                                                                  \
	(1u << 20) /* 16 MiB: where each word has a tag there is no end of them, and the rest leads at once */

/*
 * A block that was reached, and by what: the number in the queue of the block that led to it, or, of one that a word
 * elsewhere led to, REACHED_BY_ROOT and the number of that word's address. Children come after their parents.
 */
struct reached {
	uint32_t number, parent;
};
#define REACHED_BY_ROOT (1u << 31)
#define REACHED_MAX REACHED_BY_ROOT /* blocks, and addresses */

/* In place of the address of a word: it is in a register, or in the kernel; the block itself has just come. */
#define REACH_OF_REGISTERS 0u
#define REACH_OF_NEW CENSUS_PAGE

struct reach_figures {
	uint64_t live_blocks, live_bytes; /* usable ones */
	uint64_t lost_blocks, lost_bytes; /* of them: nothing points there */
};

typedef void (*reach_progress_fn)(uint64_t blocks);

struct reach {
	struct census_heap *heap;
	struct census_memory *memory;
	const struct maps *maps;
	struct page_sums *sums; /* NULL while the process stands still */
	struct block_space blocks;
	struct reached *queue;
	size_t queued, looked; /* what is from looked on is still to be looked at */
	uint64_t *roots;       /* addresses of words that led to blocks */
	size_t root_count;
	struct odd_word *odd; /* that may lead to blocks, put off until all others were looked at */
	size_t odd_count;
	bool puts_off;
	bool in_block;           /* what is looked at is the block before queue[looked] */
	uint64_t ahead_until;    /* what is before that is wanted soon: pages may be read together */
	uint64_t give_up_ns;     /* CLOCK_MONOTONIC */
	uint64_t give_up_cpu_ns; /* of the CPU time of this process */
	uint64_t read_bytes;
	bool over; /* it took too long, or there was no memory or number: what was reached is not all */
	struct page_cache *cache;
	bool (*goes_on)(void *context); /* asked now and then while much is read: is it still wanted? NULL: it is */
	void *goes_on_context;
	reach_progress_fn progress; /* called now and then while pointers are followed; NULL: not */
};

/* A word, which is at `address`, and may lead to a block: that is reached, and so will be what it points to. */
void reach_word(struct reach *r, uint64_t word, uint64_t address);
/* May a word lead to a block? Nearly none does that is no pointer. */
bool reach_is_near(const struct reach *r, uint64_t word);
/* All words of a range that is there; every: how many bytes they are apart. */
void reach_range(struct reach *r, uint64_t start, uint64_t end, unsigned every);
/* What was put off, from now on at once. */
void reach_odd_words(struct reach *r);
/* Looks at all blocks that were reached. */
void reach_drain(struct reach *r);
/* Of the blocks that begin in a range, and were not reached: those in tcaches are free. */
void reach_pass_over_cached(struct reach *r, uint64_t start, uint64_t end);
/* Forgets what was read: the process has run. */
void reach_refresh(struct reach *r);

/* After the walk of the heap, during which sums were noted. -ENOMEM, -E2BIG. reach_close afterwards; on failure, too.
 */
int reach_open(struct reach *r, struct census_heap *heap, struct census_memory *memory, const struct maps *maps,
               struct page_sums *sums, struct err *e) WARN_UNUSED;
void reach_close(struct reach *r);

/* All live blocks, and those that were not reached, by the pages that are there now. */
struct reach_figures reach_count(const struct reach *r);
/* Is this live block, by where it begins, not reached? */
bool reach_is_lost(const struct reach *r, uint64_t start);
