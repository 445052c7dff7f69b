/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#define HOLD_PUSHED 4 /* words, by hold_stub.S */

struct registers {
	struct user_regs_struct general; /* regs[31], sp, pc, pstate */
	uint64_t thread_pointer;
	int64_t call;    /* in which it was stopped, -1: in none, or that is not known */
	int64_t instead; /* the call to be made instead of the one at whose entry it is, -1: none */
};
