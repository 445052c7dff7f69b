/* SPDX-License-Identifier: MIT */
/* What happens to a thread whose state another thread took: each thread begins anew with its next call. */
#pragma once

#include "trampoline_setup.h"
#include "thread_state.h"

static inline void lose_owners(void)
{
	trampolines_shared->near_owner = trampolines_shared->near.owner = 0;
	for (uint32_t i = 0; i < THREAD_STATE_ARRAY; i++)
		thread_states[i].owner = 0;
}
