/* SPDX-License-Identifier: MIT */
/*
 * Where CPython 3.12 and later keep, for each thread, its attached state, the one that it works with: in a thread-local
 * variable (_Py_tss_tstate), not 0 while the thread has the lock of an interpreter. It is right where the key is not:
 * in 3.12 a thread may work with a state that another one has made.
 *
 * The variable has no symbol in a stripped interpreter. Exported functions return it and do nothing else, so their code
 * says where it is (thread_variable.h); the relocations, the loader's link map and the C library's description of that
 * complete it for an interpreter in a library. All of the functions that are there must say the same, and it must be
 * a word of the interpreter's own storage, which each thread has.
 */
#pragma once

#include "python/python_specific.h"

#define PYTHON_ATTACHED_SINCE 12u /* minor version */

/*
 * *offset: from the thread pointer, never 0. -ENOSYS: this version has none, or it cannot be told where it is.
 * m: the interpreter, loaded when the program was started.
 */
int python_attached_find(int64_t *offset, const struct python_view *v, const struct elf_module *m,
                         const struct maps *maps, const struct python_specific *s, struct err *e) WARN_UNUSED;

/* What it holds for a thread. */
int python_attached_value(const struct python_view *v, const struct python_specific *s, int64_t offset, uint64_t thread,
                          uint64_t *state, struct err *e) WARN_UNUSED;
