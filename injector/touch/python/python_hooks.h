/* SPDX-License-Identifier: MIT */
/*
 * Blocks that CPython takes from its own arenas are seen only in the functions of its own allocator, to which its table
 * of allocators leads (python_allocators.h). They are hooked at their entries, and the words of the table get other
 * addresses of them (python_functions.h), all of which is the program's own: so another tool may put itself before a
 * function, copy a word and put it back, during the session and after it, in any order.
 *
 * Only CPython's own allocator is hooked. The domain raw is malloc, whose calls are seen already; where the program has
 * set another allocator before the attach, that one is left alone, and what is not seen is said.
 *
 * The interpreter's calls of mmap and munmap are not hooked then: its arenas would count beside what is in them.
 *
 * An interpreter makes some ten million of these calls in a second, and in builds that are optimised by a profile it
 * has CPython's own functions in line as long as the table holds their addresses. So a program that does nothing but
 * make and drop small objects may lose up to PYTHON_HOOKS_OVERHEAD (docs/benchmarks.md), and the governor cannot
 * lessen it: it is no cost of samples. By default they are hooked if that is within --max-overhead.
 */
#pragma once

#include "session/session.h"

#define PYTHON_HOOKS_OVERHEAD 0.15
#define PYTHON_HOOKS_TEXT 600u
#define PYTHON_HOOKS_OBJECTS "single objects of Python of up to 512 bytes"

/*
 * Adds to the hooks of the session, if that is wanted and can be done. m: the interpreter, which stays as long as the
 * process. True: its small objects will be seen. text: what the report is to say about that.
 */
bool python_hooks_plan(struct session *s, const struct elf_module *m, const struct target_memory *memory,
                       char text[PYTHON_HOOKS_TEXT]) WARN_UNUSED;
/*
 * Notes it, once, when the program has put the words back that were there before, which undoes the hooks: a
 * Py_Initialize that comes after a Py_Finalize does so from CPython 3.12 on. They are not set anew, since frees
 * have been missed already.
 */
int python_hooks_watch(struct session *s, struct err *e) WARN_UNUSED;
/* After a plan for more modules: takes what must not be hooked out of it. */
void python_hooks_relieve(struct session *s);
