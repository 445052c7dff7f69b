/* SPDX-License-Identifier: MIT */
#include "debug_info/symbol_ranges.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/sorted.h"

/* In libc there are about a hundred. */
#define BORDERS_MAX 131072u

static bool add_range(struct symbol_ranges *ranges, uint64_t start, uint64_t end)
{
	if (!grow_list(ranges->list, ranges->count))
		return false;
	ranges->list[ranges->count++] = (struct symbol_range){ start, end };
	return true;
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;

	return (*x > *y) - (*x < *y);
}

struct borders {
	uint64_t *list;
	size_t count;
	size_t *left; /* how many more may be looked at, for all functions */
};

static bool add_border(struct borders *borders, uint64_t address, uint64_t low, uint64_t high)
{
	if (!*borders->left)
		return false;
	--*borders->left;
	if (address < low || address > high)
		return true;
	if (!grow_list(borders->list, borders->count))
		return false;
	borders->list[borders->count++] = address;
	return true;
}

/* All places between low and high where another symbol may be the one that is found; low is the start of the symbol s.
 */
static bool find_borders(const struct symbol_table *table, const struct symbol *s, uint64_t low, uint64_t high,
                         struct borders *borders)
{
	bool good = add_border(borders, low, low, high) && add_border(borders, high, low, high);

	for (const struct symbol *i = s; good && i >= table->list && i->reach > low; i--)
		good = add_border(borders, i->end, low, high);
	for (const struct symbol *i = s; good && i < table->list + table->count && i->start < high; i++)
		good = add_border(borders, i->start, low, high) && add_border(borders, i->end, low, high);
	if (good && borders->count)
		qsort(borders->list, borders->count, sizeof *borders->list, compare_addresses);
	return good;
}

/* Of the extent of one function of the allocator, what no other symbol inside it has. */
static bool add_function(const struct symbol_table *table, const struct symbol *s, size_t *left,
                         struct symbol_ranges *ranges)
{
	uint64_t high = s->end > s->start ? s->end : s->start + SYMBOL_LABEL_REACH;
	struct borders borders = { .left = left };
	bool good = find_borders(table, s, s->start, high, &borders);

	for (size_t i = 1; good && i < borders.count; i++) {
		uint64_t from = borders.list[i - 1];
		const struct symbol *found = from < borders.list[i] ? symbol_table_find(table, from) : NULL;
		if (found && found->allocator)
			good = add_range(ranges, from, borders.list[i]);
	}
	free(borders.list);
	return good;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct symbol_range *x = a;
	const struct symbol_range *y = b;

	return compare_addresses(&x->start, &y->start);
}

static void merge_ranges(struct symbol_ranges *ranges)
{
	size_t kept = 0;

	if (ranges->count)
		qsort(ranges->list, ranges->count, sizeof *ranges->list, compare_ranges);
	for (size_t i = 0; i < ranges->count; i++) {
		struct symbol_range *last = kept ? &ranges->list[kept - 1] : NULL;
		if (!last || ranges->list[i].start > last->end)
			ranges->list[kept++] = ranges->list[i];
		else if (ranges->list[i].end > last->end)
			last->end = ranges->list[i].end;
	}
	ranges->count = kept;
}

int symbol_ranges_find(struct symbol_ranges *ranges, const struct symbol_table *table)
{
	struct symbol_ranges all = { .known = true };
	size_t left = BORDERS_MAX;

	for (size_t i = 0; i < table->count; i++) {
		if (table->list[i].allocator && !add_function(table, &table->list[i], &left, &all)) {
			symbol_ranges_done(&all);
			return left ? -ENOMEM : -E2BIG;
		}
	}
	merge_ranges(&all);
	*ranges = all;
	return 0;
}

bool symbol_ranges_have(const struct symbol_ranges *ranges, uint64_t address)
{
	size_t low = SORTED_UP_TO(ranges->list, ranges->count, start, address);

	return low && address < ranges->list[low - 1].end;
}

void symbol_ranges_done(struct symbol_ranges *ranges)
{
	free(ranges->list);
	*ranges = (struct symbol_ranges){ 0 };
}
