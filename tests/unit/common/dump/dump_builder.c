/* SPDX-License-Identifier: MIT */
#include "dump_builder.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define START_NS 1700000000123456789ull
#define SESSION_NS 30000000000ull
#define STAMPS_PER_NS 3

static uint64_t page_up(uint64_t n)
{
	return (n + DUMP_REGION_ALIGN - 1) & ~(uint64_t)(DUMP_REGION_ALIGN - 1);
}

void dump_builder_add(struct dump_builder *b, uint32_t kind, uint64_t bytes, uint64_t entries)
{
	size_t size = b->size + page_up(bytes);

	b->bytes = mremap(b->bytes, b->size, size, MREMAP_MAYMOVE);
	if (b->bytes == MAP_FAILED)
		abort();
	struct dump_header *h = dump_builder_header(b);
	h->regions[h->region_count++] =
		(struct dump_region){ .kind = kind, .offset = b->size, .bytes = size - b->size, .entries = entries };
	b->size = size;
}

void dump_builder_init(struct dump_builder *b, uint64_t rate, uint64_t live_entries, uint64_t stack_entries,
                       uint64_t history_blocks)
{
	*b = (struct dump_builder){ .size = DUMP_HEADER_BYTES };
	b->bytes = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->bytes == MAP_FAILED)
		abort();
	struct dump_header *h = dump_builder_header(b);
	memcpy(h->magic, DUMP_MAGIC, sizeof h->magic);
	h->version = DUMP_VERSION;
	h->header_bytes = DUMP_HEADER_BYTES;
	h->features = rate == 1 ? DUMP_FEATURE_EXACT : 0;
	h->state = DUMP_STATE_DETACHED;
	h->max_bytes = 1ull << 32;
	h->rate_bytes = h->first_rate_bytes = rate;
	h->pid = 812;
	strcpy(h->command, "leaky");
	strcpy(h->program, "/usr/bin/leaky");
	strcpy(h->host, "build7");
	h->clock_start = (struct dump_clock){ 1000000, 5000000000, START_NS };
	h->clock_latest = (struct dump_clock){ 1000000 + SESSION_NS * STAMPS_PER_NS, 5000000000 + SESSION_NS,
		                               START_NS + SESSION_NS };
	h->lease_sequence = 2;
	dump_builder_add(b, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(live_entries), live_entries);
	dump_builder_add(b, DUMP_REGION_STACK_INDEX, stack_entries * DUMP_INDEX_ENTRY_BYTES, stack_entries);
	dump_builder_add(b, DUMP_REGION_STACKS, sizeof(struct dump_arena) + stack_entries * 512, 0);
	if (history_blocks)
		dump_builder_add(b, DUMP_REGION_HISTORY, history_blocks * DUMP_HISTORY_BLOCK_BYTES, history_blocks);
	dump_builder_add(b, DUMP_REGION_MODULES, DUMP_REGION_ALIGN, 0);
	dump_builder_add(b, DUMP_REGION_THREADS, DUMP_REGION_ALIGN, 0);
	dump_builder_add(b, DUMP_REGION_NOTES, DUMP_REGION_ALIGN, 0);
	dump_builder_add(b, DUMP_REGION_RATES, DUMP_REGION_ALIGN, 0);
}

void dump_builder_done(struct dump_builder *b)
{
	munmap(b->bytes, b->size);
	*b = (struct dump_builder){ 0 };
}

struct dump_header *dump_builder_header(struct dump_builder *b)
{
	return (struct dump_header *)b->bytes;
}

struct dump_region *dump_builder_region(struct dump_builder *b, uint32_t kind)
{
	struct dump_header *h = dump_builder_header(b);

	for (uint32_t i = 0; i < h->region_count; i++)
		if (h->regions[i].kind == kind)
			return &h->regions[i];
	abort();
}

void *dump_builder_at(struct dump_builder *b, uint64_t offset)
{
	if (offset >= b->size)
		abort();
	return b->bytes + offset;
}

/* Hands out bytes of an arena, aligned to 16. */
static void *arena_take(struct dump_builder *b, uint32_t kind, size_t bytes)
{
	struct dump_region *region = dump_builder_region(b, kind);
	struct dump_arena *arena = dump_builder_at(b, region->offset);
	uint64_t at = arena->used;

	arena->used += (bytes + 15) & ~(size_t)15;
	if (sizeof *arena + arena->used > region->bytes)
		abort();
	return dump_builder_at(b, region->offset + sizeof *arena + at);
}

