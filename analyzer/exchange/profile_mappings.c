/* SPDX-License-Identifier: MIT */
/* Mappings of a profile (profile.h). */
#include <stdlib.h>

#include "exchange/profile.h"

#define PAGE 4096u

static void note_location(struct profile_mapping *m, const struct location *l)
{
	m->functions |= l->function != NULL;
	m->files |= l->file != NULL;
	m->lines |= l->file && l->line;
	m->inlined |= l->inlined;
}

/* All of the module, as far as it was mapped. */
static void widen(struct profile_mapping *m, const struct image *image)
{
	if (!m->number || image->low >= image->high)
		return;
	m->start = m->limit && m->start < image->low ? m->start : image->low;
	m->limit = m->limit > image->high ? m->limit : image->high;
}

/* If one executable segment holds all that is known of the image, the mapping is that of this segment, as in the
 * process; what reads the program file expects it so. */
static bool take_segment(struct profile_mapping *m, struct symbols *symbols, uint32_t image)
{
	struct symbol_segment segment;

	if (!m->limit || !symbols || !symbols_segment(symbols, PLACE(image, m->low + 1), &segment) ||
	    m->high - segment.address >= segment.bytes || (segment.address - segment.offset) % PAGE)
		return false;
	uint64_t into = segment.address % PAGE;
	m->start = segment.address - into;
	m->offset = segment.offset - into;
	m->limit = (segment.address + segment.bytes + PAGE - 1) & -(uint64_t)PAGE;
	return true;
}

static void note_address(struct profile_mapping *m, uint64_t address)
{
	if (!m->limit || address < m->low)
		m->low = address;
	if (!m->limit || address > m->high)
		m->high = address;
	/* What lies outside of its module is the dump's fault; the mapping holds it all the same. */
	m->start = m->low & -(uint64_t)PAGE;
	m->limit = (m->high & -(uint64_t)PAGE) + PAGE;
}

static void measure(struct profile *p)
{
	const struct images *images = &p->report->images;

	for (size_t i = 0; i < p->places.count; i++) {
		const struct place_entry *entry = &p->places.list[i];
		struct profile_mapping *m = &p->mappings[PLACE_IMAGE(entry->place)];
		if (source_places_have(images, entry->place))
			continue; /* it has no addresses */
		note_address(m, image_place_call(entry->place));
		m->number = 1;
		for (uint32_t k = 0; k < entry->count; k++)
			note_location(m, place_entry_location(p->report, entry, k));
	}
	for (uint32_t i = 1; i < images->count; i++) {
		struct profile_mapping *m = &p->mappings[i];
		if (images->list[i].flags & DUMP_MODULE_MAIN)
			m->number = 1;
		if (!take_segment(m, p->report->symbols, i))
			widen(m, &images->list[i]);
	}
}

static void number(struct profile *p, uint32_t image)
{
	p->mapped[++p->mapped_count] = image;
	p->mappings[image].number = p->mapped_count;
}

void profile_find_mappings(struct profile *p)
{
	const struct images *images = &p->report->images;

	p->mappings = calloc(images->count, sizeof *p->mappings);
	p->mapped = calloc(images->count + 1u, sizeof *p->mapped);
	if (!p->mappings || !p->mapped) {
		p->error = -ENOMEM;
		return;
	}
	measure(p);
	for (int others = 0; others < 2; others++)
		for (uint32_t i = 1; i < images->count; i++)
			if (p->mappings[i].number && !!(images->list[i].flags & DUMP_MODULE_MAIN) != others)
				number(p, i);
	if (p->mappings[0].number || !p->mapped_count)
		number(p, 0);
}
