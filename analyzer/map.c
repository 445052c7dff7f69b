/* SPDX-License-Identifier: MIT */
#include "map.h"

#include <stdlib.h>

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
