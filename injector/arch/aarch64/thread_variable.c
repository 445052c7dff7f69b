/* SPDX-License-Identifier: MIT */
#include "arch/thread_variable.h"

/* TLS descriptors are the default here; no form is followed yet. */
bool thread_variable_read(struct thread_variable *v, const uint8_t *code, size_t bytes, uint64_t address)
{
	(void)v, (void)code, (void)bytes, (void)address;
	return false;
}
