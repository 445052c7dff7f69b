/* SPDX-License-Identifier: MIT */
/* The mappings that were made meanwhile, see mappings.h. */
#include "tables/mappings.h"

#include "payload.h"

/* The first word of an entry: where the mapping begins, with flags in the low bits, and its class; an entry that is
 * complete has a flag. */
#define ENTRY_FREE 0u
#define ENTRY_BUSY 1u
#define ENTRY_FILE 2u
#define ENTRY_SAMPLED 4u
#define ENTRY_PLAIN 8u
#define ENTRY_CLASS_SHIFT 4
#define ENTRY_FLAGS 4095u

#define PAGE_SHIFT 12
#define GROUP_BITS 9
#define GROUPS (1u << GROUP_BITS)
#define SPILLED_MAX 256u
#define GROUP_ENTRIES ((MAPPINGS_MAX - SPILLED_MAX) / GROUPS)

struct entry {
	uint64_t word; /* (atomic) released last */
	uint64_t end;  /* (atomic) */
};

static struct entry grouped[GROUPS][GROUP_ENTRIES];
static struct entry spilled[SPILLED_MAX]; /* those whose group is full */
/* (atomic) all entries behind so many are free */
static uint32_t grouped_used[GROUPS], spilled_used;
static uint64_t classes; /* (atomic) bit n: there were mappings of class n */

#ifdef MEMATTACH_HOSTED
uint64_t mappings_looked_at;
#define LOOKS_AT(count) __atomic_fetch_add(&mappings_looked_at, count, __ATOMIC_RELAXED)
#else
#define LOOKS_AT(count) ((void)0)
#endif

/* Entries that are searched together. */
struct place {
	struct entry *entries;
	uint32_t *used;
	uint32_t room;
};

static struct place group_place(uint32_t group)
{
	return (struct place){ grouped[group], &grouped_used[group], GROUP_ENTRIES };
}

static struct place spilled_place(void)
{
	return (struct place){ spilled, &spilled_used, SPILLED_MAX };
}

void mappings_init(void)
{
	if (!classes)
		return; /* their pages stay untouched */
	__builtin_memset(grouped, 0, sizeof(grouped));
	__builtin_memset(spilled, 0, sizeof(spilled));
	__builtin_memset(grouped_used, 0, sizeof(grouped_used));
	spilled_used = 0;
	classes = 0;
}

static uint32_t used_now(const uint32_t *used)
{
	return __atomic_load_n(used, __ATOMIC_RELAXED);
}