/* The hash of a new record of the index, and its reference. */
static uint64_t put_index(struct dump_builder *b, const void *record, uint32_t *reference)
{
	struct dump_region *index = dump_builder_region(b, DUMP_REGION_STACK_INDEX);
	uint64_t hash = 0x1234567 + b->index_used;

	*reference = (uint32_t)(((const unsigned char *)record - b->bytes) / DUMP_STACK_ALIGN);
	if (b->index_used == index->entries)
		abort();
	uint64_t *words = dump_builder_at(b, index->offset);
	words[b->index_used++] = DUMP_INDEX_WORD(hash, *reference);
	return hash;
}

uint32_t dump_builder_python_stack(struct dump_builder *b, const uint64_t *frames, uint32_t n, const uint64_t *python,
                                   uint32_t m, uint32_t flags)
{
	struct dump_stack *stack = arena_take(b, DUMP_REGION_STACKS, sizeof *stack + (n + m) * sizeof *frames);
	uint32_t reference;

	stack->hash = put_index(b, stack, &reference);
	stack->frame_count = n;
	stack->flags = flags | DUMP_STACK_PYTHON_FLAGS(m);
	if (n)
		memcpy(stack->frames, frames, n * sizeof *frames);
	if (m)
		memcpy(stack->frames + n, python, m * sizeof *python);
	return reference;
}

uint32_t dump_builder_stack(struct dump_builder *b, const uint64_t *frames, uint32_t n, uint32_t flags)
{
	return dump_builder_python_stack(b, frames, n, NULL, 0, flags);
}

uint32_t dump_builder_code(struct dump_builder *b, const char *name, const char *file, int32_t first_line,
                           uint32_t lines, uint32_t units)
{
	const size_t name_bytes = strlen(name), file_bytes = strlen(file), table_bytes = 2 * lines;
	const size_t data_bytes = name_bytes + file_bytes + table_bytes;
	struct dump_code *code = arena_take(b, DUMP_REGION_STACKS, sizeof *code + data_bytes);
	uint32_t reference;

	if (!units || units > 8)
		abort();
	*code = (struct dump_code){ .data_bytes = (uint32_t)data_bytes,
		                    .flags = DUMP_STACK_CODE,
		                    .address = 0x7f0000100000 + 0x100 * b->index_used,
		                    .code_bytes = 2 * units * lines,
		                    .first_line = first_line,
		                    .table_bytes = (uint32_t)table_bytes,
		                    .name_bytes = (uint16_t)name_bytes,
		                    .file_bytes = (uint16_t)file_bytes,
		                    .name_width = 1,
		                    .file_width = 1,
		                    .lines = DUMP_LINES_LOCATIONS };
	code->hash = put_index(b, code, &reference);
	uint8_t *data = (uint8_t *)code + sizeof *code;
	memcpy(data, name, name_bytes);
	memcpy(data + name_bytes, file, file_bytes);
	for (uint32_t i = 0; i < lines; i++) { /* an entry without columns, then how many lines further, twice */
		data[name_bytes + file_bytes + 2 * i] = (uint8_t)(0xe8 | (units - 1));
		data[name_bytes + file_bytes + 2 * i + 1] = i ? 2 : 0;
	}
	return reference;
}

static void put_history(struct dump_builder *b, uint32_t stack, uint64_t size, uint32_t rate)
{
	struct dump_header *h = dump_builder_header(b);
	struct dump_region *region = dump_builder_region(b, DUMP_REGION_HISTORY);
	struct dump_history_block *blocks = dump_builder_at(b, region->offset);

	if (!h->history_next || blocks[h->history_next - 1].used == DUMP_HISTORY_RECORDS) {
		if (h->history_next == region->entries)
			return;
		blocks[h->history_next].sequence = h->history_next + 1;
		h->history_next++;
	}
	struct dump_history_block *block = &blocks[h->history_next - 1];
	block->records[block->used++] = (struct dump_history_record){ .size = size,
		                                                      .allocated_stamp = 2000000,
		                                                      .freed_stamp = 3000000,
		                                                      .stack = stack,
		                                                      .rate_bytes = rate,
		                                                      .tid = 812 };
}

