/* SPDX-License-Identifier: MIT */
/*
 * The heaps of glibc's arenas but the main one: 64 MiB of address space at a multiple of it, with struct heap_info in
 * front (malloc/arena.c; its first four words are the same from 2.31 to 2.43). Its words are the target's and prove
 * only that it looks like one: a program that imitates it is told that it has an arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ARENA_HEAP_BYTES (64ull << 20)

struct arena_heap {
	uint64_t arena, previous, bytes, accessible_bytes;
};

/* Are the words at start those of such a heap? It may have grown beyond what its mapping was when that was read. */
bool arena_heap_fits(const struct arena_heap *h, uint64_t start);
