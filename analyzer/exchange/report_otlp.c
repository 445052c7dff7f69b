/* SPDX-License-Identifier: MIT */
#include "exchange/report_otlp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/build_id.h"
#include "exchange/otlp_resource.h"
#include "exchange/profile.h"
#include "exchange/profile_comments.h"
#include "exchange/proto.h"
#include "version.h"

/* Fields of the messages of profiles.proto. */
enum { DATA_RESOURCE_PROFILES = 1, DATA_DICTIONARY = 2 };
enum { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPES = 2 };
enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILE = 2 };
enum { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_TIME = 3,
	PROFILE_DURATION = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	PROFILE_ATTRIBUTES = 11
};
enum { TYPE_NAME = 1, TYPE_UNIT = 2 };
enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES = 2, SAMPLE_VALUES = 4 };
enum {
	TABLE_MAPPING = 1,
	TABLE_LOCATION = 2,
	TABLE_FUNCTION = 3,
	TABLE_LINK = 4,
	TABLE_STRING = 5,
	TABLE_ATTRIBUTE = 6,
	TABLE_STACK = 7
};
enum { LINK_TRACE = 1, LINK_SPAN = 2 };
enum { MAPPING_START = 1, MAPPING_LIMIT = 2, MAPPING_OFFSET = 3, MAPPING_FILE = 4, MAPPING_ATTRIBUTES = 5 };
enum { STACK_LOCATIONS = 1 };
enum { LOCATION_MAPPING = 1, LOCATION_ADDRESS = 2, LOCATION_LINE = 3, LOCATION_ATTRIBUTES = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME = 2, FUNCTION_FILE = 3 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2 };
enum { VALUE_STRING = 1 };

#define TRACE_BYTES 16
#define SPAN_BYTES 8

struct otlp {
	struct profile base; /* first: profile_put_sample is called with it */
	struct proto samples[PROFILE_TYPES];
	struct proto dictionary, message, part, packed;
	struct map attribute_of; /* numbers of key and value -> number */
	uint32_t attribute_count, stack_count;
	size_t stack_row; /* whose stack has the number stack_count, and one; 0: none */
};

static void check(struct otlp *o, const struct proto *message)
{
	if (message->failed)
		o->base.error = -ENOMEM;
}

/* Puts o->message into a table, and empties it. */
static void put_entry(struct otlp *o, unsigned table)
{
	proto_message(&o->dictionary, table, &o->message);
	check(o, &o->dictionary);
	proto_clear(&o->message);
}

/* The number of an attribute, which is text. */
static uint32_t attribute(struct otlp *o, const char *key, const char *value)
{
	uint32_t name = profile_string(&o->base, key);
	uint64_t both = (uint64_t)name << 32 | profile_string(&o->base, value);
	const uint32_t *known = map_find(&o->attribute_of, both);
	struct proto text = { 0 }, entry = { 0 };

	if (known)
		return *known;
	if (map_put(&o->attribute_of, both, ++o->attribute_count))
		o->base.error = -ENOMEM;
	proto_string(&text, VALUE_STRING, o->base.strings.list[(uint32_t)both]);
	proto_number(&entry, ATTRIBUTE_KEY, name);
	proto_message(&entry, ATTRIBUTE_VALUE, &text);
	proto_message(&o->dictionary, TABLE_ATTRIBUTE, &entry);
	check(o, &entry);
	check(o, &o->dictionary);
	proto_done(&text);
	proto_done(&entry);
	return o->attribute_count;
}

static void put_attribute(struct otlp *o, struct proto *message, unsigned field, const char *key, const char *value)
{
	if (!value[0])
		return;
	uint32_t number = attribute(o, key, value);
	proto_clear(&o->packed);
	proto_element(&o->packed, number);
	proto_message(message, field, &o->packed);
}

/* ---- samples ---- */

/* The number of the stack of a row; rows come one after the other. */
static uint32_t stack_number(struct otlp *o, size_t row)
{
	size_t count;

	if (o->stack_row == row + 1)
		return o->stack_count;
	const uint64_t *locations = profile_stack(&o->base, row, &count);
	proto_clear(&o->packed);
	for (size_t i = 0; i < count; i++)
		proto_element(&o->packed, locations[i]);
	proto_message(&o->message, STACK_LOCATIONS, &o->packed);
	put_entry(o, TABLE_STACK);
	o->stack_row = row + 1;
	return ++o->stack_count;
}

