/* SPDX-License-Identifier: MIT */
/*
 * How the Python frames of a thread are found in CPython 3.9 to 3.14, for a walk inside of the process:
 *
 *   thread pointer → the state that the thread works with, or else the one of the key → current frame
 *   frame → code object, instruction, previous frame
 *
 * memattach fills it in after it has proved it on the running process (injector/python/python_proof.h), from three
 * sources: *headers*, offsets that the structures of that version have (injector/python/python_releases.c); *process*,
 * addresses of objects in it; *C library*, the offset that its own description for debuggers names.
 *
 * The walk. There is none once finalizing leads to something, nor while the thread is leaving: pthread_exit and
 * cancellation end the evaluators without a word to the state. The thread's state is found without a lock:
 *
 * - 3.12 and later keep the state that the thread works with in a word of its own, at attached_offset from the thread
 *   pointer (0: it is not known where), above or below it as the machine has thread-local storage. It is 0 while the
 *   thread has no interpreter's lock, and the right state otherwise, whichever interpreter it runs and whichever thread
 *   made the state.
 * - Else through the thread-specific key of the runtime. The value belongs to the thread, is set before it runs Python
 *   and cleared before the state is freed, but for threads that outlive the interpreter. It is used only if key_address
 *   begins with a word that is not 0, the key is below PYTHON_KEYS, the value was set under the sequence number that
 *   key_table has for that key now, and the state names this thread. An interpreter that is started again in the same
 *   process (Py_Initialize after Py_Finalize) makes its key anew, with another number or sequence number; all else that
 *   is here stays.
 *
 * From the state, state_frame leads to the current frame; where cframe_frame is not absent, through one more structure.
 *
 * Several interpreters. A thread that runs one inside of another has a state for each, and the frames of one are
 * walked. Which ones are missing differs (enum python_missing). In 3.9 to 3.11 the key leads to the state that the
 * thread had first, mostly that of the main interpreter: frames of the subinterpreter, further in, are missing. The
 * runtime names the state that has the lock, at current_state; it may be another thread's, so it is never followed, and
 * only compared. In 3.12 and later the state is that of the interpreter that runs now; if that is not main_interpreter,
 * frames of the one that has called it, further out, are missing.
 *
 * A frame counts if its code object has the type code_type, its instruction lies in the code, and it has begun: a frame
 * that is being set up is skipped (python_frame_layout.first_traceable). Where frame_owner is not absent and holds
 * owner_without_code or more, the frame marks where the evaluator was entered from C: it is skipped as well, its code
 * is of no meaning, and the native stack has one more evaluator frame there. The walk ends at previous == 0; at the
 * first thing that is not as said here, and after PYTHON_DEPTH_MAX frames, it ends truncated.
 *
 * What a code object is called, and which of its instructions is on which line, is read by python_code_layout.
 */
#pragma once

#include <stdint.h>

#define PYTHON_ABSENT     0xffffffffu /* of an offset: this version has no such member */
#define PYTHON_DEPTH_MAX  20000u      /* frames of one chain; sys.setrecursionlimit allows more, chains may be cyclic */
#define PYTHON_KEYS       1024u       /* glibc: PTHREAD_KEYS_MAX */
#define PYTHON_BLOCK_KEYS 32u         /* glibc: keys of one block, the second level of its table */
#define PYTHON_KEY_BYTES  16u         /* glibc: of one key in a block: sequence number of the key, value */
#define PYTHON_LEAVING    0x10u       /* glibc: EXITING_BITMASK, set at the begin of pthread_exit and cancellation */
#define PYTHON_KEY_VALUE  8u          /* … where the value is */
#define PYTHON_KEY_ENTRY  16u         /* glibc: of an entry of its table of keys: sequence number, destructor */

/* What the word of a frame at frame_instruction is. A code unit has two bytes. */
enum python_instruction {
	PYTHON_LAST_BYTES = 1, /* 3.9: int32, bytes from the start of the code to the last instruction; -1 none yet */
	PYTHON_LAST_UNITS,     /* 3.10: the same in code units */
	PYTHON_BEFORE_NEXT,    /* 3.11, 3.12: address of the code unit before the next instruction */
	PYTHON_CURRENT,        /* 3.13, 3.14: address of the instruction that runs */
};

/* Which Python frames a walk may have missed: of another interpreter that the same thread runs. */
enum python_missing {
	PYTHON_MISSING_NONE,
	PYTHON_MISSING_INNER, /* another state than the walked one has the lock: this thread's or another thread's */
	PYTHON_MISSING_OUTER, /* the state is one of a subinterpreter */
};

