/* SPDX-License-Identifier: MIT */
/*
 * --seed with several sessions: each has random numbers of its own, or what they happen to sample would be correlated.
 * The numbers of a session follow from the seed and from which session it is; the first has the seed itself.
 */
#pragma once

#include <stdint.h>

/* 0 for seed 0, which means that there is none; else never 0. */
uint64_t session_seed(uint64_t seed, uint64_t ordinal);
