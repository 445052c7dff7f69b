/* SPDX-License-Identifier: MIT */
/*
 * Functions that say nothing about who holds memory: wrappers of allocation functions, those of the standard libraries
 * of C++ and Rust, and those that start a process or a thread. Known by their names, as they are written for people.
 * Which frames of a stack are folded for that: folding.h.
 */
#pragma once

#include <stdbool.h>

/* Of the standard library. Of an inlined function the file says it, which may be NULL. NULL: no. */
bool fold_is_standard(const char *function, const char *file);
/* What a run of such functions is called, further out in a stack, where it says nothing either: "std::" of the standard
 * library, "v8::" of that engine's own, "[jit]" of code that has no name. NULL: it stays as it is. */
const char *fold_run(const char *function, const char *file);
/* Passes on to an allocation function, if it stands at the inner end of a stack: by a name of the usual kind (xmalloc,
 * my_strdup, T::operator new), or one that is listed. NULL: no. */
bool fold_is_wrapper(const char *function);
/* Gets memory that a collector of garbage gives back, later than it is no longer used. NULL: no. */
bool fold_is_collected(const char *function);
/* Has this name, without parameters and what the compiler has put behind it. NULL: no. */
bool fold_is_called(const char *function, const char *name);
/* Starts a process or a thread, if it stands at the outer end of a stack. NULL: no. */
bool fold_is_startup(const char *function);
