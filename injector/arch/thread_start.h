/* SPDX-License-Identifier: MIT */
/* Where a C library has a new thread begin. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "process/target_read.h"

/* Does the function that was called first return to this address? Nothing is left there but to end the thread. */
bool thread_start_is(const struct target_memory *memory, uint64_t return_address);
