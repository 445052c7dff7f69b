/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <stdlib.h>
#include <sys/random.h>

uint64_t map_secret[3];

__attribute__((constructor)) static void make_secret(void)
{
	if (getrandom(map_secret, sizeof map_secret, GRND_NONBLOCK) != sizeof map_secret)
		map_secret[0] =
			(uintptr_t)&map_secret; /* what there is while the system boots: where the program was loaded */
	map_secret[1] = (map_secret[1] | 1) ^ 0x9e3779b97f4a7c14u;
	map_secret[2] = (map_secret[2] | 1) ^ 0xbf58476d1ce4e5b8u;
}

static struct map_entry *place_of(const struct map *map, uint64_t key)
{
	size_t i = map_mix(key) & (map->room - 1);

	while (map->entries[i].used && map->entries[i].key != key)
		i = (i + 1) & (map->room - 1);
	return &map->entries[i];
}

const uint32_t *map_find(const struct map *map, uint64_t key)
{
	if (!map->room)
		return NULL;
	struct map_entry *entry = place_of(map, key);
	return entry->used ? &entry->value : NULL;
}

static int grow(struct map *map)
{
	struct map bigger = { .room = map->room ? 2 * map->room : 64 };

	bigger.entries = calloc(bigger.room, sizeof *bigger.entries);
	if (!bigger.entries)
		return -ENOMEM;
	for (size_t i = 0; i < map->room; i++)
		if (map->entries[i].used)
			*place_of(&bigger, map->entries[i].key) = map->entries[i];
	bigger.count = map->count;
	free(map->entries);
	*map = bigger;
	return 0;
}

int map_put(struct map *map, uint64_t key, uint32_t value)
{
	if (4 * (map->count + 1) > 3 * map->room) {
		int r = grow(map);
		if (r)
			return r;
	}
	struct map_entry *entry = place_of(map, key);
	map->count += !entry->used;
	*entry = (struct map_entry){ .key = key, .value = value, .used = 1 };
	return 0;
}

void map_done(struct map *map)
{
	free(map->entries);
	*map = (struct map){ 0 };
}
