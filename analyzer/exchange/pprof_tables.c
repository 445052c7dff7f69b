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

#define DROP_FRAMES_MAX 200u

void pprof_put(struct pprof *p, unsigned field)
{
	proto_clear(&p->part);
	proto_message(&p->part, field, &p->message);
	if (p->part.failed)
		p->base.error = -ENOMEM;
	else
		gzip_put(&p->gzip, p->part.bytes, p->part.used);
	proto_clear(&p->message);
	proto_clear(&p->part);
}

/* ---- mappings ---- */

static void put_mapping(struct pprof *p, uint32_t i)
{
	const struct image *image = &p->base.report->images.list[i];
	const struct profile_mapping *m = &p->base.mappings[i];
	char hex[BUILD_ID_TEXT];

	build_id_format(image->build_id, image->build_id_bytes, hex);
	proto_number(&p->message, MAPPING_ID, m->number);
	proto_number(&p->message, MAPPING_START, m->start);
	proto_number(&p->message, MAPPING_LIMIT, m->limit ? m->limit : PROFILE_ADDRESSES);
	proto_number(&p->message, MAPPING_OFFSET, m->offset);
	proto_number(&p->message, MAPPING_FILE, profile_string(&p->base, i ? image->path : PROFILE_NO_MODULE));
	proto_number(&p->message, MAPPING_BUILD_ID, profile_string(&p->base, hex));
	proto_number(&p->message, MAPPING_HAS_FUNCTIONS, m->functions);
	proto_number(&p->message, MAPPING_HAS_FILES, m->files);
	proto_number(&p->message, MAPPING_HAS_LINES, m->lines);
	proto_number(&p->message, MAPPING_HAS_INLINED, m->inlined);
	pprof_put(p, PROFILE_MAPPING);
}

static void put_mappings(struct pprof *p)
{
	profile_find_mappings(&p->base);
	for (uint32_t number = 1; !p->base.error && number <= p->base.mapped_count; number++)
		put_mapping(p, p->base.mapped[number]);
}

/* ---- functions and locations ---- */

/* The number of a function; a new one is put at once. */
static uint64_t function_number(struct pprof *p, uint32_t name, uint32_t file)
{
	struct proto *m = &p->packed; /* p->message is that of the location */
	bool fresh;
	uint32_t number = profile_function(&p->base, name, file, &fresh);

	if (!fresh)
		return number;
	proto_clear(m);
	proto_number(m, FUNCTION_ID, number);
	proto_number(m, FUNCTION_NAME, name);
	proto_number(m, FUNCTION_SYSTEM_NAME, name);
	proto_number(m, FUNCTION_FILE, file);
	proto_clear(&p->part);
	proto_message(&p->part, PROFILE_FUNCTION, m);
	if (p->part.failed)
		p->base.error = -ENOMEM;
	else
		gzip_put(&p->gzip, p->part.bytes, p->part.used);
	return number;
}

static void put_line(struct pprof *p, uint32_t name, const struct location *l)
{
	uint32_t file = l && l->file ? profile_string(&p->base, l->file) : 0;
	uint64_t function = function_number(p, name, file);

	proto_clear(&p->packed);
	proto_number(&p->packed, LINE_FUNCTION, function);
	proto_number(&p->packed, LINE_NUMBER, file && l->line > 0 ? (uint64_t)l->line : 0);
	proto_message(&p->message, LOCATION_LINE, &p->packed);
}

static void put_gap(struct pprof *p, enum output_gap gap)
{
	uint32_t name = profile_string(&p->base, output_gap_name(&p->base.rows, gap));

	proto_number(&p->message, LOCATION_ID, p->base.gaps[gap]);
	proto_number(&p->message, LOCATION_MAPPING, 1);
	put_line(p, name, NULL);
	pprof_put(p, PROFILE_LOCATION);
}

static void put_location(struct pprof *p, size_t i)
{
	const struct place_entry *entry = &p->base.places.list[i];

	proto_number(&p->message, LOCATION_ID, p->base.gap_count + 1u + i);
	if (!source_places_have(&p->base.report->images, entry->place)) {
		proto_number(&p->message, LOCATION_MAPPING, p->base.mappings[PLACE_IMAGE(entry->place)].number);
		proto_number(&p->message, LOCATION_ADDRESS, image_place_call(entry->place));
	}
	for (uint32_t k = 0; k < entry->count; k++) {
		const struct location *l = place_entry_location(p->base.report, entry, k);
		put_line(p, profile_frame_name(&p->base, entry, l), l);
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

	for (size_t i = 0; !s && i < p->base.places.count && seen.count < DROP_FRAMES_MAX; i++) {
		const struct place_entry *entry = &p->base.places.list[i];
		for (uint32_t k = 0; !s && k < entry->count; k++) {
			const struct location *l = place_entry_location(p->base.report, entry, k);
			const char *kind = folding_kind(p->base.report, entry->place, l);
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
	FILE *out = p->base.report->options.show_std ? NULL : open_memstream(&text, &bytes);
	int s = out ? write_drop_frames(p, out) : 0;

	if ((out && fclose(out)) || s) {
		p->base.error = -ENOMEM;
		return;
	}
	proto_clear(&p->part);
	if (bytes)
		proto_number(&p->part, PROFILE_DROP_FRAMES, profile_string(&p->base, text));
	if (!p->part.failed)
		gzip_put(&p->gzip, p->part.bytes, p->part.used);
}

void pprof_put_tables(struct pprof *p)
{
	put_mappings(p);
	for (uint32_t number = 1; number <= p->base.gap_count; number++)
		for (enum output_gap gap = OUTPUT_UNKNOWN; gap < OUTPUT_GAPS; gap++)
			if (p->base.gaps[gap] == number)
				put_gap(p, gap);
	for (size_t i = 0; !p->base.error && i < p->base.places.count; i++)
		put_location(p, i);
	put_drop_frames(p);
	for (uint32_t i = 0; i < p->base.strings.count && !p->base.error; i++) {
		proto_clear(&p->part);
		proto_string(&p->part, PROFILE_STRING, p->base.strings.list[i]);
		gzip_put(&p->gzip, p->part.bytes, p->part.used);
	}
}
