/* SPDX-License-Identifier: MIT */
/*
 * The hash of a stack: the polynomial of its frames, h(f0) + h(f1) P + h(f2) P^2 …, modulo 2^64, f0 innermost; then the reason why the
 * walk ended is mixed in. The hash of outer frames that are known already enters with one multiplication.
 */
#ifndef MEMATTACH_PAYLOAD_STACK_HASH_H
#define MEMATTACH_PAYLOAD_STACK_HASH_H

#include <stdint.h>

#define STACK_HASH_P 0xD6E8FEB86659FD93ull

/* h folds the module id, which differences of powers of P would not carry to the other bits. */
static inline uint64_t stack_hash_frame(uint64_t frame)
{
	return frame ^ frame >> 31;
}

/* Of one more frame around which the frames with hash `outer` are. */
static inline uint64_t stack_hash_push(uint64_t outer, uint64_t frame)
{
	return stack_hash_frame(frame) + STACK_HASH_P * outer;
}

/* Of count more frames, two at a time: h(f0) + P h(f1) waits for nothing. */
static inline uint64_t stack_hash_frames(uint64_t outer, const uint64_t *frames, uint32_t count)
{
	uint32_t i = count;

	if (i % 2)
		outer = stack_hash_push(outer, frames[--i]);
	for (; i > 0; i -= 2)
		outer = stack_hash_push(stack_hash_frame(frames[i - 1]), frames[i - 2]) + STACK_HASH_P * STACK_HASH_P * outer;
	return outer;
}

static inline uint64_t stack_hash_end(uint64_t hash, uint32_t count, uint32_t flags)
{
	hash ^= (uint64_t)count << 32 ^ flags;
	hash = (hash ^ hash >> 32) * 0xBF58476D1CE4E5B9ull;
	hash = (hash ^ hash >> 29) * 0x94D049BB133111EBull;
	hash ^= hash >> 32;
	return hash ? hash : 1;
}

#endif