static void put_sample(struct profile *base, size_t row, const struct profile_part *part)
{
	struct otlp *o = (struct otlp *)base;

	for (int t = 0; t < PROFILE_TYPES; t++) {
		int64_t value = profile_value(part, &profile_types[t]);
		if (!value)
			continue;
		proto_number(&o->part, SAMPLE_STACK, stack_number(o, row));
		put_attribute(o, &o->part, SAMPLE_ATTRIBUTES, "thread.name", part->thread);
		proto_clear(&o->packed);
		proto_element(&o->packed, (uint64_t)value);
		proto_message(&o->part, SAMPLE_VALUES, &o->packed);
		proto_message(&o->samples[t], PROFILE_SAMPLE, &o->part);
		check(o, &o->samples[t]);
		proto_clear(&o->part);
	}
}

/* ---- the dictionary ---- */

static void put_empty_entries(struct otlp *o)
{
	static const unsigned char nothing[TRACE_BYTES];

	for (unsigned table = TABLE_MAPPING; table <= TABLE_STACK; table++) {
		if (table == TABLE_STRING)
			continue; /* its own is "" */
		if (table == TABLE_LINK) {
			proto_bytes(&o->message, LINK_TRACE, nothing, TRACE_BYTES);
			proto_bytes(&o->message, LINK_SPAN, nothing, SPAN_BYTES);
		}
		put_entry(o, table);
	}
}

static void put_mapping(struct otlp *o, uint32_t i)
{
	const struct image *image = &o->base.report->images.list[i];
	const struct profile_mapping *m = &o->base.mappings[i];
	char hex[BUILD_ID_TEXT];

	build_id_format(image->build_id, image->build_id_bytes, hex);
	proto_number(&o->message, MAPPING_START, m->start);
	proto_number(&o->message, MAPPING_LIMIT, m->limit ? m->limit : PROFILE_ADDRESSES);
	proto_number(&o->message, MAPPING_OFFSET, m->offset);
	proto_number(&o->message, MAPPING_FILE, profile_string(&o->base, i ? image->path : PROFILE_NO_MODULE));
	put_attribute(o, &o->message, MAPPING_ATTRIBUTES, "process.executable.build_id.gnu", hex);
	put_entry(o, TABLE_MAPPING);
}

static void put_line(struct otlp *o, uint32_t name, const struct location *l)
{
	uint32_t file = l && l->file ? profile_string(&o->base, l->file) : 0;
	bool fresh;
	uint32_t number = profile_function(&o->base, name, file, &fresh);

	proto_clear(&o->packed);
	if (fresh) {
		proto_number(&o->packed, FUNCTION_NAME, name);
		proto_number(&o->packed, FUNCTION_SYSTEM_NAME, name);
		proto_number(&o->packed, FUNCTION_FILE, file);
		proto_message(&o->dictionary, TABLE_FUNCTION, &o->packed);
		check(o, &o->dictionary);
		proto_clear(&o->packed);
	}
	proto_number(&o->packed, LINE_FUNCTION, number);
	proto_number(&o->packed, LINE_NUMBER, file && l->line > 0 ? (uint64_t)l->line : 0);
	proto_message(&o->message, LOCATION_LINE, &o->packed);
}

static void put_location(struct otlp *o, size_t i)
{
	/* Values of profile.frame.type, of OpenTelemetry's conventions. */
	static const char *const types[] = {
		[IMAGE_NATIVE] = "native", [IMAGE_PYTHON] = "cpython", [IMAGE_JAVA] = "jvm"
	};
	const struct place_entry *entry = &o->base.places.list[i];
	const enum image_language language = source_places_language(&o->base.report->images, entry->place);

	if (!language) {
		proto_number(&o->message, LOCATION_MAPPING, o->base.mappings[PLACE_IMAGE(entry->place)].number);
		proto_number(&o->message, LOCATION_ADDRESS, image_place_call(entry->place));
	}
	for (uint32_t k = 0; k < entry->count; k++) {
		const struct location *l = place_entry_location(o->base.report, entry, k);
		put_line(o, profile_frame_name(&o->base, entry, l), l);
	}
	put_attribute(o, &o->message, LOCATION_ATTRIBUTES, "profile.frame.type", types[language]);
	put_entry(o, TABLE_LOCATION);
}

static void put_gap(struct otlp *o, enum output_gap gap)
{
	put_line(o, profile_string(&o->base, output_gap_name(&o->base.rows, gap)), NULL);
	put_entry(o, TABLE_LOCATION);
}

/* All but the strings. */
static void put_tables(struct otlp *o)
{
	profile_find_mappings(&o->base);
	for (uint32_t number = 1; !o->base.error && number <= o->base.mapped_count; number++)
		put_mapping(o, o->base.mapped[number]);
	for (uint32_t number = 1; number <= o->base.gap_count; number++)
		for (enum output_gap gap = OUTPUT_UNKNOWN; gap < OUTPUT_GAPS; gap++)
			if (o->base.gaps[gap] == number)
				put_gap(o, gap);
	for (size_t i = 0; !o->base.error && i < o->base.places.count; i++)
		put_location(o, i);
}

