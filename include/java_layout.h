/* SPDX-License-Identifier: MIT */
/*
 * How a walk inside of the process goes through Java code of HotSpot: compiled code, the interpreter, stubs. memattach
 * fills it in after it has proved on the running process that HotSpot's structures are so (injector/java/java_proof.h).
 *
 * A return address in a code heap belongs to the block that the heap's segmap leads to: the byte of a segment says how
 * many segments further down its block goes on, 0 that the block begins there, 255 that none is there. A block begins
 * with a header; behind that stands a CodeBlob. From there to the caller:
 *
 * - The interpreter's code: from the frame pointer on, in words, the saved frame pointer is 0, the return address 1,
 *   and the caller's stack pointer -1 (arch/java_frame.h has all that is below it).
 * - The return address of what native code calls (call stub): saved frame pointer and return address as above, and the
 *   caller's stack pointer is behind them.
 * - Code whose frame_words is not 0: its frame has so many words, the last two of which are the saved frame pointer and
 *   the return address.
 * - Other code has no frame that is described, and code of continuations has callers elsewhere: a walk ends there.
 *
 * What a frame is recorded as (arch/java_frame.h: JAVA_FRAME): of the interpreter, two words below the frame pointer,
 * its Method and the address of the bytecode that runs; of other code, its compile_id. Where the return address is the
 * code's deoptimisation handler, the one of before is kept in the frame.
 */
#pragma once

#include <stdint.h>

#define JAVA_HEAPS_MAX  8u
#define JAVA_BLOB_BYTES 512u /* of a block from its start on: what is read of it lies in here */
#define JAVA_NO_SEGMENT 255u

/* The words are HotSpot's own and grow; the rest stays. */
struct java_code_heap {
	uint64_t low;
	uint64_t high;        /* address of a word: where what is committed ends */
	uint64_t segmap;
	uint64_t segmap_high; /* the same of the segmap */
	uint32_t shift;       /* of a segment: 4 to 16 */
	uint32_t reserved_;
};

struct java_layout {
	uint64_t low;   /* all code heaps lie from here on … */
	uint64_t bytes; /* … in so many bytes; 0: there is none, the rest means nothing */
	uint64_t interpreter, interpreter_end;
	uint64_t call_stub_return;
	uint64_t barrier, barrier_end; /* code of continuations: what is outside of it may be elsewhere. 0, 0: none */
	uint32_t heap_count;
	uint32_t block_used;  /* offset of a byte in a block's header; 0: it is free */
	uint32_t frame_words; /* offset of int32 CodeBlob::_frame_size from the start of a block */
	uint32_t compile_id;  /* offset of int32 nmethod::_compile_id from there: other code has anything there */
	uint32_t original;    /* … of int32 nmethod::_orig_pc_offset, which is one from the stack pointer on */
	uint32_t handlers[2]; /* … of where deoptimisation handlers are; 0: of none */
	uint32_t handler_base; /* they are int32, from so many bytes behind the start of a block on; 0: addresses */
	struct java_code_heap heaps[JAVA_HEAPS_MAX];
};
