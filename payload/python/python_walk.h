/* SPDX-License-Identifier: MIT */
/*
 * Walks the Python frames of the calling thread by the layout that memattach proved (python_layout.h). No call, no
 * lock, no system call; nothing is written but the caller's variables. tests/tools/python_walks.c tries it at each call
 * of malloc.
 *
 * Why each read is of mapped memory. All that is read belongs to the calling thread, which is in a call of malloc or
 * its kin: nobody else pushes or pops its frames.
 *
 * - Where the interpreter is, is mapped as long as the process lives: memattach passes a layout on only if _PyRuntime
 * is in the program or in a library that the program needs, which dlclose does not unload (python_session.h).
 * - The control block and the first block of keys are the thread's own. A further block is allocated by
 *   pthread_setspecific before its address is stored, and freed when the thread is.
 * - The thread-local storage of a module that was there when the program started is a part of each thread, mapped as
 *   long as it runs, and whatever calls malloc has it; a new thread has zeros there. The state that the thread works
 *   with is stored there by the thread itself where it takes the lock of the state's interpreter, and cleared by it
 *   where it gives the lock back, before it frees the state. (PyThreadState_Swap of 3.12 stores it a little before it
 *   has the lock, and clears it a little after; nothing between calls malloc.) To free another thread's state takes
 *   that lock, and of an interpreter that ends, all states but the one of the thread that ends it must be gone. So the
 *   state is there while the word leads to it, whichever thread it names, also in the teardown of a subinterpreter:
 *   Py_EndInterpreter runs finalisers with the state, then clears the word, then frees the state and its interpreter.
 *   Its frames are gone before.
 * - Else the key. A thread state is bound to it after it has been filled in, and the key is cleared (or rebound) before
 *   the state is freed: PyThreadState_DeleteCurrent, and PyGILState_Release for threads that are not Python's. A thread
 * that outlives its interpreter has its state freed by another thread, and keeps its value: Py_FinalizeEx sets the word
 *   `finalizing` long before that, and deletes the key long before Py_Initialize clears that word and makes a key anew.
 *   The C library gives each key that it makes another sequence number, and a thread's value has the one under which
 *   the thread has set it. Who compares both, as pthread_getspecific does, finds no value of an earlier key. Nor one of
 *   somebody else's key that has taken the number meanwhile: the number and the word before it, which is not 0 while
 *   the key is the interpreter's, are read at once, and only this thread sets its values, which it does not do in a
 *   hook. What is left is a thread without the lock that is held up within this walk for as long as a whole
 *   finalisation takes.
 * - In 3.9 to 3.11 the runtime has one word that leads to the state with the lock. That may be another thread's, which
 *   can give the lock back, free the state and its memory between two of our instructions: there is no way to tell
 *   whose it is without reading it. So it is compared with the thread's own state, and never followed.
 * - A fork leaves only the thread that forked; the others' states are not walked in the child, where hooks are off.
 * - pthread_exit and cancellation end evaluators without unlinking their frames; destructors may run afterwards. The C
 *   library sets PYTHON_LEAVING before, and then nothing is read. longjmp says nothing. It matters in 3.11 and 3.12,
 *   which have the current frame in a _PyCFrame on the C stack of the evaluator: one below the stack pointer is not
 *   read, and one above is followed only if it leads, upwards, to those of outer evaluators and into the state, which
 *   has one of its own for when no evaluator runs. In other versions the state itself has the current frame, and what
 *   that leads to is kept by the state or by nobody, so it is not freed.
 * - A frame is linked in after its code, its previous frame and its instruction are set, and taken out before it is
 *   cleared: what may call malloc while it is cleared (destructors) no longer finds it. Before 3.11 frames are objects,
 *   held by the thread state. A generator's frame lies in the generator, which its evaluator holds while it runs.
 *   Creating a generator allocates before the frame is copied, and the copy is linked in only when it is resumed.
 * - A frame holds its code object, a code object its type, which is static. Code of 3.9 and 3.10 is a bytes object that
 *   the code object holds.
 * - A call of CPython's own allocator (SHAPE_POOL) comes from where PYTHONMALLOC=malloc calls malloc, which is where
 *   python_walks_at_every_malloc walks. Where a frame is being set up (a generator's object, the cells of a function)
 *   it is the current one already; its code and its instruction were set before that, and it is skipped.
 * - A signal handler of C runs at any instruction, also between two stores of the evaluator: that of 3.11 and 3.12 puts
 *   a new _PyCFrame into the thread state before it stores the current frame there. POSIX forbids such a handler to
 *   call malloc; programs do it all the same. So where the native walk has passed a signal frame, no Python frame is
 *   read (python_frames.h). What is left is a handler whose own frames cannot be walked. Python's own handlers run
 *   between instructions, without a signal frame.
 *
 * Nevertheless nothing is believed: an address that is not aligned, or none of a program, ends the walk, as does a
 * code object without the code type, and a chain is followed for no more frames than the caller wants.
 */
#pragma once

#include <stdbool.h>

#include "python_layout.h"

struct python_walked {
	uint64_t code;  /* address of the code object */
	uint32_t bytes; /* of its instructions */
	int32_t offset; /* of the instruction, bytes from the start of the code; below 0: none has run */
	uint32_t entry; /* 1: the evaluator was entered for this frame, so a frame of the native stack ends here */
};

enum python_walk_end {
	PYTHON_WALK_WHOLE,     /* to the first frame */
	PYTHON_WALK_NO_THREAD, /* this thread has no state, or none that names it */
	PYTHON_WALK_TRUNCATED, /* there are more frames than room */
	PYTHON_WALK_LOST,      /* something was not as the layout says; the frames before it are right */
};

/* A walk on its way, innermost frame first. A frame is given when the next one is known, which tells its entry. */
struct python_cursor {
	const struct python_layout *layout;
	uint64_t frame; /* to be looked at */
	struct python_walked pending;
	bool has_pending;
	enum python_walk_end end; /* of a walk that has ended; never TRUNCATED: the caller decides how many it wants */
	enum python_missing missing;
};

/* thread_pointer: of the calling thread. False: there is nothing to walk, c->end says why. */
bool python_walk_start(struct python_cursor *c, const struct python_layout *layout, uint64_t thread_pointer);
/* For a walk that has just begun: if there is a frame, none is read, and they count as lost. */
void python_walk_give_up(struct python_cursor *c);
/* False: there are no more, c->end says why. Chains may be cyclic: who asks must end by itself. */
bool python_walk_next(struct python_cursor *c, struct python_walked *out);

/* Frames of the calling thread, innermost first, at most room; *count of them. */
enum python_walk_end python_walk(const struct python_layout *layout, uint64_t thread_pointer,
                                 struct python_walked *frames, uint32_t room, uint32_t *count);
