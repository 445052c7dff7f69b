/* SPDX-License-Identifier: MIT */
#ifndef MEMATTACH_REGISTER_SET_H
#define MEMATTACH_REGISTER_SET_H

#include <sys/user.h>

#define HOLD_PUSHED 3 /* words, by hold_stub.S */

struct registers {
	struct user_regs_struct general;
};

#endif
