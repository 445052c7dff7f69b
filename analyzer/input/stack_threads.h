/* SPDX-License-Identifier: MIT */
/*
 * Which threads allocated what of each stack, by the samples that still have a record: all that are live, and of those
 * that were freed what the history has kept. Threads of one name are one. Beyond STACK_THREADS_MAX parts there are none
 * at all.
 */
#pragma once

#include "dump/dump_reader.h"
#include "input/parts/parts.h"
#include "input/rows.h"
#include "base/string_table.h"

#define STACK_THREADS_MAX (1u << 18)

struct thread_part {
	uint32_t next;   /* of the same stack (index_list.h) */
	uint32_t thread; /* its id, 0: not known; when the dump was read, its name in names, 0: not known */
	struct thread_share {
		double value;
		uint64_t samples;
	} share[FIGURE_COUNT];
};

struct stack_threads {
	struct thread_part *parts;
	size_t count, named;
	bool full; /* there were too many */
	struct string_table names;
	struct map part_of, first_of, name_of; /* of the dump that is read */
};

/* A sample of this stack that figures count: bytes, or blocks, of a weight. -ENOMEM. */
int stack_threads_add(struct stack_threads *threads, uint32_t stack, const struct sample *sample, double weight,
                      bool live, bool allocated) WARN_UNUSED;
/* The list of a stack's parts. */
uint32_t stack_threads_of(const struct stack_threads *threads, uint32_t stack);
/* Names the threads of this dump; then the next one can be read. -ENOMEM. */
int stack_threads_finish(struct stack_threads *threads, struct dump *dump) WARN_UNUSED;
/* What was added of the dump that is read is forgotten. */
void stack_threads_restart(struct stack_threads *threads);
void stack_threads_done(struct stack_threads *threads);
