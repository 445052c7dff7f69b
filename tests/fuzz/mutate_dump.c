/* SPDX-License-Identifier: MIT */
#include "mutate_dump.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "dump_format.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct bytes {
	unsigned char *at;
	size_t size;
	uint64_t random;
};

/* A member of a record. */
struct field {
	uint16_t offset;
	uint8_t size;
	bool real;
};

#define FIELD(type, member)                                                                                            \
	{                                                                                                              \
		offsetof(struct type, member), sizeof(((struct type *)0)->member), false                               \
	}
#define REAL(type, member)                                                                                             \
	{                                                                                                              \
		offsetof(struct type, member), sizeof(((struct type *)0)->member), true                                \
	}

static const struct field header_fields[] = {
	FIELD(dump_header, version),
	FIELD(dump_header, header_bytes),
	FIELD(dump_header, features),
	FIELD(dump_header, state),
	FIELD(dump_header, end_detail),
	FIELD(dump_header, max_bytes),
	FIELD(dump_header, rate_bytes),
	FIELD(dump_header, first_rate_bytes),
	FIELD(dump_header, pid),
	FIELD(dump_header, clock_start.stamp),
	FIELD(dump_header, clock_start.monotonic_ns),
	FIELD(dump_header, clock_start.realtime_ns),
	FIELD(dump_header, clock_latest.stamp),
	FIELD(dump_header, clock_latest.monotonic_ns),
	FIELD(dump_header, clock_latest.realtime_ns),
	FIELD(dump_header, lease_sequence),
	FIELD(dump_header, region_count),
	FIELD(dump_header, lease_stamp),
	FIELD(dump_header, lease_realtime_ns),
	FIELD(dump_header, session_id),
	FIELD(dump_header, private_start_bytes),
	FIELD(dump_header, private_latest_bytes),
	FIELD(dump_header, unknown_stack),
	FIELD(dump_header, max_overhead_ppm),
	FIELD(dump_header, cpu_ns),
	FIELD(dump_header, cost_ns),
	FIELD(dump_header, thinnings),
	FIELD(dump_header, python_version),
	FIELD(dump_header, java_version),
	FIELD(dump_header, evaluators[0].start),
	FIELD(dump_header, evaluators[0].bytes),
	FIELD(dump_header, evaluators[DUMP_EVALUATORS - 1].start),
	FIELD(dump_header, evaluators[DUMP_EVALUATORS - 1].bytes),
	FIELD(dump_header, shared_start_bytes),
	FIELD(dump_header, shared_end_bytes),
	FIELD(dump_header, files_start_bytes),
	FIELD(dump_header, files_end_bytes),
	FIELD(dump_header, session_flags),
	FIELD(dump_header, history_next),
	FIELD(dump_header, cgroup[0]),
	FIELD(dump_header, frees_unseen),
	FIELD(dump_header, frees_unseen_bytes),
	FIELD(dump_header, mapping_cycles),
};
static const struct field region_fields[] = {
	FIELD(dump_region, kind),  FIELD(dump_region, serial),  FIELD(dump_region, offset),
	FIELD(dump_region, bytes), FIELD(dump_region, entries),
};
static const struct field live_fields[] = {
	FIELD(dump_live_record, address), FIELD(dump_live_record, size),  FIELD(dump_live_record, usable),
	FIELD(dump_live_record, stamp),   FIELD(dump_live_record, stack), FIELD(dump_live_record, rate_bytes),
	FIELD(dump_live_record, tid),     FIELD(dump_live_record, hook),  FIELD(dump_live_record, flags),
};
static const struct field history_fields[] = {
	FIELD(dump_history_record, size),
	FIELD(dump_history_record, usable),
	FIELD(dump_history_record, allocated_stamp),
	FIELD(dump_history_record, freed_stamp),
	FIELD(dump_history_record, stack),
	FIELD(dump_history_record, rate_bytes),
	FIELD(dump_history_record, tid),
	FIELD(dump_history_record, hook),
	FIELD(dump_history_record, flags),
};
static const struct field block_fields[] = { FIELD(dump_history_block, sequence), FIELD(dump_history_block, used) };
static const struct field stack_fields[] = {
	FIELD(dump_stack, hash),        FIELD(dump_stack, frame_count),   FIELD(dump_stack, flags),
	FIELD(dump_stack, taken_count), FIELD(dump_stack, taken_bytes),   REAL(dump_stack, excess_count),
	REAL(dump_stack, excess_bytes), REAL(dump_stack, variance_count), REAL(dump_stack, variance_bytes),
	FIELD(dump_stack, unkept),      FIELD(dump_stack, unkept_parts),
};
static const struct field code_fields[] = {
	FIELD(dump_code, hash),        FIELD(dump_code, data_bytes), FIELD(dump_code, flags),
	FIELD(dump_code, address),     FIELD(dump_code, code_bytes), FIELD(dump_code, first_line),
	FIELD(dump_code, table_bytes), FIELD(dump_code, name_bytes), FIELD(dump_code, file_bytes),
	FIELD(dump_code, name_width),  FIELD(dump_code, file_width), FIELD(dump_code, lines),
};
static const struct field arena_fields[] = { FIELD(dump_arena, used) };
static const struct field module_fields[] = {
	FIELD(dump_module, bytes),          FIELD(dump_module, id),
	FIELD(dump_module, start),          FIELD(dump_module, end),
	FIELD(dump_module, bias),           FIELD(dump_module, loaded_stamp),
	FIELD(dump_module, unloaded_stamp), FIELD(dump_module, unwind_rows),
	FIELD(dump_module, got_entries),    FIELD(dump_module, flags),
	FIELD(dump_module, build_id_bytes),
};
static const struct field thread_fields[] = { FIELD(dump_thread, bytes), FIELD(dump_thread, tid) };
static const struct field note_fields[] = { FIELD(dump_note, bytes), FIELD(dump_note, kind) };
static const struct field path_fields[] = { FIELD(dump_path, bytes) };
/* Those of a method and those of calls lie over each other. */
static const struct field java_fields[] = {
	FIELD(dump_java_method, bytes), FIELD(dump_java_method, kind),  FIELD(dump_java_method, name_bytes),
	FIELD(dump_java_method, id),    FIELD(dump_java_method, flags), FIELD(dump_java_calls, frame),
	FIELD(dump_java_calls, gone),   FIELD(dump_java_calls, count),  FIELD(dump_java_calls, flags),
};
/* Those of a row and those of a look lie over each other. */
static const struct field memory_fields[] = {
	FIELD(dump_memory, bytes),   FIELD(dump_memory, moment), FIELD(dump_memory, kind), FIELD(dump_memory, resident),
	FIELD(dump_memory, swapped), FIELD(dump_memory, count),  FIELD(dump_look, rss),    FIELD(dump_look, flags),
};
/* Those of a name, of a list and of a look lie over each other. */
static const struct field label_fields[] = {
	FIELD(dump_block_name, bytes),
	FIELD(dump_block_name, kind),
	FIELD(dump_block_name, source),
	FIELD(dump_block_name, id),
	FIELD(dump_block_list, count),
	FIELD(dump_block_list, blocks[0].address),
	FIELD(dump_block_look, flags),
	FIELD(dump_block_list, blocks[0].type),
	FIELD(dump_block_list, blocks[1].holder),
};
static const struct field usage_fields[] = {
	FIELD(dump_usage, bytes), FIELD(dump_usage, flags),    FIELD(dump_usage, stamp),
	FIELD(dump_usage, rss),   FIELD(dump_usage, parts[1]), FIELD(dump_usage, parts[23]),
};
static const struct field rate_fields[] = {
	FIELD(dump_rate_change, bytes),         FIELD(dump_rate_change, reason),
	FIELD(dump_rate_change, stamp),         FIELD(dump_rate_change, old_bytes),
	FIELD(dump_rate_change, new_bytes),     FIELD(dump_rate_change, overhead_ppm),
	FIELD(dump_rate_change, thinned_bytes),
};
static const struct field symbols_fields[] = {
	FIELD(dump_symbols, bytes),        FIELD(dump_symbols, flags),          FIELD(dump_symbols, place_count),
	FIELD(dump_symbols, module_count), FIELD(dump_symbols, location_count), FIELD(dump_symbols, string_bytes),
};
static const struct field place_fields[] = {
	FIELD(dump_symbol_place, frame),
	FIELD(dump_symbol_place, first),
	FIELD(dump_symbol_place, count),
	FIELD(dump_symbol_place, flags),
};
static const struct field named_module_fields[] = {
	FIELD(dump_symbol_module, id),
	FIELD(dump_symbol_module, reason),
	FIELD(dump_symbol_module, source),
	FIELD(dump_symbol_module, flags),
};
static const struct field location_fields[] = {
	FIELD(dump_symbol_location, function),
	FIELD(dump_symbol_location, file),
	FIELD(dump_symbol_location, line),
};

