/* SPDX-License-Identifier: MIT */
/*
 * Code objects of Python that need not be read again.
 *
 * To tell code from what was at its address before takes reading all that a code object holds (code_object.h), at each
 * sample: some seven cache lines for each frame, which nobody else touches. What it proves, that the object was not
 * freed meanwhile, can be known otherwise: CPython frees a code object by the function that PyCode_Type.tp_dealloc
 * holds, and nobody else does. So that function is hooked at its entry (python_code.h); the hook counts the call and
 * jumps on (SHAPE_COUNT). While the count is the same, no code object has gone. Its value is a *generation*: an object
 * that was read in this generation has still the hash that it had.
 *
 * Why that is so. Let thread A have read an object at an address and kept its hash with generation g, and let thread B
 * meet the address in a frame, find g in force, and take that hash. Say B's object is another one than A's.
 *
 * - All that a walk meets is held by frames of its own thread, from before the hook began to after its end
 *   (python_walk.h). So A's object was freed after A's walk, and B's was made after that and before B's hook.
 * - The generation is taken before anything is read. A's g is older than the end of A's walk.
 * - The count goes up before the original is called, so before any of the object's memory is free, in one piece. B's
 * object is made in memory that was freed: whatever hands that to B (the interpreter's lock, an allocator's, the
 * kernel) lets B see what came before. That also holds between interpreters with locks of their own: static types
 * belong to all, as does the count.
 * - So B finds more than g, and takes nothing. Otherwise the call was not counted, which needs that there was no jump
 *   when A's object went, between A's walk and B's. memattach sets counted_function after the jump was written, and
 *   clears it before that is taken back; trampolines become inert later. Outside of that no generation is in force. A
 *   call that was behind the jump before it was written has an object that no frame holds any more. And each walk
 *   compares the jump and the word first: if either is anything else, somebody has put his function there, perhaps one
 *   that does not go on to CPython's, and that is the end of it for this session.
 *
 * What is left: somebody who sets the word to something else, frees code in his own way, and sets it back, all between
 * two samples; a watcher of code (PyCode_AddWatcher) that runs the code whose end it is told of, and lets it go all the
 * same; and who writes into a code object. Such a frame may get the name of the code that was there before. No more can
 * happen: nothing is read here that would not be read otherwise.
 *
 * Py_Finalize leaves the word alone, and so does the next Py_Initialize: it is a constant of a static type. Code that
 * is compiled into the interpreter (3.11, 3.12) is never freed, its address never given out. A forked child has its own
 * copy of the count, and never walks: it finds the switch off. A session that begins in a payload of before finds
 * the table empty.
 *
 * Programs that make and drop code all the time have a new generation at each sample. They would pay for a table that
 * never helps: so it is used only once KNOWN_CODE_CALM samples were taken in one generation.
 *
 * The table: two entries to a cache line. Threads write and read them without a lock. An entry is made of its hash and
 * of words that are exclusive-or'ed with that, so one of which two threads have written parts does not match.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "payload.h"

#define KNOWN_CODE_SETS 2048u
#define KNOWN_CODE_WAYS 2u
#define KNOWN_CODE_CALM 4u

struct known_code {
	uint64_t address;    /* ^ hash */
	uint64_t generation; /* ^ hash */
	uint64_t hash;       /* 0: empty */
	uint64_t apart_;
};

/* Given back when a session begins. */
extern struct known_code known_codes[KNOWN_CODE_SETS][KNOWN_CODE_WAYS] PAYLOAD_PAGES HIDDEN;

/* Written by memattach (control.h). */
extern struct counted_function counted_function HIDDEN;

/* Nothing is counted any more. */
void known_code_end(void);
/* The generation that is in force, to be asked before a code object is read; 0: each must be read. */
uint64_t known_code_generation(void);
/* Has the object at this address been read in this generation? Then *hash is that of code_object_read(). */
bool known_code_find(uint64_t generation, uint64_t address, uint64_t *hash);
/* It was read, since known_code_generation() has given this generation. */
void known_code_keep(uint64_t generation, uint64_t address, uint64_t hash);