/* All from the headers. Offsets into a structure, which the first word of the name says. */
struct python_frame_layout {
	/* Thread state: struct _ts. */
	uint32_t state_frame;  /* frame (3.9, 3.10), cframe (3.11, 3.12), current_frame */
	uint32_t state_thread; /* thread_id, 8 bytes: pthread_self() of its thread */
	uint32_t cframe_frame; /* struct _PyCFrame: current_frame; absent: state_frame is the frame itself */
	/* Frame: struct _frame (3.9, 3.10), struct _PyInterpreterFrame. */
	uint32_t frame_previous;
	uint32_t frame_code; /* f_code, f_executable: the bits of executable_tag are no part of the address */
	uint32_t frame_instruction;
	uint32_t frame_owner; /* one byte; absent: 3.9, 3.10 */
	uint32_t frame_entry; /* one byte, not 0: the evaluator was entered for this frame; absent: all but 3.11 */
	/* Object. */
	uint32_t object_type;
	/* Code object. */
	uint32_t code_units;      /* ob_size, 8 bytes: code units of the code; absent: 3.9, 3.10, see code_start */
	uint32_t code_start;      /* co_code_adaptive, the code itself; 3.9, 3.10: co_code, address of a bytes object */
	uint32_t first_traceable; /* int32, code units: _co_firsttraceable. A frame with owner_generator (or without an
	                             owner) whose instruction is before it has not begun. Absent: 3.9, 3.10 */
	uint32_t bytes_size;      /* bytes object: ob_size, 8 bytes */
	uint32_t bytes_data;      /* … what it holds */
	uint8_t instruction;      /* enum python_instruction */
	uint8_t executable_tag;   /* 1 in 3.14, else 0 */
	uint8_t owner_generator;  /* owner: the frame is part of a generator or coroutine */
	uint8_t owner_without_code; /* this owner and all above: the evaluator was entered here; 255: none */
};

/* All from the headers, to copy a code object. */
struct python_code_layout {
	/* Code object. */
	uint32_t file;       /* co_filename, a str */
	uint32_t name;       /* co_qualname, a str; 3.9, 3.10: co_name */
	uint32_t first_line; /* co_firstlineno, int32 */
	uint32_t lines;      /* co_lnotab, co_linetable: a bytes object */
	/* str. */
	uint32_t string_length;  /* 8 bytes, characters */
	uint32_t string_state;   /* 4 bytes of flags, with these masks: */
	uint32_t string_kind;    /* … bytes of a character */
	uint32_t string_compact; /* … its characters follow it */
	uint32_t string_ascii;   /* … at ascii_data, else at wide_data */
	uint32_t ascii_data;
	uint32_t wide_data;
	uint32_t lines_format; /* enum dump_lines */
};

struct python_layout {
	uint32_t version;         /* as Py_Version: 0x030b02f0 is 3.11.2, 0x030bfff0 any patch level; 0: no frames */
	uint32_t specific_offset; /* C library: from its description to the 32 addresses of blocks of keys */
	uint64_t key_address;     /* process: int32 "is there a key", uint32 key (Py_tss_t in _PyRuntime), on 8 bytes */
	uint64_t key_table;       /* C library: of an entry of each key, which begins with its sequence number */
	uint64_t finalizing;      /* process: of a word, not 0 once the interpreter ends, before states are freed */
	uint64_t code_type;       /* process: PyCode_Type */
	uint64_t frame_type;      /* process: PyFrame_Type, which frames of 3.9 and 3.10 have; else 0 */
	uint64_t string_type;     /* process: PyUnicode_Type */
	uint64_t bytes_type;      /* process: PyBytes_Type */
	struct python_frame_layout frames;
	uint32_t leaving_offset; /* C library: from its description to 4 bytes of flags, with PYTHON_LEAVING */
	struct python_code_layout code;
	uint32_t state_interpreter; /* headers: of the thread state, the address of its interpreter */
	int64_t attached_offset;    /* process: 0: not known, 3.9 to 3.11 have none */
	uint64_t current_state;     /* process: of a word, which state has the lock; 0: 3.12 and later */
	uint64_t main_interpreter;  /* process: its address; 0: 3.9 to 3.11 */
	uint32_t block_below;       /* C library: its description of a thread, which pthread_self() is the address of,
	                               begins so far below the thread pointer */
	uint32_t reserved_;
};

_Static_assert(sizeof(struct python_frame_layout) == 60, "a contract between memattach and the payload");
_Static_assert(sizeof(struct python_code_layout) == 48, "a contract between memattach and the payload");
_Static_assert(sizeof(struct python_layout) == 216, "a contract between memattach and the payload");
