/* SPDX-License-Identifier: MIT */
#include "exchange/pprof_tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/build_id.h"
#include "base/cleanup.h"
#include "report/folding.h"

enum {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINED = 10,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

/* Readers look for no file behind a name in brackets. */
#define NO_MODULE "[no module]"
#define ADDRESSES (1ull << 48)
#define PAGE 4096u
#define DROP_FRAMES_MAX 200u

void pprof_put(struct pprof *p, unsigned field)
{
	proto_clear(&p->part);
	proto_message(&p->part, field, &p->message);
	if (p->part.failed)
		p->error = -ENOMEM;
	else
		gzip_put(&p->gzip, p->part.bytes, p->part.used);
	proto_clear(&p->message);
	proto_clear(&p->part);
}

uint32_t pprof_string(struct pprof *p, const char *text)
{
	const char *clean = name_clean(&p->buffer, text);
	uint32_t number = 0;

	if (!clean || string_table_add(&p->strings, clean, &number))
		p->error = -ENOMEM;
	return number;
}

void pprof_init_gaps(struct pprof *p)
{
	for (size_t i = 0; i < p->rows.count; i++) {
		enum output_gap gap = output_rows_gap(&p->rows, i);
		if (gap && !p->gaps[gap])
			p->gaps[gap] = ++p->gap_count;
	}
}

uint64_t pprof_location(struct pprof *p, uint64_t place)
{
	const struct place_entry *entry = place_table_get(&p->places, place);

	if (!entry) {
		p->error = -ENOMEM;
		return 1;
	}
	return p->gap_count + 1u + (uint64_t)(entry - p->places.list);
}

/* ---- mappings ---- */

static void note_location(struct pprof_mapping *m, const struct location *l)
{
	m->functions |= l->function != NULL;
	m->files |= l->file != NULL;
	m->lines |= l->file && l->line;
	m->inlined |= l->inlined;
}

/* All of the module, as far as it was mapped. */
static void widen(struct pprof_mapping *m, const struct image *image)
{
	if (!m->number || image->low >= image->high)
		return;
	m->start = m->limit && m->start < image->low ? m->start : image->low;
	m->limit = m->limit > image->high ? m->limit : image->high;
}

/* If one executable segment holds all that is known of the image, the mapping is that of this segment, as in the
 * process; what reads the program file expects it so. */
static bool take_segment(struct pprof_mapping *m, struct symbols *symbols, uint32_t image)
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

static void note_address(struct pprof_mapping *m, uint64_t address)
{
	if (!m->limit || address < m->low)
		m->low = address;
	if (!m->limit || address > m->high)
		m->high = address;
	/* What lies outside of its module is the dump's fault; the mapping holds it all the same. */
	m->start = m->low & -(uint64_t)PAGE;
	m->limit = (m->high & -(uint64_t)PAGE) + PAGE;
}

static void find_mappings(struct pprof *p)
{
	const struct images *images = &p->report->images;

	for (size_t i = 0; i < p->places.count; i++) {
		const struct place_entry *entry = &p->places.list[i];
		struct pprof_mapping *m = &p->mappings[PLACE_IMAGE(entry->place)];
		if (python_places_have(images, entry->place))
			continue; /* it has no addresses */
		note_address(m, place_call(entry->place));
		m->number = 1;
		for (uint32_t k = 0; k < entry->count; k++)
			note_location(m, place_location(p->report, entry, k));
	}
	for (uint32_t i = 1; i < images->count; i++) {
		struct pprof_mapping *m = &p->mappings[i];
		if (images->list[i].flags & DUMP_MODULE_MAIN)
			m->number = 1;
		if (!take_segment(m, p->report->symbols, i))
			widen(m, &images->list[i]);
	}
}

static void put_mapping(struct pprof *p, uint32_t i)
{
	const struct image *image = &p->report->images.list[i];
	const struct pprof_mapping *m = &p->mappings[i];
	char hex[BUILD_ID_TEXT];

	build_id_format(image->build_id, image->build_id_bytes, hex);
	proto_number(&p->message, MAPPING_ID, m->number);
	proto_number(&p->message, MAPPING_START, m->start);
	proto_number(&p->message, MAPPING_LIMIT, m->limit ? m->limit : ADDRESSES);
	proto_number(&p->message, MAPPING_OFFSET, m->offset);
	proto_number(&p->message, MAPPING_FILE, pprof_string(p, i ? image->path : NO_MODULE));
	proto_number(&p->message, MAPPING_BUILD_ID, pprof_string(p, hex));
	proto_number(&p->message, MAPPING_HAS_FUNCTIONS, m->functions);
	proto_number(&p->message, MAPPING_HAS_FILES, m->files);
	proto_number(&p->message, MAPPING_HAS_LINES, m->lines);
	proto_number(&p->message, MAPPING_HAS_INLINED, m->inlined);
	pprof_put(p, PROFILE_MAPPING);
}

/* The program, then the others, then what is in no module. */
static void put_mappings(struct pprof *p)
{
	const struct images *images = &p->report->images;
	uint64_t number = 0;

	find_mappings(p);
	for (int others = 0; others < 2; others++) {
		for (uint32_t i = 1; i < images->count; i++) {
			if (!p->mappings[i].number || !!(images->list[i].flags & DUMP_MODULE_MAIN) == others)
				continue;
			p->mappings[i].number = ++number;
			put_mapping(p, i);
		}
	}
	if (p->mappings[0].number || !number) {
		p->mappings[0].number = ++number;
		put_mapping(p, 0);
	}
}

/* ---- functions and locations ---- */

/* The number of a function; a new one is put at once. */
static uint64_t function_number(struct pprof *p, uint32_t name, uint32_t file)
{
	uint64_t key = (uint64_t)name << 32 | file;
	const uint32_t *known = map_find(&p->function_of, key);
	struct proto *m = &p->packed; /* p->message is that of the location */

	if (known)
		return *known;
	if (map_put(&p->function_of, key, ++p->function_count))
		p->error = -ENOMEM;
	proto_clear(m);
	proto_number(m, FUNCTION_ID, p->function_count);
	proto_number(m, FUNCTION_NAME, name);
	proto_number(m, FUNCTION_SYSTEM_NAME, name);
	proto_number(m, FUNCTION_FILE, file);
	proto_clear(&p->part);
	proto_message(&p->part, PROFILE_FUNCTION, m);
	if (p->part.failed)
		p->error = -ENOMEM;
	else
		gzip_put(&p->gzip, p->part.bytes, p->part.used);
	return p->function_count;
}

static void put_line(struct pprof *p, uint32_t name, const struct location *l)
{
	uint32_t file = l && l->file ? pprof_string(p, l->file) : 0;
	uint64_t function = function_number(p, name, file);

	proto_clear(&p->packed);
	proto_number(&p->packed, LINE_FUNCTION, function);
	proto_number(&p->packed, LINE_NUMBER, file && l->line > 0 ? (uint64_t)l->line : 0);
	proto_message(&p->message, LOCATION_LINE, &p->packed);
}

static void put_gap(struct pprof *p, enum output_gap gap)
{
	uint32_t name = pprof_string(p, output_gap_name(&p->rows, gap));

	proto_number(&p->message, LOCATION_ID, p->gaps[gap]);
	proto_number(&p->message, LOCATION_MAPPING, 1);
	put_line(p, name, NULL);
	pprof_put(p, PROFILE_LOCATION);
}

static void put_location(struct pprof *p, size_t i)
{
	const struct place_entry *entry = &p->places.list[i];

	proto_number(&p->message, LOCATION_ID, p->gap_count + 1u + i);
	if (!python_places_have(&p->report->images, entry->place)) {
		proto_number(&p->message, LOCATION_MAPPING, p->mappings[PLACE_IMAGE(entry->place)].number);
		proto_number(&p->message, LOCATION_ADDRESS, place_call(entry->place));
	}
	for (uint32_t k = 0; k < entry->count; k++) {
		const struct location *l = place_location(p->report, entry, k);
		const char *text = name_frame(&p->buffer, p->report, entry->place, l);
		uint32_t name = 0;
		if (!text || string_table_add(&p->strings, text, &name))
			p->error = -ENOMEM;
		put_line(p, name, l);
	}
	pprof_put(p, PROFILE_LOCATION);
}

/* What of a name its readers match: without the parameters. */
static size_t matched_bytes(const char *name)
{
	static const char *const reserved[] = { "(anonymous namespace)", "()" };
	const char *s = name;

	while ((s = strchr(s, '('))) {
		bool kept = !strncmp(s, reserved[0], strlen(reserved[0])) ||
		            (s - name >= 8 && !strncmp(s - 8, "operator()", 10));
		if (!kept)
			return (size_t)(s - name);
		s++;
	}
	return strlen(name);
}

static void put_escaped(const char *name, FILE *out)
{
	size_t n = matched_bytes(name);

	for (size_t i = 0; i < n; i++) {
		if (strchr("\\.+*?()|[]{}^$", name[i]))
			putc('\\', out);
		putc(name[i], out);
	}
}

/* Functions of allocators, which the readers leave out with all that they call. "": there are none. */
static int write_drop_frames(const struct pprof *p, FILE *out)
{
	struct string_table seen = { 0 };
	uint32_t number;
	int s = 0;

	for (size_t i = 0; !s && i < p->places.count && seen.count < DROP_FRAMES_MAX; i++) {
		const struct place_entry *entry = &p->places.list[i];
		for (uint32_t k = 0; !s && k < entry->count; k++) {
			const struct location *l = place_location(p->report, entry, k);
			const char *kind = folding_kind(p->report, entry->place, l);
			uint32_t known = seen.count;
			if (!l->function || !kind || strcmp(kind, "allocator") != 0)
				continue;
			s = string_table_add(&seen, l->function, &number);
			if (s || seen.count == known)
				continue;
			fputs(known ? "|" : "", out);
			put_escaped(l->function, out);
		}
	}
	string_table_done(&seen);
	return s;
}

static void put_drop_frames(struct pprof *p)
{
	AUTO_FREE char *text = NULL;
	size_t bytes = 0;
	FILE *out = p->report->options.show_std ? NULL : open_memstream(&text, &bytes);
	int s = out ? write_drop_frames(p, out) : 0;

	if ((out && fclose(out)) || s) {
		p->error = -ENOMEM;
		return;
	}
	proto_clear(&p->part);
	if (bytes)
		proto_number(&p->part, PROFILE_DROP_FRAMES, pprof_string(p, text));
	if (!p->part.failed)
		gzip_put(&p->gzip, p->part.bytes, p->part.used);
}

void pprof_put_tables(struct pprof *p)
{
	p->mappings = calloc(p->report->images.count, sizeof *p->mappings);
	if (!p->mappings) {
		p->error = -ENOMEM;
		return;
	}
	put_mappings(p);
	for (uint32_t number = 1; number <= p->gap_count; number++)
		for (enum output_gap gap = OUTPUT_UNKNOWN; gap < OUTPUT_GAPS; gap++)
			if (p->gaps[gap] == number)
				put_gap(p, gap);
	for (size_t i = 0; !p->error && i < p->places.count; i++)
		put_location(p, i);
	put_drop_frames(p);
	for (uint32_t i = 0; i < p->strings.count && !p->error; i++) {
		proto_clear(&p->part);
		proto_string(&p->part, PROFILE_STRING, p->strings.list[i]);
		gzip_put(&p->gzip, p->part.bytes, p->part.used);
	}
}