static bool entry_change(struct entry *entry, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&entry->word, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* The least n such that it has no more than 2^n pages. */
static uint32_t class_of(const struct mapping *m)
{
	uint64_t pages = (m->end - m->start) >> PAGE_SHIFT;

	return pages <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(pages - 1);
}

/* The number of the eight times as large part of the address space in which a mapping of the class begins. */
static uint64_t granule_of(uint32_t class, uint64_t address)
{
	return address >> (PAGE_SHIFT + 3 + class);
}

static uint32_t group_of(uint32_t class, uint64_t granule)
{
	return (uint32_t)((granule + (uint64_t) class * 0xD1B54A32D192ED03ull) * 0x9E3779B97F4A7C15ull >>
	                  (64 - GROUP_BITS));
}

/* Of an entry that is complete. */
static struct mapping mapping_of(uint64_t word, const struct entry *entry)
{
	return (struct mapping){
		.start = word & ~(uint64_t)ENTRY_FLAGS,
		.end = __atomic_load_n(&entry->end, __ATOMIC_RELAXED),
		.file = word & ENTRY_FILE,
		.sampled = word & ENTRY_SAMPLED,
		.plain = word & ENTRY_PLAIN,
	};
}

static void entry_free(struct entry *entry)
{
	__atomic_store_n(&entry->word, ENTRY_FREE, __ATOMIC_RELEASE);
}

static bool says_something(const struct mapping *m)
{
	return m->start < m->end && (m->file || m->sampled || m->plain);
}

/* Of the caller's entry, in the place of a class: what it is from now on; free if it says nothing. */
static void entry_set(struct entry *entry, const struct mapping *m, uint32_t class)
{
	if (!says_something(m)) {
		entry_free(entry);
		return;
	}
	__atomic_store_n(&entry->end, m->end, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->word,
	                 m->start | (m->file ? ENTRY_FILE : 0) | (m->sampled ? ENTRY_SAMPLED : 0) |
	                         (m->plain ? ENTRY_PLAIN : 0) | (uint64_t) class << ENTRY_CLASS_SHIFT,
	                 __ATOMIC_RELEASE);
}

/* A free entry, which is the caller's now; NULL: none. */
static struct entry *entry_get(struct place p)
{
	uint32_t used = used_now(p.used);

	LOOKS_AT(used);
	for (uint32_t i = 0; i < used; i++)
		if (__atomic_load_n(&p.entries[i].word, __ATOMIC_RELAXED) == ENTRY_FREE &&
		    entry_change(&p.entries[i], ENTRY_FREE, ENTRY_BUSY))
			return &p.entries[i];
	for (; used < p.room; used = used_now(p.used)) {
		uint32_t more = used;

		if (__atomic_compare_exchange_n(p.used, &more, used + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
		    entry_change(&p.entries[used], ENTRY_FREE, ENTRY_BUSY))
			return &p.entries[used];
	}
	return 0;
}

bool mappings_add(const struct mapping *mapping)
{
	uint32_t class = class_of(mapping);
	struct entry *entry = entry_get(group_place(group_of(class, granule_of(class, mapping->start))));

	if (!entry)
		entry = entry_get(spilled_place());
	if (!entry)
		return false;
	if (!(__atomic_load_n(&classes, __ATOMIC_RELAXED) >> class & 1))
		__atomic_fetch_or(&classes, 1ull << class, __ATOMIC_RELAXED);
	entry_set(entry, mapping, class);
	return true;
}

/* For those that have part of start … end; what an entry says is only sure once it is the caller's. */
struct search {
	uint64_t start, end;
	bool (*met)(const struct search *s, struct entry *entry, uint64_t word); /* true: the search is over */
	void *arg;
	mappings_taken taken; /* of mappings_take(), */
	uint32_t *lost;       /* too */
};

static bool search_place(const struct search *s, struct place p)
{
	uint32_t used = used_now(p.used);

	LOOKS_AT(used);
	for (uint32_t i = 0; i < used; i++) {
		uint64_t word = __atomic_load_n(&p.entries[i].word, __ATOMIC_ACQUIRE);
		if (word <= ENTRY_BUSY)
			continue;
		struct mapping m = mapping_of(word, &p.entries[i]);

		if (m.start < s->end && m.end > s->start && s->met(s, &p.entries[i], word))
			return true;
	}
	return false;
}

static bool search_all(const struct search *s)
{
	for (uint32_t i = 0; i < GROUPS; i++)
		if (search_place(s, group_place(i)))
			return true;
	return search_place(s, spilled_place());
}

static bool search(const struct search *s)
{
	uint64_t left = GROUPS; /* more are not looked at one by one */

	for (uint64_t rest = __atomic_load_n(&classes, __ATOMIC_RELAXED); rest; rest &= rest - 1) {
		uint32_t class = (uint32_t)__builtin_ctzll(rest);
		uint64_t bytes = 1ull << (class + PAGE_SHIFT);
		uint64_t first = granule_of(class, s->start > bytes ? s->start - bytes + 1 : 0);
		uint64_t last = granule_of(class, s->end - 1);

		if (last - first >= left)
			return search_all(s);
		left -= last - first + 1;
		for (uint64_t granule = first; granule <= last; granule++)
			if (search_place(s, group_place(group_of(class, granule))))
				return true;
	}
	return search_place(s, spilled_place());
}

static bool on_found(const struct search *s, struct entry *entry, uint64_t word)
{
	struct mapping *m = s->arg;

	*m = mapping_of(word, entry);
	return !m->plain;
}

bool mappings_find(uint64_t start, uint64_t end, struct mapping *mapping)
{
	mapping->end = 0;
	return search(&(struct search){ .start = start, .end = end, .met = on_found, .arg = mapping }) || mapping->end;
}

struct counting {
	uint32_t count, most;
};

static bool on_counted(const struct search *s, struct entry *entry, uint64_t word)
{
	struct counting *c = s->arg;

	(void)entry;
	(void)word;
	return ++c->count == c->most;
}

uint32_t mappings_count(uint64_t start, uint64_t end, uint32_t most)
{
	struct counting c = { 0, most };

	search(&(struct search){ .start = start, .end = end, .met = on_counted, .arg = &c });
	return c.count;
}

/* What is left at the beginning of the entry, which is the caller's, or at the end where it would be looked for in the
 * same place. It goes where its class belongs, or stays where there is no room: a group is for few of each class. */
static void entry_keep(struct entry *entry, const struct mapping *rest, uint32_t class)
{
	if (says_something(rest) && class_of(rest) != class && mappings_add(rest))
		entry_free(entry);
	else
		entry_set(entry, rest, class);
}

static void entry_shrink(struct entry *entry, const struct mapping *was, uint32_t class, const struct search *s,
                         bool sampled)
{
	struct mapping before = { was->start, s->start > was->start ? s->start : was->start, was->file, sampled,
		                  was->plain };
	struct mapping after = { s->end, s->end < was->end ? was->end : s->end, was->file, sampled, was->plain };

	if (before.start == before.end && granule_of(class, after.start) == granule_of(class, was->start)) {
		entry_keep(entry, &after, class);
		return;
	}
	entry_keep(entry, &before, class);
	if (says_something(&after) && !mappings_add(&after))
		++*s->lost; /* the live table alone knows it */
}

static bool on_take(const struct search *s, struct entry *entry, uint64_t word)
{
	uint32_t class = (uint32_t)(word & ENTRY_FLAGS) >> ENTRY_CLASS_SHIFT;

	if (!entry_change(entry, word, ENTRY_BUSY))
		return false;
	struct mapping was = mapping_of(word, entry);

	if (was.end <= s->start) /* it was another one's meanwhile, of the same beginning */
		entry_set(entry, &was, class);
	else
		entry_shrink(entry, &was, class, s, s->taken(s->arg, &was, s->start, s->end) && was.sampled);
	return false;
}

uint32_t mappings_take(uint64_t start, uint64_t end, mappings_taken taken, void *arg)
{
	uint32_t lost = 0;

	search(&(struct search){
		.start = start, .end = end, .met = on_take, .arg = arg, .taken = taken, .lost = &lost });
	return lost;
}