struct dump_live_record *dump_builder_live(struct dump_builder *b, uint64_t k)
{
	const struct dump_region *region = dump_builder_region(b, DUMP_REGION_LIVE);
	struct dump_live_record *records = dump_builder_at(b, region->offset + DUMP_LIVE_RECORDS_AT(region->entries));

	return &records[k];
}

void dump_builder_sample(struct dump_builder *b, uint32_t reference, uint64_t size, uint32_t rate, int live)
{
	struct dump_header *h = dump_builder_header(b);
	struct dump_stack *stack = dump_builder_at(b, (uint64_t)reference * DUMP_STACK_ALIGN);
	double p = rate <= 1 ? 1 : -expm1(-(double)(size ? size : 1) / rate);
	double s = (double)size;

	stack->taken_count++;
	stack->taken_bytes += size;
	stack->excess_bytes += s / p - s;
	stack->excess_count += 1 / p - 1;
	stack->variance_bytes += s * s * (1 - p) / (p * p);
	stack->variance_count += (1 - p) / (p * p);
	h->counters[stack->taken_count % DUMP_COUNTER_SHARDS][DUMP_COUNTER_samples_taken]++;
	if (!live) {
		h->counters[0][DUMP_COUNTER_samples_freed]++;
		put_history(b, reference, size, rate);
		return;
	}
	struct dump_region *region = dump_builder_region(b, DUMP_REGION_LIVE);
	if (b->live_used == region->entries)
		abort();
	uint64_t address = 0x7f0000001000 + 0x1000 * b->live_used;
	*dump_builder_live(b, b->live_used) = (struct dump_live_record){
		.address = address, .size = size, .stamp = 2000000, .stack = reference, .rate_bytes = rate, .tid = 812
	};
	b->live_used++;
}

void dump_builder_module(struct dump_builder *b, uint32_t id, uint64_t bias, uint64_t start, uint64_t end,
                         const char *path, const void *build_id, uint32_t build_id_bytes, uint32_t flags)
{
	size_t bytes = (sizeof(struct dump_module) + strlen(path) + 1 + 15) & ~(size_t)15;
	struct dump_module *m = arena_take(b, DUMP_REGION_MODULES, bytes);

	*m = (struct dump_module){ .bytes = (uint32_t)bytes,
		                   .id = id,
		                   .start = start,
		                   .end = end,
		                   .bias = bias,
		                   .flags = flags,
		                   .build_id_bytes = build_id_bytes };
	if (build_id_bytes)
		memcpy(m->build_id, build_id, build_id_bytes);
	memcpy((char *)m + offsetof(struct dump_module, path), path, strlen(path) + 1);
}

void dump_builder_thread(struct dump_builder *b, uint32_t tid, const char *name)
{
	struct dump_thread *t = arena_take(b, DUMP_REGION_THREADS, sizeof *t);

	*t = (struct dump_thread){ .bytes = sizeof *t, .tid = tid };
	strncpy(t->name, name, sizeof t->name - 1);
}

void dump_builder_rate(struct dump_builder *b, const struct dump_rate_change *change)
{
	struct dump_rate_change *c = arena_take(b, DUMP_REGION_RATES, sizeof *c);

	*c = *change;
	c->bytes = sizeof *c;
	dump_builder_header(b)->rate_bytes = change->new_bytes;
}

void dump_builder_note(struct dump_builder *b, uint32_t kind, const char *text)
{
	size_t bytes = (sizeof(struct dump_note) + strlen(text) + 1 + 15) & ~(size_t)15;
	struct dump_note *n = arena_take(b, DUMP_REGION_NOTES, bytes);

	n->bytes = (uint32_t)bytes;
	n->kind = kind;
	memcpy(n->text, text, strlen(text) + 1);
}

void dump_builder_path(struct dump_builder *b, const char *text)
{
	const struct dump_header *h = dump_builder_header(b);
	size_t bytes = (sizeof(struct dump_path) + strlen(text) + 1 + 15) & ~(size_t)15;

	if (h->regions[h->region_count - 1].kind != DUMP_REGION_PATHS)
		dump_builder_add(b, DUMP_REGION_PATHS, 1 << 20, 0);
	struct dump_path *p = arena_take(b, DUMP_REGION_PATHS, bytes);
	p->bytes = (uint32_t)bytes;
	memcpy(p->text, text, strlen(text) + 1);
}

