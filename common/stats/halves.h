/* SPDX-License-Identifier: MIT */
/*
 * Two halves of a sample, to choose by the one and to measure by the other.
 *
 * Of many moments that at which most seems to be live is one where chance had a part, and the same samples would say
 * too much of it. So each sample that was taken with p(r) is put into both halves with the probability p(2r)^2 / p(r),
 * else into either with p(2r) (1 - p(2r)) / p(r). These three add up to 1, as (1 - p(2r))^2 = 1 - p(r), and so a block
 * is in each half with p(2r), in both with p(2r)^2: the halves are two samples at the rate 2r that know nothing of each
 * other (fission: Leiner, Duan, Wasserman and Ramdas 2023). A number that a hash makes of the sample decides, another
 * one than that of thinning.h; so each reading has the same halves. What is certain to be sampled is in both.
 */
#pragma once

#include <stdint.h>

#include "stats/thinning.h"

enum sample_half {
	HALF_NONE,    /* the whole sample */
	HALF_CHOOSES, /* the one by which is chosen */
	HALF_TELLS    /* the one that is told of */
};

/* The rate of a half of what was sampled at this one. */
static inline uint64_t half_rate(uint64_t rate, enum sample_half half)
{
	return half == HALF_NONE || rate <= 1 ? rate : 2 * rate;
}
/* The rate that the sample, which counts with its rate_bytes, counts with in a half; 0: it is not in it. */
uint64_t half_rate_of(const struct thinning_sample *sample, enum sample_half half);