static void put_strings(struct otlp *o)
{
	for (uint32_t i = 0; i < o->base.strings.count; i++)
		proto_string(&o->dictionary, TABLE_STRING, o->base.strings.list[i]);
	check(o, &o->dictionary);
}

/* ---- profiles ---- */

static void add_comment(void *to, const char *line)
{
	FILE *lines = to;

	fprintf(lines, "%s%s", ftell(lines) > 0 ? " | " : "", line);
}

/* The number of the attribute that says what the figures are worth. */
static uint32_t comments(struct otlp *o)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *lines = open_memstream(&text, &bytes);
	uint32_t number = 0;

	if (lines)
		profile_comments(o->base.report, add_comment, lines);
	if (!lines || fclose(lines))
		o->base.error = -ENOMEM;
	else
		number = attribute(o, "memattach.comments", text);
	free(text);
	return number;
}

static void put_type(struct otlp *o, struct proto *to, unsigned field, const char *name, const char *unit)
{
	uint32_t numbers[] = { profile_string(&o->base, name), profile_string(&o->base, unit) };

	proto_clear(&o->packed);
	proto_number(&o->packed, TYPE_NAME, numbers[0]);
	proto_number(&o->packed, TYPE_UNIT, numbers[1]);
	proto_message(to, field, &o->packed);
}

/* From the beginning of the first session on. */
static uint64_t start_of(const struct report *r, uint64_t end)
{
	uint64_t start = end;

	for (size_t i = 0; i < r->session_count; i++)
		if (r->sessions[i].start_ns && r->sessions[i].start_ns < start)
			start = r->sessions[i].start_ns;
	return start;
}

/* The head of a profile, before its samples. */
static void put_head(struct otlp *o, struct proto *to, const struct profile_type *type, uint32_t comment)
{
	const struct report *r = o->base.report;
	uint64_t end = profile_time_ns(r), start = start_of(r, end);

	put_type(o, to, PROFILE_SAMPLE_TYPE, type->name, type->unit);
	proto_fixed(to, PROFILE_TIME, start);
	proto_number(to, PROFILE_DURATION, end - start);
	put_type(o, to, PROFILE_PERIOD_TYPE, "alloc_space", "bytes");
	proto_number(to, PROFILE_PERIOD, (uint64_t)fmax(1, round(profile_interval(r))));
	proto_clear(&o->packed);
	proto_element(&o->packed, comment);
	proto_message(to, PROFILE_ATTRIBUTES, &o->packed);
	check(o, to);
}

/* All profiles, in the scope that is this program. */
static void put_profiles(struct otlp *o, struct proto *scope)
{
	uint32_t comment = comments(o);

	proto_string(&o->part, SCOPE_NAME, "memattach");
	proto_string(&o->part, SCOPE_VERSION, MEMATTACH_VERSION);
	proto_message(scope, SCOPE_PROFILES_SCOPE, &o->part);
	for (int t = PROFILE_TYPES; t-- > 0;) {
		proto_clear(&o->part);
		put_head(o, &o->part, &profile_types[t], comment);
		proto_append(&o->part, &o->samples[t]);
		proto_message(scope, SCOPE_PROFILES_PROFILE, &o->part);
		check(o, scope);
	}
	proto_clear(&o->part);
}

static void put_data(struct otlp *o, FILE *out)
{
	struct proto scope = { 0 }, resource = { 0 }, data = { 0 };

	put_profiles(o, &scope);
	put_strings(o);
	otlp_resource(&resource, o->base.report);
	proto_message(&o->message, RESOURCE_PROFILES_RESOURCE, &resource);
	proto_message(&o->message, RESOURCE_PROFILES_SCOPES, &scope);
	proto_message(&data, DATA_RESOURCE_PROFILES, &o->message);
	proto_message(&data, DATA_DICTIONARY, &o->dictionary);
	check(o, &data);
	if (!o->base.error)
		fwrite(data.bytes, 1, data.used, out);
	proto_done(&scope);
	proto_done(&resource);
	proto_done(&data);
}

static void done(struct otlp *o)
{
	for (int t = 0; t < PROFILE_TYPES; t++)
		proto_done(&o->samples[t]);
	proto_done(&o->dictionary);
	proto_done(&o->message);
	proto_done(&o->part);
	proto_done(&o->packed);
	map_done(&o->attribute_of);
	profile_done(&o->base);
	free(o);
}

int report_otlp(const struct report *r, FILE *out)
{
	struct otlp *o = calloc(1, sizeof *o);

	if (!o)
		return -ENOMEM;
	profile_init(&o->base, r);
	put_empty_entries(o);
	profile_samples(&o->base, put_sample);
	if (!o->base.error)
		put_tables(o);
	if (!o->base.error)
		put_data(o, out);
	int s = o->base.error;
	done(o);
	return s;
}