static void *java_take(struct dump_builder *b, size_t bytes)
{
	const struct dump_header *h = dump_builder_header(b);

	if (h->regions[h->region_count - 1].kind != DUMP_REGION_JAVA)
		dump_builder_add(b, DUMP_REGION_JAVA, 1 << 16, 0);
	return arena_take(b, DUMP_REGION_JAVA, (bytes + 15) & ~(size_t)15);
}

/* Both records have their text at the same place. */
static struct dump_memory *memory_take(struct dump_builder *b, const char *text)
{
	const struct dump_header *h = dump_builder_header(b);
	const size_t bytes = (sizeof(struct dump_memory) + strlen(text) + 1 + 15) & ~(size_t)15;

	if (h->regions[h->region_count - 1].kind != DUMP_REGION_MEMORY)
		dump_builder_add(b, DUMP_REGION_MEMORY, 1 << 16, 0);
	struct dump_memory *row = arena_take(b, DUMP_REGION_MEMORY, bytes);
	row->bytes = (uint32_t)bytes;
	memcpy(row->name, text, strlen(text) + 1);
	return row;
}

void dump_builder_memory(struct dump_builder *b, uint16_t moment, uint16_t kind, uint64_t resident, const char *name)
{
	struct dump_memory *row = memory_take(b, name);

	row->moment = moment;
	row->kind = kind;
	row->resident = resident;
	row->count = 1;
}

void dump_builder_look(struct dump_builder *b, uint16_t moment, uint64_t rss, uint64_t flags, const char *text)
{
	struct dump_look *look = (struct dump_look *)(void *)memory_take(b, text);

	look->moment = moment;
	look->rss = rss;
	look->flags = flags;
}

struct dump_usage *dump_builder_usage(struct dump_builder *b, uint64_t stamp, uint32_t flags, uint64_t rss)
{
	const struct dump_header *h = dump_builder_header(b);

	if (h->regions[h->region_count - 1].kind != DUMP_REGION_USAGE)
		dump_builder_add(b, DUMP_REGION_USAGE, 1 << 16, 0);
	struct dump_usage *usage = arena_take(b, DUMP_REGION_USAGE, sizeof *usage);
	*usage = (struct dump_usage){ .bytes = sizeof *usage, .flags = flags, .stamp = stamp, .rss = rss };
	return usage;
}

/* The record of a name and that of a look have their text at the same place. */
static struct dump_block_name *block_take(struct dump_builder *b, uint16_t kind, size_t more)
{
	const struct dump_header *h = dump_builder_header(b);
	const size_t bytes = (sizeof(struct dump_block_name) + more + 15) & ~(size_t)15;

	if (h->regions[h->region_count - 1].kind != DUMP_REGION_BLOCKS)
		dump_builder_add(b, DUMP_REGION_BLOCKS, 1 << 16, 0);
	struct dump_block_name *name = arena_take(b, DUMP_REGION_BLOCKS, bytes);
	name->bytes = (uint32_t)bytes;
	name->kind = kind;
	return name;
}

void dump_builder_block_name(struct dump_builder *b, uint16_t kind, uint16_t source, uint32_t id, const char *text)
{
	struct dump_block_name *name = block_take(b, kind, strlen(text) + 1);

	name->source = source;
	name->id = id;
	memcpy(name->text, text, strlen(text) + 1);
}

void dump_builder_block(struct dump_builder *b, uint64_t address, uint32_t type, uint32_t holder)
{
	struct dump_block_list *list =
		(struct dump_block_list *)(void *)block_take(b, DUMP_BLOCK_LIST, sizeof *list->blocks);

	list->count = 1;
	list->blocks[0] = (struct dump_block){ address, type, holder };
}

void dump_builder_block_look(struct dump_builder *b, uint16_t flags, const char *text)
{
	struct dump_block_look *look =
		(struct dump_block_look *)(void *)block_take(b, DUMP_BLOCK_LOOK, strlen(text) + 1);

	look->flags = flags;
	memcpy(look->text, text, strlen(text) + 1);
}

void dump_builder_java_method(struct dump_builder *b, uint32_t id, uint32_t flags, const char *name, const char *file)
{
	const size_t name_bytes = strlen(name) + 1,
		     bytes = sizeof(struct dump_java_method) + name_bytes + strlen(file) + 1;
	struct dump_java_method *m = java_take(b, bytes);

	*m = (struct dump_java_method){ .bytes = (uint32_t)(bytes + 15) & ~15u,
		                        .kind = DUMP_JAVA_METHOD,
		                        .name_bytes = (uint16_t)name_bytes,
		                        .id = id,
		                        .flags = flags };
	memcpy(m->text, name, name_bytes);
	memcpy(m->text + name_bytes, file, strlen(file) + 1);
}

