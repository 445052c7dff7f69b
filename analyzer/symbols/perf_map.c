/* SPDX-License-Identifier: MIT */
#include "symbols/perf_map.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/sorted.h"
#include "base/order.h"

/* How many symbols before the address are looked at: those that overlap are old code at an address used again. */
#define LOOK_BACK 16u

static int read_text(struct perf_map *map, int fd, size_t *bytes)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	size_t room = st.st_size < (off_t)PERF_MAP_BYTES_MAX ? (size_t)st.st_size : PERF_MAP_BYTES_MAX;
	map->text = malloc(room + 1);
	if (!map->text)
		return -ENOMEM;
	for (*bytes = 0; *bytes < room;) {
		ssize_t n = pread(fd, map->text + *bytes, room - *bytes, (off_t)*bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		*bytes += (size_t)n;
	}
	map->text[*bytes] = 0;
	return 0;
}

static bool take_number(char **at, uint64_t *number)
{
	char *end;

	if (**at == '-' || **at == '+' || **at == ' ')
		return false;
	errno = 0;
	*number = strtoull(*at, &end, 16);
	if (errno || end == *at || *end != ' ')
		return false;
	*at = end + 1;
	return true;
}

/* One line, terminated. */
static bool parse(char *line, struct perf_symbol *symbol)
{
	uint64_t bytes;

	if (!take_number(&line, &symbol->start) || !take_number(&line, &bytes) || !bytes || !*line ||
	    bytes > UINT64_MAX - symbol->start)
		return false;
	symbol->end = symbol->start + bytes;
	symbol->name = line;
	return true;
}

ORDER_BY_BOTH(compare, struct perf_symbol, start, line);

int perf_map_read(struct perf_map *map, int fd)
{
	size_t bytes = 0;
	int r = read_text(map, fd, &bytes);
	uint32_t number = 0;

	/* The last line may be one that is being written. */
	for (char *line = map->text, *end; !r && (end = memchr(line, '\n', bytes - (size_t)(line - map->text)));
	     line = end + 1) {
		struct perf_symbol symbol = { .line = number++ };
		*end = 0;
		if (!parse(line, &symbol))
			continue;
		if (!grow_list(map->list, map->count))
			r = -ENOMEM;
		else
			map->list[map->count++] = symbol;
	}
	if (!r && map->count)
		qsort(map->list, map->count, sizeof *map->list, compare);
	return r;
}

void perf_map_done(struct perf_map *map)
{
	free(map->text);
	free(map->list);
	*map = (struct perf_map){ 0 };
}

const char *perf_map_find(const struct perf_map *map, uint64_t address)
{
	size_t low = SORTED_UP_TO(map->list, map->count, start, address);

	for (size_t looked = 0; low > 0 && looked < LOOK_BACK; looked++) {
		low--;
		if (address < map->list[low].end)
			return map->list[low].name;
	}
	return NULL;
}
