/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/user.h>

#define HOLD_PUSHED 3 /* words, by hold_stub.S */

struct registers {
	struct user_regs_struct general;
};
