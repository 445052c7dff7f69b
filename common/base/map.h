/* SPDX-License-Identifier: MIT */
/*
 * A hash map from uint64_t to uint32_t, open addressing; only ever grows. Keys come from files of unknown origin, so
 * the hash has a secret that is another one in each process: no file can be made whose keys meet in one place.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct map {
	struct map_entry {
		uint64_t key;
		uint32_t value;
		uint32_t used;
	} * entries;
	size_t room; /* a power of two */
	size_t count;
};

/* The value of key, or NULL. Valid until the next map_put. */
const uint32_t *map_find(const struct map *map, uint64_t key);
/* Adds a key that is not there yet, or sets the value of one that is. -ENOMEM. */
int map_put(struct map *map, uint64_t key, uint32_t value) WARN_UNUSED;
void map_done(struct map *map);

/* Set before main, never changed; those that multiply are odd. */
extern uint64_t map_secret[3];

static inline uint64_t map_mix(uint64_t x)
{
	x ^= map_secret[0];
	x = (x ^ x >> 32) * map_secret[1];
	x = (x ^ x >> 29) * map_secret[2];
	return x ^ x >> 32;
}

/* Brings what map_find of this key will look at into the caches. */
static inline void map_fetch(const struct map *map, uint64_t key)
{
	if (map->room)
		__builtin_prefetch(&map->entries[map_mix(key) & (map->room - 1)]);
}
