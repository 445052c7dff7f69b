/* SPDX-License-Identifier: MIT */
/*
 * HotSpot's code heaps, read from outside while it runs: which piece of code (CodeBlob) holds a pc, and which methods
 * an instruction of compiled code stands for, the inlined ones among them.
 *
 * A code heap is cut into segments; a byte for each says how far its block's first segment is (segmap). All reads are
 * checked as those of python_object.h are: -EINVAL where something is not as it should be, -EFAULT where it is not
 * readable; a process that runs changes its code, so callers try again.
 */
#pragma once

#include "java/java_structures.h"
#include "java_layout.h"

#define JAVA_INLINED_MAX 128u /* methods that one instruction stands for */

struct java_heap {
	uint64_t low, high; /* of what is committed */
	uint64_t segmap, segmap_end;
	uint64_t high_word, segmap_end_word; /* where HotSpot keeps these */
	uint32_t shift;                      /* of a segment */
};

/* A HotSpot that is looked at. */
struct java_view {
	const struct maps *maps;
	struct target_memory memory; /* with a budget */
	struct java_structures s;
	struct java_heap heaps[JAVA_HEAPS_MAX];
	uint32_t heap_count;
	uint64_t cache, cache_bytes;   /* what is reserved for all heaps; 0, 0: not known yet (java_inside.h) */
	uint64_t interpreter;          /* where its code begins */
	uint64_t call_stub_return;     /* return address of what native code calls */
	uint64_t barrier, barrier_end; /* the block of continuations' stubs, once it has been seen; 0, 0 */
};

/* Bounds of the code heaps and of the interpreter. */
int java_heaps_read(struct java_view *v, struct err *e) WARN_UNUSED;
/* How far the heaps go now: they grow. */
int java_heaps_refresh(struct java_view *v, struct err *e) WARN_UNUSED;
/* The heap that holds pc, or NULL. */
const struct java_heap *java_heap_of(const struct java_view *v, uint64_t pc);

enum java_code_kind {
	JAVA_CODE_INTERPRETER,
	JAVA_CODE_COMPILED,
	JAVA_CODE_NATIVE,  /* the wrapper of a native method */
	JAVA_CODE_BARRIER, /* of continuations: what a frame returned to may be on the Java heap */
	JAVA_CODE_STUB,
};

#define JAVA_CODE_TEXT 40u

struct java_code {
	uint64_t address;
	uint64_t end;         /* of its block */
	uint64_t start;       /* of its instructions */
	uint64_t frame_bytes; /* with the return address; 0: it has no frame of a fixed size */
	enum java_code_kind kind;
	char name[JAVA_CODE_TEXT]; /* as HotSpot has it, cut */
};

/* -ENOENT: no code is there. */
int java_code_at(struct java_view *v, uint64_t pc, struct java_code *code, struct err *e) WARN_UNUSED;
/* The blocks of a heap one after the other: *at begins as heap->low, -ENOENT at the end. used: else it is free. Where a
 * block is one, but what it holds is not described (C1's buffers have no frame size; one is just being made), *at goes
 * on with the failure, too. */
int java_code_next(struct java_view *v, const struct java_heap *heap, uint64_t *at, struct java_code *code, bool *used,
                   struct err *e) WARN_UNUSED;

/* A method at a bytecode, by address; innermost ones first in lists. */
struct java_point {
	uint64_t method;
	int32_t bci; /* -1: before the first, or none is known */
};
#define JAVA_NO_BCI (-2) /* which no code says: not known where in the method */

/* Where a caller goes on, as the debug information of its code has it: behind the deoptimisation handler is another pc.
 */
int java_code_original_pc(struct java_view *v, const struct java_code *code, uint64_t sp, uint64_t *pc,
                          struct err *e) WARN_UNUSED;
/* Its handler of deoptimisation. */
int java_code_handler(struct java_view *v, const struct java_code *code, uint64_t *handler, struct err *e) WARN_UNUSED;
/* The points that the instruction before pc stands for. list[JAVA_INLINED_MAX]; *count 0: no debug information is at
 * that pc. */
int java_points_read(struct java_view *v, const struct java_code *code, uint64_t pc, struct java_point *list,
                     uint32_t *count, struct err *e) WARN_UNUSED;
/* The n-th pc that has debug information, counted from 0; -ENOENT: there is none. Of compiled code. */
int java_code_debug_pc(struct java_view *v, const struct java_code *code, uint32_t n, uint64_t *pc,
                       struct err *e) WARN_UNUSED;

/* A number in UNSIGNED5, from *at on. False: none is there before end. */
bool java_code_number(const struct java_view *v, const uint8_t **at, const uint8_t *end, uint32_t *value);
