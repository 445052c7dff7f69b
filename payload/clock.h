/* SPDX-License-Identifier: MIT */
/*
 * Time without a system call, and the lease: memattach renews header.lease_stamp as long as it lives; a hook that finds
 * it passed ends the recording for all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The cycle counter. */
uint64_t clock_stamp(void);
/* False if the lease has run out at stamp; then recording is switched off and the dump is marked DUMP_STATE_ABANDONED.
 */
bool clock_lease_holds(uint64_t stamp);
