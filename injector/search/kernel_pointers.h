/* SPDX-License-Identifier: MIT */
/*
 * Words that a program has given to the kernel, to have them back: what epoll_ctl() was told of each descriptor, and
 * what timer_create() was. They may be the only pointers to a block.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/target.h"

struct kernel_pointers {
	pid_t pid;
	int *epolls; /* descriptors of the process, ascending as /proc has them */
	size_t epoll_count;
	size_t looked_at; /* descriptors of any kind */
	bool io_uring;    /* one of them is: what its requests hold nobody tells */
};

/* Which descriptors are of epoll. -ENOMEM, or why they cannot be looked at. kernel_pointers_free afterwards. */
int kernel_pointers_find(struct kernel_pointers *k, const struct target *t, struct err *e) WARN_UNUSED;
/* Once more, for a process that stands still: asking takes 3 us for each descriptor. -E2BIG: there are too many for
 * that, so it is as it was. -ESRCH, -ENOMEM. */
int kernel_pointers_find_again(struct kernel_pointers *k, const struct target *t, struct err *e) WARN_UNUSED;
/* Adds all words to a list of base/grow.h. -ENOMEM. */
int kernel_pointers_read(const struct kernel_pointers *k, uint64_t **words, size_t *count, struct err *e) WARN_UNUSED;
/* Has it descriptors that the other has not? */
bool kernel_pointers_has_more(const struct kernel_pointers *k, const struct kernel_pointers *than);
void kernel_pointers_free(struct kernel_pointers *k);
