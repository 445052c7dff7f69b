/* SPDX-License-Identifier: MIT */
/*
 * Frames that say nothing about who holds memory: those of the standard libraries of C++ and Rust between a program
 * and the allocator, and those that start a process or a thread. Known by the names of functions, as they are written
 * for people.
 */
#ifndef MEMATTACH_FOLD_H
#define MEMATTACH_FOLD_H

#include <stdbool.h>

/* Of the standard library: a container or an allocator, if it stands at the inner end of a stack. NULL: no. */
bool fold_is_standard(const char *function);
/* Starts a process or a thread, if it stands at the outer end of a stack. NULL: no. */
bool fold_is_startup(const char *function);

#endif
