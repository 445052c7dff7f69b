/* SPDX-License-Identifier: MIT */
/*
 * The word of CPython that leads to the end of each code object, PyCode_Type.tp_dealloc, is added to the plan wherever
 * Python frames are recorded, so that the payload can tell whether any has gone (payload/known_code.h). It is patched,
 * watched and given back as GOT entries are, and as the words of the table of allocators (python_hooks.h).
 *
 * The type is the one that the proof of the frames has found. The word is believed if the type's size of an object,
 * which lies between its name and that word, is the one of code objects in this release; if it is in private data of
 * the interpreter that can be written; and if it leads to code of the interpreter: else somebody has put his own
 * function there, and it is left alone. No figure depends on it, only what a sample costs.
 *
 * Who reads that word may keep a copy, so at the detach the memory is searched for one (escape.h). In nearly all
 * programs it is anyway, for the sake of GOT entries or of the table of allocators. Where it would not be, the word is
 * left alone, too, however little memory there is: it may be more at the detach, or the processor slow, and then
 * trampolines would have to stay that nothing else keeps.
 */
#ifndef MEMATTACH_PYTHON_CODE_H
#define MEMATTACH_PYTHON_CODE_H

#include "session.h"

/* With s->python.layout, and after all else is planned. m: the interpreter, which stays as long as the process. Never
 * fails: the word may be left alone, s->python.code_end.why says why. */
void session_plan_python_code(struct session *s, const struct elf_module *m, const struct target_memory *memory);
/* Adds the word that was found to a plan that was made anew before anything was patched, if the memory is searched
 * then. */
int session_add_python_code(struct session *s, struct err *e) WARN_UNUSED;

#endif
