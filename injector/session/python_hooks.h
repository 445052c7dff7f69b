/* SPDX-License-Identifier: MIT */
/*
 * Blocks that CPython takes from its own arenas are seen only in its table of allocators (python_allocators.h). Its
 * words are added to the plan, and are patched, watched and given back as GOT entries are: what a word held before, an
 * inert trampoline leads to. So another tool may put itself before a trampoline or behind one, and may take itself out
 * again, in any order.
 *
 * Only the words of CPython's own allocator are patched. The domain raw is malloc, whose calls are seen already; where
 * the program has set another allocator before the attach, that one is left alone, and what is not seen is said.
 *
 * The interpreter's calls of mmap and munmap are not hooked then: its arenas would count beside what is in them.
 *
 * An interpreter makes some ten million of these calls in a second, and in builds that are optimised by a profile it
 * has CPython's own functions in line as long as the table holds their addresses. So a program that does nothing but
 * make and drop small objects may lose up to PYTHON_HOOKS_OVERHEAD (docs/benchmarks.md), and the governor cannot
 * lessen it: it is no cost of samples. By default they are hooked if that is within --max-overhead, and the memory is
 * not more than is searched at the detach for copies of the words.
 */
#ifndef MEMATTACH_PYTHON_HOOKS_H
#define MEMATTACH_PYTHON_HOOKS_H

#include "session.h"

#define PYTHON_HOOKS_OVERHEAD 0.15
#define PYTHON_HOOKS_TEXT 600u
#define PYTHON_HOOKS_OBJECTS "single objects of Python of up to 512 bytes"

/*
 * Adds to the plan of the view, if that is wanted and can be done. m: the interpreter, which stays as long as the
 * process. True: its small objects will be seen. text[PYTHON_HOOKS_TEXT]: what the report is to say about that.
 */
bool session_plan_python(struct session *s, const struct elf_module *m, const struct target_memory *memory,
                         char *text) WARN_UNUSED;
/* The same for a plan that was made anew before anything was patched. */
int session_add_python(struct session *s, struct err *e) WARN_UNUSED;
/*
 * Notes it, once, when the program has put the words back that were there before, which undoes the hooks: a
 * Py_Initialize that comes after a Py_Finalize does so from CPython 3.12 on. They are not patched anew, since frees
 * have been missed already.
 */
int session_watch_python(struct session *s, struct err *e) WARN_UNUSED;
/* After a plan for more modules: takes what must not be hooked out of it. */
void session_relieve_python(struct session *s);

#endif
