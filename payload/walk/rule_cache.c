/* SPDX-License-Identifier: MIT */
/* Unwind rules from the tables, see rule_cache.h. */
#include "walk/rule_cache.h"

#include "control.h"
#include "session_block.h"

struct unwind_cache_entry unwind_cache[1u << UNWIND_CACHE_LOG2] PAYLOAD_PAGES;

_Static_assert(sizeof(struct unwind_cache_entry) * UNWIND_CACHE_WAYS == 64, "the entries of a line");

void unwind_view_open(struct unwind_view *view, uint64_t offset)
{
	const struct unwind_index *index;
	uint64_t room, modules_bytes;

	*view = (struct unwind_view){ 0 };
	if (!offset || offset % 8 || offset > payload.tables_bytes || payload.tables_bytes - offset < sizeof(*index))
		return;
	index = (const void *)(payload.tables + offset);
	room = payload.tables_bytes - offset - sizeof(*index);
	modules_bytes = (uint64_t)index->module_count * sizeof(struct unwind_module);
	if (modules_bytes > room || (uint64_t)index->range_count * sizeof(struct unwind_range) > room - modules_bytes)
		return;
	view->modules = (const void *)(index + 1);
	view->ranges = (const void *)(view->modules + index->module_count);
	view->module_count = index->module_count;
	view->range_count = index->range_count;
	view->generation = index->generation;
}

static const struct unwind_module *module_find(const struct unwind_view *view, uint64_t pc)
{
	uint32_t low = 0, high = view->module_count;

	/* modules below low start at or below pc, modules from high on above it */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (view->modules[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low && pc < view->modules[low - 1].end ? &view->modules[low - 1] : 0;
}

static uint32_t module_rule(const struct unwind_module *module, uint64_t pc)
{
	uint64_t bytes = (uint64_t)module->row_count * 2 * sizeof(uint32_t);
	uint64_t relative = pc - module->start;
	uint32_t low = 0, high = module->row_count;
	const uint32_t *pcs, *rules;

	if (!module->row_count || module->rows_offset % 4 || module->rows_offset > payload.tables_bytes ||
	    bytes > payload.tables_bytes - module->rows_offset || relative > UINT32_MAX)
		return UNWIND_NONE;
	pcs = (const void *)(payload.tables + module->rows_offset);
	rules = pcs + module->row_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (pcs[middle] <= relative)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? rules[low - 1] : UNWIND_NONE;
}

static uint64_t rule_search(const struct unwind_view *view, uint64_t pc)
{
	const struct unwind_module *module = module_find(view, pc);
	uint32_t rule;

	if (!module) {
		__atomic_store_n(&session.new_code, pc, __ATOMIC_RELAXED);
		return UNWIND_NONE;
	}
	rule = module_rule(module, pc);
	return (uint32_t)(UNWIND_N_BYTES(rule) / 8) | (uint64_t)UNWIND_FP_FIELD(rule) << 32 |
	       (uint64_t)UNWIND_KIND(rule) << 42 | (uint64_t)(uint16_t)module->id << 48;
}

/* A call is looked for one byte before its return address. A signal trampoline begins there, so it may not be found
 * that way. */
uint64_t unwind_view_search(const struct unwind_view *view, uint64_t pc)
{
	uint64_t found = rule_search(view, pc - 1), at;

	if (UNWIND_FOUND_KIND(found) == UNWIND_NONE && found) {
		at = rule_search(view, pc);
		if (UNWIND_FOUND_KIND(at) == UNWIND_SIGNAL)
			return at;
	}
	return found;
}

static inline bool entry_load(const struct unwind_cache_entry *entry, uint64_t *found, uint64_t *mixed)
{
	*found = __atomic_load_n(&entry->found, __ATOMIC_RELAXED);
	*mixed = __atomic_load_n(&entry->mixed, __ATOMIC_RELAXED);
	return *found | *mixed;
}

static inline void entry_store(struct unwind_cache_entry *entry, uint64_t found, uint64_t mixed)
{
	__atomic_store_n(&entry->found, found, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->mixed, mixed, __ATOMIC_RELAXED);
}

/* Another entry of the line: the first that is empty, else each in its turn. */
static struct unwind_cache_entry *entry_beside(uint32_t own)
{
	static uint32_t turn; /* (atomic) */
	uint32_t way = 1;
	uint64_t found, mixed;

	while (way < UNWIND_CACHE_WAYS && entry_load(&unwind_cache[own ^ way], &found, &mixed))
		way++;
	if (way == UNWIND_CACHE_WAYS)
		way = 1 + __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % (UNWIND_CACHE_WAYS - 1);
	return &unwind_cache[own ^ way];
}

uint64_t unwind_view_remember(const struct unwind_view *view, uint64_t pc, uint64_t key)
{
	const uint32_t own = unwind_cache_entry_index(pc);
	uint64_t found, mixed, other_found, other_mixed;
	const bool taken = entry_load(&unwind_cache[own], &other_found, &other_mixed);

	for (uint32_t way = 1; way < UNWIND_CACHE_WAYS; way++) {
		entry_load(&unwind_cache[own ^ way], &found, &mixed);
		if ((mixed ^ found) == key) {
			entry_store(&unwind_cache[own ^ way], other_found, other_mixed);
			entry_store(&unwind_cache[own], found, mixed);
			return found;
		}
	}
	if (taken)
		entry_store(entry_beside(own), other_found, other_mixed);
	found = unwind_view_search(view, pc);
	entry_store(&unwind_cache[own], found, key ^ found);
	return found;
}

const struct unwind_range *unwind_view_range(const struct unwind_view *view, uint64_t address, uint32_t flags)
{
	uint32_t low = 0, high = view->range_count;
	const struct unwind_range *range;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (view->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	range = &view->ranges[low - 1];
	return address < range->end && (range->flags & flags) == flags ? range : 0;
}