struct dump_java_calls *dump_builder_java_calls(struct dump_builder *b, uint64_t frame,
                                                const struct dump_java_call *calls, uint16_t count)
{
	const size_t bytes = sizeof(struct dump_java_calls) + count * sizeof *calls;
	struct dump_java_calls *c = java_take(b, bytes);

	*c = (struct dump_java_calls){
		.bytes = (uint32_t)(bytes + 15) & ~15u, .kind = DUMP_JAVA_CALLS, .count = count, .frame = frame
	};
	memcpy(c->calls, calls, count * sizeof *calls);
	return c;
}

int dump_builder_fd(const struct dump_builder *b, size_t size)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < size) {
		ssize_t n = pwrite(fd, b->bytes + done, size - done, (off_t)done);
		if (n <= 0)
			abort();
		done += (size_t)n;
	}
	return fd;
}

/* From a page with something else than zeros to the next one without. */
static size_t used_pages(const struct dump_builder *b, size_t *from)
{
	static const unsigned char zeros[DUMP_REGION_ALIGN];
	size_t end;

	while (*from < b->size && !memcmp(b->bytes + *from, zeros, sizeof zeros))
		*from += sizeof zeros;
	for (end = *from; end < b->size && memcmp(b->bytes + end, zeros, sizeof zeros);)
		end += sizeof zeros;
	return (end < b->size ? end : b->size) - *from;
}

int dump_builder_write(const struct dump_builder *b, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int failed = fd < 0 || ftruncate(fd, (off_t)b->size);
	size_t bytes;

	for (size_t at = 0; !failed && (bytes = used_pages(b, &at)); at += bytes)
		failed = pwrite(fd, b->bytes + at, bytes, (off_t)at) != (ssize_t)bytes;
	return (fd >= 0 && close(fd)) || failed ? -1 : 0;
}

void dump_builder_symbols(struct dump_builder *b, const void *bytes, size_t count)
{
	dump_builder_add(b, DUMP_REGION_SYMBOLS, count, 0);
	memcpy(dump_builder_at(b, dump_builder_region(b, DUMP_REGION_SYMBOLS)->offset), bytes, count);
}

void dump_builder_sampler(struct dump_builder *b)
{
	const uint64_t leak[] = { DUMP_FRAME(2, 0x7f1000000234), DUMP_FRAME(1, 0x555500001234),
		                  DUMP_FRAME(1, 0x555500002345) };
	const uint64_t cache[] = { DUMP_FRAME(1, 0x555500004321), DUMP_FRAME(0, 0x123456789a) };
	static const unsigned char id1[20] = { 0xde, 0xad, 0xbe, 0xef, 1,  2,  3,  4,  5,  6,
		                               7,    8,    9,    10,   11, 12, 13, 14, 15, 16 };
	static const unsigned char id2[20] = { 0xca, 0xfe, 1 };

	dump_builder_init(b, 65536, 64, 8, 2);
	uint32_t s = dump_builder_stack(b, leak, 3, 0);
	uint32_t t = dump_builder_stack(b, cache, 2, DUMP_STACK_TRUNCATED);
	dump_builder_header(b)->unknown_stack = dump_builder_stack(b, NULL, 0, 0);
	for (int i = 0; i < 30; i++)
		dump_builder_sample(b, s, 4096, 65536, i % 3 != 0);
	for (int i = 0; i < 5; i++)
		dump_builder_sample(b, t, 100, 65536, 1);
	dump_builder_sample(b, t, 8 << 20, 65536, 1);
	dump_builder_sample(b, dump_builder_header(b)->unknown_stack, 64, 65536, 1);
	dump_builder_module(b, 1, 0x555500000000, 0x555500000000, 0x555500010000, "/usr/bin/leaky", id1, sizeof id1,
	                    DUMP_MODULE_MAIN);
	dump_builder_module(b, 2, 0x7f1000000000, 0x7f1000000000, 0x7f1000010000, "/usr/lib/lib\xffodd\".so (deleted)",
	                    id2, sizeof id2, 0);
	dump_builder_thread(b, 812, "leaky");
	dump_builder_note(b, DUMP_NOTE_STATIC, "an allocator inside /usr/lib/libodd.so is not seen");
	dump_builder_header(b)->counters[3][DUMP_COUNTER_stacks_truncated] = 6;
}

