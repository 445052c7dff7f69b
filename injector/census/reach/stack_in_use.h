/* SPDX-License-Identifier: MIT */
/*
 * Which part of a stack a thread that stands still may still use: from its stack pointer on, as the stack grows down
 * from the struct pthread of its thread. What is below was left behind by functions that have returned.
 */
#pragma once

#include "census/pages/census_memory.h"
#include "maps/maps.h"

struct reach_thread {
	uint64_t sp, tp;
};

/* Where what is in use of a mapping begins; that is all of it where it is not for certain the stack of one thread that
 * runs on nothing else. */
uint64_t stack_in_use_from(const struct reach_thread *threads, size_t count, struct census_memory *memory,
                           const struct maps *maps, const struct mapping *m);
