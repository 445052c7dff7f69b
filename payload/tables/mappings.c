/* SPDX-License-Identifier: MIT */
/* The mappings that were made meanwhile, see mappings.h. */
#include "tables/mappings.h"

#include "payload.h"

/* The first word of an entry: where the mapping begins, with flags in the low bits; an entry that is complete has one.
 */
#define ENTRY_FREE 0u
#define ENTRY_BUSY 1u
#define ENTRY_FILE 2u
#define ENTRY_SAMPLED 4u
#define ENTRY_FLAGS 4095u

struct entry {
	uint64_t word; /* (atomic) released last */
	uint64_t end;  /* (atomic) */
};

static struct entry entries[MAPPINGS_MAX];
static uint32_t entries_used; /* (atomic) all behind these are free */

void mappings_init(void)
{
	__builtin_memset(entries, 0, entries_used * sizeof(entries[0]));
	entries_used = 0;
}

static uint32_t used_now(void)
{
	return __atomic_load_n(&entries_used, __ATOMIC_RELAXED);
}

static bool entry_change(struct entry *entry, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&entry->word, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static uint64_t word_of(const struct mapping *m)
{
	return m->start | (m->file ? ENTRY_FILE : 0) | (m->sampled ? ENTRY_SAMPLED : 0);
}

/* Of an entry that is complete. */
static struct mapping mapping_of(uint64_t word, const struct entry *entry)
{
	return (struct mapping){
		.start = word & ~(uint64_t)ENTRY_FLAGS,
		.end = __atomic_load_n(&entry->end, __ATOMIC_RELAXED),
		.file = word & ENTRY_FILE,
		.sampled = word & ENTRY_SAMPLED,
	};
}

/* Of the caller's entry: what it is from now on; free if it says nothing. */
static void entry_set(struct entry *entry, const struct mapping *m)
{
	if (m->start == m->end || !(m->file || m->sampled)) {
		__atomic_store_n(&entry->word, ENTRY_FREE, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(&entry->end, m->end, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->word, word_of(m), __ATOMIC_RELEASE);
}

/* A free entry, which is the caller's now; NULL: none. */
static struct entry *entry_get(void)
{
	uint32_t used = used_now();

	for (uint32_t i = 0; i < used; i++)
		if (__atomic_load_n(&entries[i].word, __ATOMIC_RELAXED) == ENTRY_FREE &&
		    entry_change(&entries[i], ENTRY_FREE, ENTRY_BUSY))
			return &entries[i];
	for (; used < MAPPINGS_MAX; used = used_now()) {
		uint32_t more = used;

		if (__atomic_compare_exchange_n(&entries_used, &more, used + 1, false, __ATOMIC_RELAXED,
		                                __ATOMIC_RELAXED) &&
		    entry_change(&entries[used], ENTRY_FREE, ENTRY_BUSY))
			return &entries[used];
	}
	return 0;
}

bool mappings_add(const struct mapping *mapping)
{
	struct entry *entry = entry_get();

	if (!entry)
		return false;
	entry_set(entry, mapping);
	return true;
}

/* Does the entry have part of start … end? What it says is only sure once it is the caller's. */
static bool meets(struct entry *entry, uint64_t start, uint64_t end, uint64_t *word)
{
	*word = __atomic_load_n(&entry->word, __ATOMIC_ACQUIRE);
	if (*word <= ENTRY_BUSY)
		return false;
	struct mapping m = mapping_of(*word, entry);

	return m.start < end && m.end > start;
}

bool mappings_find(uint64_t address, struct mapping *mapping)
{
	uint32_t used = used_now();
	uint64_t word;

	for (uint32_t i = 0; i < used; i++)
		if (meets(&entries[i], address, address + 1, &word)) {
			*mapping = mapping_of(word, &entries[i]);
			return true;
		}
	return false;
}

bool mappings_remove(const struct mapping *mapping)
{
	uint32_t used = used_now();

	for (uint32_t i = 0; i < used; i++)
		if (entry_change(&entries[i], word_of(mapping), ENTRY_BUSY)) {
			__atomic_store_n(&entries[i].word, ENTRY_FREE, __ATOMIC_RELEASE);
			return true;
		}
	return false;
}

/* What is left of the entry, which is the caller's. */
static void entry_shrink(struct entry *entry, const struct mapping *was, uint64_t start, uint64_t end, bool sampled)
{
	struct mapping before = { was->start, start > was->start ? start : was->start, was->file, sampled };
	struct mapping after = { end, end < was->end ? was->end : end, was->file, sampled };

	entry_set(entry, &before);
	if (after.start < after.end && (after.file || after.sampled))
		mappings_add(&after); /* else the live table alone knows it */
}

void mappings_take(uint64_t start, uint64_t end, mappings_taken taken, void *arg)
{
	uint32_t used = used_now();
	uint64_t word;

	for (uint32_t i = 0; i < used; i++) {
		if (!meets(&entries[i], start, end, &word) || !entry_change(&entries[i], word, ENTRY_BUSY))
			continue;
		struct mapping was = mapping_of(word, &entries[i]);

		if (was.end <= start) /* it was another one's meanwhile, of the same beginning */
			entry_set(&entries[i], &was);
		else
			entry_shrink(&entries[i], &was, start, end, was.sampled && taken(arg, &was, start, end));
	}
}