void dump_builder_snake(struct dump_builder *b)
{
	static const unsigned char id[20] = { 0x51, 1, 2 };

	dump_builder_init(b, 65536, 64, 16, 2);
	struct dump_header *h = dump_builder_header(b);
	h->python_version = 0x030b02f0;
	h->evaluators[0] = (struct dump_evaluator){ DUMP_BUILDER_EVALUATOR, DUMP_BUILDER_EVALUATOR_BYTES };
	const uint32_t load = dump_builder_code(b, "load_tiles", "/srv/app/tiles.py", 80, 10, 2);
	const uint32_t handle = dump_builder_code(b, "Views.handle", "/srv/app/pkg/views.py", 30, 4, 1);
	const uint32_t frame = dump_builder_code(b, "DataFrame.\x1b[1m\xe9",
	                                         "/usr/lib/python3/dist-packages/pandas/core/frame.py", 700, 4, 8);
	const uint64_t evaluator = DUMP_FRAME(1, DUMP_BUILDER_EVALUATOR + 0x100), glue = DUMP_FRAME(1, 0x420000);
	const uint64_t array[] = { DUMP_FRAME(2, 0x7f1000000234), glue, evaluator, glue, evaluator, glue,
		                   DUMP_FRAME(3, 0x7f2000000100) };
	const uint64_t bytes[] = { DUMP_FRAME(1, 0x430000), evaluator, glue };
	const uint64_t lines[] = { DUMP_PYTHON_FRAME(load, 0, 8), DUMP_PYTHON_FRAME(handle, 1, 2),
		                   DUMP_PYTHON_FRAME(frame, 1, -1) };
	const uint64_t unknown[] = { DUMP_PYTHON_FRAME(load, 1, 0), DUMP_PYTHON_FRAME(12345, 1, 0) };
	const uint32_t s = dump_builder_python_stack(b, array, 7, lines, 3, 0);
	const uint32_t t = dump_builder_python_stack(b, bytes, 3, unknown, 2, DUMP_STACK_TRUNCATED);
	const uint32_t u = dump_builder_python_stack(b, bytes, 3, lines, 1, DUMP_STACK_PYTHON_DEEP);
	for (int i = 0; i < 20; i++)
		dump_builder_sample(b, s, 8192, 65536, i % 4 != 0);
	for (int i = 0; i < 6; i++)
		dump_builder_sample(b, i % 2 ? t : u, 600, 65536, 1);
	dump_builder_sample(b, dump_builder_stack(b, array + 6, 1, 0), 70, 65536, 1);
	dump_builder_module(b, 1, 0, 0x400000, 0x900000, "/usr/bin/python3.11", id, sizeof id, DUMP_MODULE_MAIN);
	dump_builder_module(b, 2, 0x7f1000000000, 0x7f1000000000, 0x7f1000010000,
	                    "/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.so", NULL, 0, 0);
	dump_builder_module(b, 3, 0x7f2000000000, 0x7f2000000000, 0x7f2000010000, "/usr/lib/libc.so.6", NULL, 0, 0);
	dump_builder_thread(b, 812, "python3");
}

#define NATIVE(module, address) DUMP_FRAME(module, high | (address))
#define JVM(address) NATIVE(1, 0x7f1000000000 + (address))
#define LIBC(address) NATIVE(3, 0x7f2000000000 + (address))
#define JAVA(address, tag) (high ? DUMP_JAVA_FRAME_63(high | (address), tag) : DUMP_JAVA_FRAME_47(address, tag))
#define COMPILED(n, id) JAVA(0x7fff80000000 + 0x1000 * (n), id)
#define INTERPRETED(n, bcp) JAVA(0x7e0000000000 + 0x80 * (n), bcp)

/* A direct buffer; Deflater's native code; a stub of HotSpot, methods of it that are internal, and some without name.
 * high: 0, or bit 47, which all addresses have. */