/* Where a field or a text may be written. */
struct record {
	uint64_t offset, bytes;
	const struct field *fields;
	size_t field_count;
	uint64_t text, text_bytes; /* offset in the dump; 0 bytes: none */
};

#define RECORD(at, length, list)                                                                                       \
	(struct record)                                                                                                \
	{                                                                                                              \
		.offset = (at), .bytes = (length), .fields = (list), .field_count = COUNT(list)                        \
	}

/* splitmix64 */
static uint64_t draw(struct bytes *b)
{
	uint64_t z = b->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* 0 … n - 1, 0 of none. */
static uint64_t below(struct bytes *b, uint64_t n)
{
	return n ? draw(b) % n : 0;
}

static bool inside(const struct bytes *b, uint64_t at, uint64_t n)
{
	return at <= b->size && n <= b->size - at;
}

static uint64_t get(const struct bytes *b, uint64_t at, size_t n)
{
	uint64_t value = 0;

	if (inside(b, at, n))
		memcpy(&value, b->at + at, n);
	return value;
}

static void put(struct bytes *b, uint64_t at, const void *what, size_t n)
{
	if (inside(b, at, n))
		memmove(b->at + at, what, n);
}

#define GET(b, at, type, member) get(b, (at) + offsetof(struct type, member), sizeof(((struct type *)0)->member))

static uint64_t region_at(uint64_t k)
{
	return offsetof(struct dump_header, regions) + k * sizeof(struct dump_region);
}

static uint64_t region_count(const struct bytes *b)
{
	uint64_t count = GET(b, 0, dump_header, region_count);

	return count < DUMP_REGION_MAX ? count : DUMP_REGION_MAX;
}

static struct dump_region region(const struct bytes *b, uint64_t k)
{
	struct dump_region r = { 0 };

	if (inside(b, region_at(k), sizeof r))
		memcpy(&r, b->at + region_at(k), sizeof r);
	return r;
}

/* Any region of the kind; its offset is 0 if there is none. */
static struct dump_region region_of_kind(struct bytes *b, uint32_t kind)
{
	uint64_t count = region_count(b), first = below(b, count);

	for (uint64_t k = 0; k < count; k++) {
		struct dump_region r = region(b, (first + k) % count);
		if (r.kind == kind && r.offset && inside(b, r.offset, r.bytes))
			return r;
	}
	return (struct dump_region){ 0 };
}

/* Of the first entries one that is in use, or any. */
static struct record live_record(struct bytes *b)
{
	struct dump_region r = region_of_kind(b, DUMP_REGION_LIVE);
	uint64_t at = 0;

	for (int i = 0; r.entries && i < 32 && get(b, at, 8) <= DUMP_KEY_BUSY; i++)
		at = r.offset + DUMP_LIVE_RECORDS_AT(r.entries) + below(b, r.entries) * sizeof(struct dump_live_record);
	return RECORD(at, sizeof(struct dump_live_record), live_fields);
}

static struct record history_record(struct bytes *b)
{
	struct dump_region r = region_of_kind(b, DUMP_REGION_HISTORY);
	uint64_t block = r.offset + below(b, r.entries) * DUMP_HISTORY_BLOCK_BYTES;
	uint64_t used = GET(b, block, dump_history_block, used);

	if (below(b, 4) == 0)
		return RECORD(block, sizeof(struct dump_history_block), block_fields);
	return RECORD(block + offsetof(struct dump_history_block, records) +
	                      below(b, used && used <= DUMP_HISTORY_RECORDS ? used : DUMP_HISTORY_RECORDS) *
	                              sizeof(struct dump_history_record),
	              sizeof(struct dump_history_record), history_fields);
}

/* The place of a word of the index that is in use, 0: none. */
static uint64_t index_word(struct bytes *b)
{
	struct dump_region r = region_of_kind(b, DUMP_REGION_STACK_INDEX);
	uint64_t first = below(b, r.entries);

	for (uint64_t i = 0; i < r.entries && i < 1024; i++) {
		uint64_t at = r.offset + (first + i) % r.entries * DUMP_INDEX_ENTRY_BYTES;
		if (get(b, at, 8))
			return at;
	}
	return 0;
}

/* A stack or a code object. What a text is of a code object are its strings and its table. */
static struct record stack_record(struct bytes *b)
{
	uint64_t at = (uint64_t)DUMP_INDEX_REFERENCE(get(b, index_word(b), 8)) * DUMP_STACK_ALIGN;

	if (GET(b, at, dump_stack, flags) & DUMP_STACK_CODE) {
		struct record code = RECORD(at, sizeof(struct dump_code), code_fields);
		code.text = at + sizeof(struct dump_code);
		code.text_bytes = GET(b, at, dump_code, data_bytes);
		return code;
	}
	return RECORD(at, sizeof(struct dump_stack), stack_fields);
}

/* The names of a dump: their header, or one of their records. */
static struct record symbols_record(struct bytes *b)
{
	uint64_t at = region_of_kind(b, DUMP_REGION_SYMBOLS).offset;
	uint64_t counts[] = { GET(b, at, dump_symbols, place_count), GET(b, at, dump_symbols, module_count),
		              GET(b, at, dump_symbols, location_count) };
	struct record r = RECORD(at, sizeof(struct dump_symbols), symbols_fields);
	uint64_t places = at + sizeof(struct dump_symbols);
	uint64_t modules = places + counts[0] * sizeof(struct dump_symbol_place);
	uint64_t locations = modules + counts[1] * sizeof(struct dump_symbol_module);

	switch (below(b, 5)) {
	case 0:
		r = RECORD(places + below(b, counts[0]) * sizeof(struct dump_symbol_place),
		           sizeof(struct dump_symbol_place), place_fields);
		break;
	case 1:
		r = RECORD(modules + below(b, counts[1]) * sizeof(struct dump_symbol_module),
		           sizeof(struct dump_symbol_module), named_module_fields);
		break;
	case 2:
		r = RECORD(locations + below(b, counts[2]) * sizeof(struct dump_symbol_location),
		           sizeof(struct dump_symbol_location), location_fields);
		break;
	default: break;
	}
	r.text = locations + counts[2] * sizeof(struct dump_symbol_location);
	r.text_bytes = GET(b, at, dump_symbols, string_bytes);
	return r;
}

struct arena_kind {
	uint32_t kind;
	uint16_t text; /* offset of the text in a record, 0: none */
	const struct field *fields;
	size_t field_count;
};

static const struct arena_kind arena_kinds[] = {
	{ DUMP_REGION_MODULES, offsetof(struct dump_module, path), module_fields, COUNT(module_fields) },
	{ DUMP_REGION_THREADS, offsetof(struct dump_thread, name), thread_fields, COUNT(thread_fields) },
	{ DUMP_REGION_NOTES, offsetof(struct dump_note, text), note_fields, COUNT(note_fields) },
	{ DUMP_REGION_RATES, 0, rate_fields, COUNT(rate_fields) },
	{ DUMP_REGION_PATHS, offsetof(struct dump_path, text), path_fields, COUNT(path_fields) },
	{ DUMP_REGION_JAVA, offsetof(struct dump_java_method, text), java_fields, COUNT(java_fields) },
	{ DUMP_REGION_MEMORY, offsetof(struct dump_memory, name), memory_fields, COUNT(memory_fields) },
	{ DUMP_REGION_BLOCKS, offsetof(struct dump_block_name, text), label_fields, COUNT(label_fields) },
	{ DUMP_REGION_USAGE, 0, usage_fields, COUNT(usage_fields) },
};

/* One of the first 64 records of an arena, or its header. */
static struct record arena_record(struct bytes *b)
{
	const struct arena_kind *kind = &arena_kinds[below(b, COUNT(arena_kinds))];
	struct dump_region r = region_of_kind(b, kind->kind);
	uint64_t at = r.offset + sizeof(struct dump_arena), chosen = below(b, 8) ? at : 0, seen = 0;

	if (!chosen || !r.offset)
		return RECORD(r.offset, sizeof(struct dump_arena), arena_fields);
	for (uint64_t bytes; seen < 64 && (bytes = get(b, at, 4)); at += (bytes + 15) & ~(uint64_t)15)
		if (below(b, ++seen) == 0)
			chosen = at;
	struct record record = { chosen, get(b, chosen, 4), kind->fields, kind->field_count, 0, 0 };
	if (kind->text && record.bytes > kind->text) {
		record.text = chosen + kind->text;
		record.text_bytes = record.bytes - kind->text;
	}
	return record;
}

static struct record header_record(struct bytes *b)
{
	static const struct field texts[] = { FIELD(dump_header, command),
		                              { offsetof(struct dump_header, program), 255, 0 },
		                              FIELD(dump_header, host) };
	struct record r = RECORD(0, sizeof(struct dump_header), header_fields);
	const struct field *text = &texts[below(b, COUNT(texts))];

	r.text = text->offset;
	r.text_bytes = text->size;
	return r;
}

static struct record region_record(struct bytes *b)
{
	return RECORD(region_at(below(b, region_count(b))), sizeof(struct dump_region), region_fields);
}

static struct record any_record(struct bytes *b)
{
	static struct record (*const kinds[])(struct bytes *) = { header_record,  region_record, live_record,
		                                                  history_record, stack_record,  stack_record,
		                                                  symbols_record, arena_record,  arena_record };

	return kinds[below(b, COUNT(kinds))](b);
}

/* A number at which somebody's sum, size or index goes wrong. */
static uint64_t number(struct bytes *b, uint64_t old)
{
	static const uint64_t limits[] = {
		0,
		1,
		7,
		8,
		16,
		63,
		64,
		DUMP_FRAMES_MAX,
		255,
		DUMP_REGION_MAX,
		DUMP_CODE_NAME_MAX,
		DUMP_REGION_ALIGN,
		DUMP_HEADER_BYTES,
		UINT16_MAX,
		DUMP_CODE_TABLE_MAX,
		INT32_MAX,
		1ull << 31,
		UINT32_MAX,
		1ull << 32,
		1000000000,
		DUMP_SYMBOLS_BYTES_MAX,
		DUMP_BYTES_MAX,
		1ull << 47,
		(1ull << 48) - 1,
		1ull << 56,
		INT64_MAX,
		1ull << 63,
		UINT64_MAX,
	};
	switch (below(b, 8)) {
	case 0: return draw(b);
	case 1: return old + below(b, 33) - 16;
	case 2: return old ^ 1ull << below(b, 64);
	case 3: return below(b, 2) ? b->size : b->size / DUMP_STACK_ALIGN;
	case 4: return DUMP_INDEX_REFERENCE(get(b, index_word(b), 8));
	case 5: return (draw(b) << below(b, 48)) + limits[below(b, COUNT(limits))];
	default: return limits[below(b, COUNT(limits))] + below(b, 3) - 1;
	}
}

static double real(struct bytes *b)
{
	static const double limits[] = { 0.0,       -0.0,    1.0,      -1.0, INFINITY, -INFINITY, NAN, 1e-320,
		                         0x1p-1074, 1.7e308, -1.7e308, 1e18, 1e30,     1e154,     0.1 };

	return limits[below(b, COUNT(limits))];
}

static void change_field(struct bytes *b)
{
	struct record r = any_record(b);
	const struct field *f = &r.fields[below(b, r.field_count)];
	uint64_t value = number(b, get(b, r.offset + f->offset, f->size));

	if (f->real && below(b, 4)) {
		double d = real(b);
		put(b, r.offset + f->offset, &d, sizeof d);
		return;
	}
	put(b, r.offset + f->offset, &value, f->size);
}

/* Frames follow a stack, counters are in the header: words that are no members of their own. */
static void change_word(struct bytes *b)
{
	uint64_t at = offsetof(struct dump_header, counters) + 8 * below(b, DUMP_COUNTER_SHARDS * DUMP_COUNTER_ROW);

	if (below(b, 3))
		at = stack_record(b).offset + sizeof(struct dump_stack) + 8 * below(b, 8);
	else if (below(b, 2))
		at = index_word(b);
	uint64_t old = get(b, at, 8), value = number(b, old);
	if (below(b, 2)) /* only one half: a module, a reference */
		value = (value & UINT32_MAX) << 32 | (old & UINT32_MAX);
	put(b, at, &value, sizeof value);
}

static void change_text(struct bytes *b)
{
	static const char *const texts[] = {
		"</script><script>alert(1)</script>",
		"<!--<script>",
		"]]>",
		"\xe2\x80\xa8\xe2\x80\xa9",
		"\033[31m\033]0;x\007",
		"\xff\xfe\x80",
		"\"'`;,|&$(id)",
		"\\u0000\\",
		"\r\nforged: line",
		"\xf0\x9f\x98\x80",
		"\xed\xa0\x80",
		"\xc0\x80",
		"\xe2\x80\xae\xe2\x81\xa6txt",
		"%s%n%p",
		"a;b 12",
		"__proto__",
		"/../../etc/passwd",
		"/dev/zero",
		"\302\23331m",
		"_Z1f1A1BIS_S_ES0_IS1_S1_ES0_IS2_S2_E",
		"",
	};
	struct record r = any_record(b);
	uint64_t done = 0, start = below(b, r.text_bytes);

	if (!inside(b, r.text, r.text_bytes) || !r.text_bytes)
		return;
	do {
		const char *text = texts[below(b, COUNT(texts))];
		uint64_t n = strlen(text) + !below(b, 4), room = r.text_bytes - start - done;
		put(b, r.text + start + done, text, n < room ? n : room);
		done += n < room ? n : room;
	} while (start + done < r.text_bytes && below(b, 8));
}

/* A record in the place of another one of its kind or of any. */
static void copy_record(struct bytes *b)
{
	struct record from = any_record(b), to = any_record(b);
	uint64_t bytes = from.bytes < to.bytes ? from.bytes : to.bytes;

	if (!to.offset || !inside(b, from.offset, bytes) || !inside(b, to.offset, bytes))
		return;
	put(b, to.offset, b->at + from.offset, bytes);
}

/* One region where another is, or as another kind, or one more. */
static void copy_region(struct bytes *b)
{
	uint64_t count = region_count(b), to = below(b, count + 1);
	struct dump_region r = region(b, below(b, count)), other = region(b, below(b, count));

	if (below(b, 2))
		r.kind = (uint32_t)below(b, DUMP_REGION_JAVA + 2);
	if (below(b, 2))
		r.offset = other.offset;
	if (below(b, 2))
		r.entries = other.entries;
	if (below(b, 4) == 0)
		r.serial = (uint32_t)below(b, 4);
	put(b, region_at(to), &r, sizeof r);
	if (to == count && count < DUMP_REGION_MAX) {
		uint32_t more = (uint32_t)count + 1;
		put(b, offsetof(struct dump_header, region_count), &more, sizeof more);
	}
}

static void change_bytes(struct bytes *b)
{
	for (uint64_t n = 1 + below(b, 32), at = below(b, b->size); n; n--, at += below(b, 9)) {
		unsigned char value = (unsigned char)draw(b);
		put(b, at, &value, 1);
	}
}

static void cut(struct bytes *b)
{
	if (below(b, 4) == 0)
		b->size = below(b, b->size + 1);
}

size_t dump_mutate(unsigned char *bytes, size_t size, uint64_t seed)
{
	static void (*const changes[])(struct bytes *) = {
		change_field, change_field, change_field, change_field, change_field, change_word, change_word,
		change_text,  change_text,  copy_record,  copy_region,  change_bytes, cut,
	};
	struct bytes b = { bytes, size, seed };

	for (uint64_t n = 1 + below(&b, 8); n; n--)
		changes[below(&b, COUNT(changes))](&b);
	return b.size;
}
