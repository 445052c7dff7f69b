/* SPDX-License-Identifier: MIT */
#include "census/allocators/mallocng.h"

#include <sys/mman.h>

#include "arch/address_bits.h"

#define WORDS (CENSUS_PAGE / 8)
#define AREA_AT 7u /* words from the secret to the first area */
#define AREA_HEADER 24u
#define DESCRIPTOR 40u
#define SLOTS_MAX ((CENSUS_PAGE - AREA_HEADER) / DESCRIPTOR)
#define UNIT 16u
#define CLASSES 48u
#define MAPPED_CLASS 63u /* one block with a mapping of its own */

/* malloc.c, in units. */
static const uint16_t class_units[CLASSES] = {
	1,   2,   3,   4,    5,    6,    7,    8,    9,    10,   12,   15,   18,   20,   25,   31,
	36,  42,  50,  63,   72,   84,   102,  127,  146,  170,  204,  255,  292,  340,  409,  511,
	584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191,
};

struct mallocng {
	struct other_heap *heap;
	const struct maps *maps;
	struct census_memory *memory;
	struct extents *extents;
	uint64_t secret, first; /* first area */
	unsigned held_count;
	struct other_size held[OTHER_SIZES]; /* slots that hold groups: no blocks of the program's */
};

/* meta.h: avail_mask and freed_mask; last_idx of 5 bits, freeable, sizeclass of 6, and the pages of its mapping. */
bool mallocng_group_of(struct mallocng_group *g, const uint64_t words[3])
{
	const uint64_t pages = words[2] >> 12;
	const unsigned last = words[2] & 31, size_class = words[2] >> 6 & 63;
	const uint32_t all = last == 31 ? UINT32_MAX : (2u << last) - 1, masks = (uint32_t)(words[1] | words[1] >> 32);

	if (!words[0] || words[0] % UNIT || words[0] >> ADDRESS_BITS || pages >> 35 ||
	    (size_class >= CLASSES && (size_class != MAPPED_CLASS || last || !pages)))
		return false;
	*g = (struct mallocng_group){ .start = words[0], .end = pages ? words[0] + pages * CENSUS_PAGE : 0 };
	g->slots = last + 1;
	g->used = g->slots - (unsigned)__builtin_popcount(masks & all);
	g->slot_bytes = !last && pages ? pages * CENSUS_PAGE - UNIT : (uint64_t)UNIT * class_units[size_class];
	return !pages || (words[0] % CENSUS_PAGE == 0 && g->slots * g->slot_bytes <= pages * CENSUS_PAGE);
}

/* The group of a descriptor, which leads back to it from its first word. */
static bool group_at(struct mallocng *m, uint64_t descriptor, struct mallocng_group *g)
{
	uint64_t words[3];

	return census_memory_read(m->memory, descriptor + 16, words, sizeof words) && mallocng_group_of(g, words) &&
	       census_memory_word(m->memory, g->start) == descriptor;
}

/* The group in whose slot one without a mapping lies, by the header in front of it; false: none, it was a gap of a
 * module. */
static bool outer_group(struct mallocng *m, const struct mallocng_group *inner, struct mallocng_group *outer)
{
	const uint64_t header = census_memory_word(m->memory, inner->start - 8);
	const uint64_t units = header >> 32 & 255 ? header & UINT32_MAX : header >> 48;
	const uint64_t group = inner->start - units * UNIT - UNIT;
	const uint64_t descriptor = census_memory_word(m->memory, group);

	return descriptor % 8 == 0 &&
	       census_memory_word(m->memory, descriptor - descriptor % CENSUS_PAGE) == m->secret &&
	       group_at(m, descriptor, outer) && outer->start == group;
}

static int count_mapped(struct mallocng *m, const struct mallocng_group *g, struct err *e)
{
	const uint64_t there = resident_pages_sum(m->memory->pages, g->start, g->end);
	const uint64_t used = g->used == g->slots ? there : g->used * g->slot_bytes;
	const uint64_t live = used < there ? used : there;

	other_heap_add(m->heap, g->slot_bytes, g->used, live, there - live);
	return extents_add(m->extents, &(struct extent){ g->start, g->end, REGION_ALLOCATOR, m->heap->name, 0 }, e);
}

static void add_held(struct mallocng *m, uint64_t slot_bytes)
{
	unsigned i = 0;

	while (i < m->held_count && m->held[i].bytes != slot_bytes)
		i++;
	if (i == OTHER_SIZES)
		return;
	m->held_count += i == m->held_count;
	m->held[i].bytes = slot_bytes;
	m->held[i].blocks++;
}

/* What the outer one counts as one live block is blocks, and room for more. */
static void count_inner(struct mallocng *m, const struct mallocng_group *g)
{
	const uint64_t bytes = g->used * g->slot_bytes;
	struct mallocng_group outer;

	if (!outer_group(m, g, &outer)) {
		other_heap_add(m->heap, g->slot_bytes, g->used, 0, 0);
		return;
	}
	const uint64_t free = outer.slot_bytes > bytes ? outer.slot_bytes - bytes : 0;
	other_heap_add(m->heap, g->slot_bytes, g->used, bytes, free);
	add_held(m, outer.slot_bytes);
}