static void make_hotspot(struct dump_builder *b, uint64_t high)
{
	static const unsigned char id[20] = { 0x41, 1, 2 };
	static const struct dump_java_call buffer[] = { { 1, 0 }, { 2, 125 }, { 3, 332 } };
	static const struct dump_java_call own[] = { { 4, 31 }, { 5, 88 } }, main[] = { { 6, 7 } },
					   deflater[] = { { 7, 0 } }, stub[] = { { 8, 0 } }, lambda[] = { { 9, 0 } };
	const uint64_t direct[] = { JVM(0x100),
		                    JVM(0x200),
		                    COMPILED(1, 41),
		                    COMPILED(2, 42),
		                    NATIVE(0, 0x7fff80000010),
		                    JVM(0x300),
		                    INTERPRETED(1, 0xfffe),
		                    JVM(0x300),
		                    LIBC(0x100) };
	const uint64_t deflate[] = { NATIVE(2, 0x7f1800000100), COMPILED(3, 43),        COMPILED(6, 0), COMPILED(5, 45),
		                     COMPILED(2, 42),           INTERPRETED(1, 0xfffe), JVM(0x300),     LIBC(0x100) };
	const uint64_t gone[] = { JVM(0x200), COMPILED(2, 43), INTERPRETED(2, 8), INTERPRETED(1, 0xfffe) };

	dump_builder_init(b, 65536, 64, 16, 2);
	dump_builder_header(b)->features |= high ? DUMP_FEATURE_JAVA_63 : DUMP_FEATURE_JAVA;
	dump_builder_header(b)->java_version = 17;
	const uint32_t s = dump_builder_stack(b, direct, 9, 0), t = dump_builder_stack(b, deflate, 8, 0),
		       u = dump_builder_stack(b, gone, 4, DUMP_STACK_TRUNCATED);
	for (int i = 0; i < 20; i++)
		dump_builder_sample(b, i % 5 ? s : t, 8192, 65536, i % 4 != 0);
	dump_builder_sample(b, u, 600, 65536, 1);
	dump_builder_module(b, 1, high | 0x7f1000000000, high | 0x7f1000000000, high | 0x7f1000010000,
	                    "/usr/lib/jvm/lib/server/libjvm.so", id, sizeof id, 0);
	dump_builder_module(b, 2, high | 0x7f1800000000, high | 0x7f1800000000, high | 0x7f1800010000,
	                    "/usr/lib/jvm/lib/libzip.so", NULL, 0, 0);
	dump_builder_module(b, 3, high | 0x7f2000000000, high | 0x7f2000000000, high | 0x7f2000010000,
	                    "/usr/lib/libc.so.6", NULL, 0, 0);
	dump_builder_thread(b, 812, "main");
	dump_builder_java_method(b, 1, 0, "jdk.internal.misc.Unsafe.allocateMemory", "Unsafe.java");
	dump_builder_java_method(b, 2, 0, "java.nio.DirectByteBuffer.<init>", "DirectByteBuffer.java");
	dump_builder_java_method(b, 3, 0, "java.nio.ByteBuffer.allocateDirect", "ByteBuffer.java");
	dump_builder_java_method(b, 4, 0, "com.shop.Frames.decode", "Frames.java");
	dump_builder_java_method(b, 5, 0, "com.shop.Handler.h\xc3\xa9\x1b[1m", "Handler.java");
	dump_builder_java_method(b, 6, 0, "Main.main", "Main.java");
	dump_builder_java_method(b, 7, 0, "java.util.zip.Deflater.init", "Deflater.java");
	dump_builder_java_method(b, 8, DUMP_JAVA_STUB, "StubRoutines (1)", "");
	dump_builder_java_method(b, 9, 0, "com.shop.Frames$$Lambda$14/0x0000000800c0.run", "");
	dump_builder_java_calls(b, COMPILED(1, 41), buffer, 3);
	dump_builder_java_calls(b, COMPILED(2, 42), own, 2);
	dump_builder_java_calls(b, INTERPRETED(1, 0xfffe), main, 1)->flags = DUMP_JAVA_INTERPRETED;
	dump_builder_java_calls(b, COMPILED(3, 43), deflater, 1);
	dump_builder_java_calls(b, COMPILED(6, 0), stub, 1);
	dump_builder_java_calls(b, COMPILED(5, 45), lambda, 1);
	dump_builder_java_calls(b, INTERPRETED(2, 8), main, 1)->gone = 1;
}

void dump_builder_hotspot(struct dump_builder *b)
{
	make_hotspot(b, 0);
}

void dump_builder_hotspot_63(struct dump_builder *b)
{
	make_hotspot(b, 1ull << 47);
}
