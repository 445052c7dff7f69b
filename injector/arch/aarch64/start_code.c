/* SPDX-License-Identifier: MIT */
#include "arch/start_code.h"

/* The address of main is made by two instructions, and not by four bytes: no start code is known yet. */
bool start_code_read(struct start_code *code, int mem, const struct start_arguments *arguments)
{
	(void)code, (void)mem, (void)arguments;
	return false;
}

bool start_code_operand(const struct start_code *code, uint64_t function, uint32_t *operand)
{
	(void)code, (void)function, (void)operand;
	return false;
}
