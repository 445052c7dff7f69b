/* SPDX-License-Identifier: MIT */
/*
 * The function that ends each code object of CPython, to which PyCode_Type.tp_dealloc leads, is hooked at its entry
 * where Python frames are recorded, so that the payload can tell whether any has gone (payload/python/known_code.h).
 *
 * The type is the one that the proof of the frames has found. Its word is believed if the type's size of an object,
 * which lies between its name and that word, is the one of code objects in this release; if it is in data of the
 * interpreter; and if it leads to code of the interpreter: else somebody has put his own function there. No figure
 * depends on it, only what a sample costs.
 */
#pragma once

#include "session/session.h"

/* With s->python.layout. m: the interpreter, which stays as long as the process. Never fails: the function may not be
 * hooked, s->python.code_end.why says why. */
void python_code_plan(struct session *s, const struct elf_module *m, const struct target_memory *memory);
