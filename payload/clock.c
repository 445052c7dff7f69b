/* SPDX-License-Identifier: MIT */
/* Stamps and the lease, see clock.h. */
#include "clock.h"

#include "arch/machine.h"
#include "payload.h"

uint64_t clock_stamp(void)
{
	return arch_cycles();
}

bool clock_lease_holds(uint64_t stamp)
{
	uint64_t lease = __atomic_load_n(&payload.dump->lease_stamp, __ATOMIC_RELAXED);
	uint32_t running = DUMP_STATE_RUNNING;

	if (!lease || stamp <= lease)
		return true;
	__atomic_store_n(&payload_switch, 0, __ATOMIC_RELAXED);
	__atomic_compare_exchange_n(&payload.dump->state, &running, DUMP_STATE_ABANDONED, false, __ATOMIC_RELEASE,
	                            __ATOMIC_RELAXED);
	return false;
}
