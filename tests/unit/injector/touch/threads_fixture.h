/* SPDX-License-Identifier: MIT */
/* A process of several threads that stands in as the target, and a page that it shares with the test. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

typedef void *(*thread_work)(void *number);

/* The first thread sleeps; what the others do work tells by their numbers, from 0 on. All run at the return. *page: a
 * variable that both have, too. */
pid_t threads_start(unsigned others, thread_work (*work)(uintptr_t number), void **page);
void threads_end(pid_t pid, void *page);
/* For a thread: for ever. */
void *threads_sleep(void *number);