/*
 * Takes slots that hold groups from the blocks of their size. A group may come or go between the moments in which it
 * and the one around it are read: what was not counted there cannot be taken away.
 */
static void take_held(struct mallocng *m)
{
	struct other_heap *h = m->heap;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < m->held_count; i++) {
		const struct other_size *held = &m->held[i];
		struct other_size *size = other_heap_size(h, held->bytes);
		const uint64_t blocks = size && size->blocks < held->blocks ? size->blocks : size ? held->blocks : 0;
		if (size)
			size->blocks -= blocks;
		h->live_blocks -= blocks;
		h->live_bytes -= blocks * held->bytes;
		h->lost_bytes += (held->blocks - blocks) * held->bytes;
		bytes += held->blocks * held->bytes;
	}
	const uint64_t free = bytes > h->live ? bytes - h->live : 0; /* not there, or not counted as live */
	h->live -= bytes - free;
	h->freed -= free < h->freed ? free : h->freed;
}

static int count_area(struct mallocng *m, uint64_t area, uint32_t slots, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < slots && i < SLOTS_MAX && rc == 0; i++) {
		const uint64_t descriptor = area + AREA_HEADER + (uint64_t)i * DESCRIPTOR;
		struct mallocng_group g;
		if (!group_at(m, descriptor, &g))
			continue;
		if (g.end)
			rc = count_mapped(m, &g, e);
		else
			count_inner(m, &g);
	}
	return rc;
}

/* Has the area the secret, and a descriptor whose group leads back to it? */
static bool is_area(struct mallocng *m, uint64_t area, uint64_t secret)
{
	struct mallocng_group g;
	uint64_t header[3];
	bool found = false;

	if (!area || area % CENSUS_PAGE || !census_memory_read(m->memory, area, header, sizeof header) ||
	    header[0] != secret || header[1] % CENSUS_PAGE || !(uint32_t)header[2] || (uint32_t)header[2] > SLOTS_MAX)
		return false;
	for (unsigned i = 0; i < (uint32_t)header[2] && !found; i++)
		found = group_at(m, area + AREA_HEADER + (uint64_t)i * DESCRIPTOR, &g);
	return found;
}

/* meta.h, struct malloc_context: the secret, init_done and others, the first area, and the last one. */
static bool is_context(struct mallocng *m, uint64_t at, uint64_t secret)
{
	uint64_t words[AREA_AT + 2];

	if (!secret || !census_memory_read(m->memory, at, words, sizeof words) || (uint32_t)words[1] != 1 ||
	    !is_area(m, words[AREA_AT], secret) || words[AREA_AT + 1] % CENSUS_PAGE ||
	    census_memory_word(m->memory, words[AREA_AT + 1]) != secret)
		return false;
	m->secret = secret;
	m->first = words[AREA_AT];
	return true;
}

static bool find_in(struct mallocng *m, const struct mapping *data)
{
	uint64_t words[WORDS];

	for (uint64_t at = resident_pages_next(m->memory->pages, data->start);
	     at < data->end && census_memory_in_time(m->memory);
	     at = resident_pages_next(m->memory->pages, at + CENSUS_PAGE))
		for (unsigned i = 0; i + 1 < WORDS && (i || census_memory_read(m->memory, at, words, sizeof words));
		     i++)
			if ((uint32_t)words[i + 1] == 1 && is_context(m, at + 8 * i, words[i]))
				return true;
	return false;
}

/* In the data of a module, or the zero data behind it. */
static bool find(void *context)
{
	struct mallocng *m = context;
	const struct mapping *before = NULL;
	bool found = false;

	for (size_t i = 0; i < m->maps->count && !found; i++) {
		const struct mapping *data = &m->maps->list[i];
		const bool module = data->inode || (before && before->end == data->start && before->inode);
		if (module && !data->shared && data->prot & PROT_WRITE && (data->inode || !data->path[0]))
			found = find_in(m, data);
		before = data;
	}
	return found;
}

/* Areas lead to each other, in what is the target's word: false where one was met before, soon after (R. P. Brent). */
struct met {
	uint64_t area, steps, until;
};

static bool is_new(struct met *met, uint64_t area)
{
	if (area == met->area)
		return false;
	if (met->steps++ == met->until)
		*met = (struct met){ .area = area, .until = 2 * met->until + 1 };
	return true;
}

int mallocng_take(struct other_heap *h, const struct maps *maps, struct census_memory *memory, struct extents *extents,
                  struct err *e)
{
	struct mallocng m = { .heap = h, .maps = maps, .memory = memory, .extents = extents };
	struct met met = { 0 };
	uint64_t header[3];
	int rc = 0;

	if (!other_heap_search(memory, find, &m))
		return 0;
	h->name = "musl";
	h->release = "1.2";
	for (uint64_t area = m.first; area && rc == 0 && !h->over; area = header[1]) {
		h->over = budget_work(&memory->budget, CENSUS_PAGE, ERR_IGNORED) < 0 ||
		          !census_memory_in_time(memory) || !is_new(&met, area);
		if (h->over)
			break;
		if (!census_memory_read(memory, area, header, sizeof header) || header[0] != m.secret) {
			h->lost_bytes += CENSUS_PAGE;
			break;
		}
		rc = count_area(&m, area, (uint32_t)header[2], e);
	}
	take_held(&m);
	return rc;
}
