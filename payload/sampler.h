/* SPDX-License-Identifier: MIT */
/* Which allocations are sampled: the countdown of each thread to its next sample. */
#pragma once

#include <stdint.h>

#include "hook_call.h"

void sampler_init(void);
/* Charges size bytes (0 counts as 1), or finishes the charge that call->thread carries. Returns the rate with which
 * this allocation is sampled, 0 if it is not. */
uint32_t sampler_charge(const struct hook_call *call, uint64_t size);
