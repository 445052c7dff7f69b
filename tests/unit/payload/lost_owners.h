/* SPDX-License-Identifier: MIT */
/* What happens to a thread whose state another thread took: each thread begins anew with its next call. */
#ifndef MEMATTACH_LOST_OWNERS_H
#define MEMATTACH_LOST_OWNERS_H

#include "gate.h"
#include "thread_slot.h"

static inline void lose_owners(void)
{
	gates_shared->near_owner = gates_shared->near.owner = 0;
	for (uint32_t i = 0; i < THREAD_SLOT_ARRAY; i++)
		thread_slots[i].owner = 0;
}

#endif
