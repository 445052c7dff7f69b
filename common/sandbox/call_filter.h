/* SPDX-License-Identifier: MIT */
/*
 * A filter of system calls (seccomp), built rule by rule: the first one that fits a call answers, the list at the end
 * all others. Answers are those of seccomp(2). Calls of another architecture, and those of x32, whose numbers differ,
 * are the end of the process. Of an argument a rule sees the lower half.
 *
 * Each filter of ours is one of these; the lists are where the process that lives by them is: rights.c, jail.c.
 */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

#include "base/err.h"

#define CALL_FILTER_REFUSE(code) (SECCOMP_RET_ERRNO | (code))

struct call_filter {
	struct sock_filter code[UINT8_MAX + 160];
	unsigned count;
};

void call_filter_begin(struct call_filter *f);
void call_filter_answer(struct call_filter *f, uint32_t call, uint32_t answer);
/* If the argument has this value in the bits of mask. */
void call_filter_when(struct call_filter *f, uint32_t call, unsigned argument, uint32_t mask, uint32_t value,
                      uint32_t answer);
/* Allowed only if its argument has none of these bits, else EPERM. */
void call_filter_without(struct call_filter *f, uint32_t call, unsigned argument, uint32_t bits);
/* The last rule. From now on, for good, the process and all that it starts live by the filter; it gains no right by
 * execve any more. -errno: they do not. */
int call_filter_end(struct call_filter *f, const uint32_t *list, uint8_t count, uint32_t listed, uint32_t others);
