/* SPDX-License-Identifier: MIT */
/*
 * What the assembly entries of the hooks and the C code after them share: the layout of a call on its slow path, of
 * the thread states and of the filter, and the constants of their hash functions. The assembler reads this file too.
 */
#pragma once

#include "trampolines.h"

#define THREAD_STATE_LOG2 12
/*
 * Home thread state: bits 12 … 23 of tp ^ tp >> 12. Thread control blocks are at like places of stacks that are
 * neighbours: the fold keeps those apart for distances of 4 KiB to 16 MiB, powers of two included.
 */
#define THREAD_STATE_SHIFT 12
#define THREAD_STATE_FOLD 12
#define THREAD_STATE_COUNT (1 << THREAD_STATE_LOG2)
#define THREAD_STATE_PROBES 8 /* home and 7 more: the array has 64 thread states after the last home */
#define THREAD_STATE_ARRAY (THREAD_STATE_COUNT + 64)
#define THREAD_STATE_BYTES_LOG2 7 /* a pair of lines: the prefetcher fetches both */
#define THREAD_STATE_BYTES (1 << THREAD_STATE_BYTES_LOG2)
#define THREAD_STATE_OWNER 0
#define THREAD_STATE_OUTER_SP 64
#define THREAD_STATE_OUTER_RETURN 72

/* The second counter of an address is in the line of the first (trampolines.h): bits 22 to 27 of the product say how
 * far away, by exclusive or. */
#define FILTER_SECOND_SHIFT 22
#define FILTER_LINE_BYTES 64

/* 2^64 divided by the golden ratio: multiplicative (Fibonacci) hashing. */
#define HASH_MULTIPLIER 0x9E3779B97F4A7C15

#define HOOK_CALL_ARGUMENTS 0
#define HOOK_CALL_TRAMPOLINE 48
#define HOOK_CALL_STATE 56
#define HOOK_CALL_FP 64
#define HOOK_CALL_SP 72
#define HOOK_CALL_HOOK 80
#define HOOK_CALL_LIVE 88
#define HOOK_CALL_AGAIN 96
#define HOOK_CALL_KEEPS 100
#define HOOK_CALL_BYTES 112 /* a multiple of 16: so struct hook_kept behind it is aligned */

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct trampoline;
struct thread_state;

/* A call that left the fast path, as the assembly entry found it. Lies in the frame of the entry. */
struct hook_call {
	uint64_t arguments[6];
	struct trampoline *trampoline;
	struct thread_state *thread; /* already charged with the requested size, or NULL: nothing was charged */
	uint64_t fp;                 /* the caller's frame pointer register */
	uint64_t sp;                 /* stack pointer at entry: points to the return address */
	uint32_t hook;               /* enum hook_id */
	uint32_t inner; /* set by hook_call_slow(): made by another hooked function, for whose block it is */
	uint64_t live;  /* HOOK_LIVE_MAGIC of control.h */
	uint32_t again; /* set by hook_call_slow(): the entry shall jump to the original without a frame */
	uint32_t keeps; /* 1: behind it lie the registers that the original gets, then those that it left
	                   (struct hook_kept, which only hooks.S knows). Not with again */
	uint32_t file;  /* set by hook_call_slow(): what it makes is the mapping of a file (DUMP_STACK_FILE) */
};

_Static_assert(offsetof(struct hook_call, arguments) == HOOK_CALL_ARGUMENTS, "arguments");
_Static_assert(offsetof(struct hook_call, trampoline) == HOOK_CALL_TRAMPOLINE, "trampoline");
_Static_assert(offsetof(struct hook_call, thread) == HOOK_CALL_STATE, "thread");
_Static_assert(offsetof(struct hook_call, fp) == HOOK_CALL_FP, "fp");
_Static_assert(offsetof(struct hook_call, sp) == HOOK_CALL_SP, "sp");
_Static_assert(offsetof(struct hook_call, hook) == HOOK_CALL_HOOK, "hook");
_Static_assert(offsetof(struct hook_call, live) == HOOK_CALL_LIVE, "live");
_Static_assert(offsetof(struct hook_call, again) == HOOK_CALL_AGAIN, "again");
_Static_assert(offsetof(struct hook_call, keeps) == HOOK_CALL_KEEPS, "keeps");
_Static_assert(sizeof(struct hook_call) <= HOOK_CALL_BYTES, "hook_call");

/* Does what the fast path could not, the original call included; returns what the original returned. With call->again
 * nothing was called that matters, and the call is still to be made. */
uint64_t hook_call_slow(struct hook_call *call);

/* Calls the original of a call that keeps registers. */
uint64_t hook_call_keeping(const struct hook_call *call) __attribute__((visibility("hidden")));
#endif
