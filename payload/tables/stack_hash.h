/* SPDX-License-Identifier: MIT */
/*
 * The hash of a stack: the polynomial of its frames, h(f0) + h(f1) P + h(f2) P^2 …, modulo 2^64, f0 outermost; then the
 * reason why the walk ended is mixed in. A walk, which finds the inner frames first, multiplies what it has at each
 * frame, and once more where it comes to outer frames whose hash is known already.
 */
#pragma once

#include <stdint.h>

#define STACK_HASH_P 0xD6E8FEB86659FD93ull

/* h folds the module id, which differences of powers of P would not carry to the other bits. */
static inline uint64_t stack_hash_frame(uint64_t frame)
{
	return frame ^ frame >> 31;
}

/* Of the frames inside of `frame`, and it. */
static inline uint64_t stack_hash_add(uint64_t inner, uint64_t frame)
{
	return inner * STACK_HASH_P + stack_hash_frame(frame);
}

/* Each bit of the result depends on all of the hash. Never 0. */
static inline uint64_t stack_hash_spread(uint64_t hash)
{
	hash = (hash ^ hash >> 32) * 0xBF58476D1CE4E5B9ull;
	hash = (hash ^ hash >> 29) * 0x94D049BB133111EBull;
	hash ^= hash >> 32;
	return hash ? hash : 1;
}

static inline uint64_t stack_hash_end(uint64_t hash, uint32_t count, uint32_t flags)
{
	return stack_hash_spread(hash ^ (uint64_t)count << 32 ^ flags);
}
