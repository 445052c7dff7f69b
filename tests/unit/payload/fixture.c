/* SPDX-License-Identifier: MIT */
/* A session without memattach, see fixture.h. */
#include "fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

struct maps_line {
	uint64_t start;
	uint64_t end;
	uint64_t protection;
};

static bool maps_line(FILE *maps, struct maps_line *line)
{
	char text[512], mode[5];

	if (!fgets(text, sizeof(text), maps))
		return false;
	assert_int_equal(sscanf(text, "%lx-%lx %4s", &line->start, &line->end, mode), 3);
	line->protection = (mode[0] == 'r' ? PROT_READ : 0) | (mode[1] == 'w' ? PROT_WRITE : 0) |
	                   (mode[2] == 'x' ? PROT_EXEC : 0);
	return true;
}

/* It is called there. Valgrind makes one of its own, which has no name. */
static void find_main_stack(struct control_start *start)
{
	struct maps_line line;
	FILE *maps = fopen("/proc/self/maps", "re");

	assert_non_null(maps);
	while (maps_line(maps, &line)) {
		if ((uint64_t)&line >= line.start && (uint64_t)&line < line.end) {
			start->main_stack_start = line.start;
			start->main_stack_end = line.end;
		}
	}
	fclose(maps);
	start->main_stack_gap = MAIN_STACK_GAP;
}

static void *map_new(const char *name, uint64_t bytes, int *fd)
{
	void *address;

	*fd = memfd_create(name, MFD_CLOEXEC);
	assert_true(*fd >= 0);
	assert_int_equal(ftruncate(*fd, (off_t)bytes), 0);
	address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_true(address != MAP_FAILED);
	return address;
}

void fixture_open(struct fixture *f, uint64_t rate_bytes, const char *payload_path)
{
	struct unwind_header *tables;

	memset(f, 0, sizeof(*f));
	f->dump = map_new("dump", FIXTURE_DUMP_BYTES, &f->dump_fd);
	f->tables = map_new("tables", FIXTURE_TABLES_BYTES, &f->tables_fd);
	f->payload_fd = open(payload_path, O_RDONLY | O_CLOEXEC);
	assert_true(f->payload_fd >= 0);
	f->dump_end = DUMP_HEADER_BYTES;
	f->tables_end = sizeof(struct unwind_header);

	memcpy(f->dump->magic, DUMP_MAGIC, sizeof(f->dump->magic));
	f->dump->version = DUMP_VERSION;
	f->dump->header_bytes = DUMP_HEADER_BYTES;
	f->dump->state = DUMP_STATE_RUNNING;
	f->dump->rate_bytes = f->dump->first_rate_bytes = rate_bytes;
	tables = (struct unwind_header *)f->tables;
	tables->magic = UNWIND_MAGIC;
	tables->version = UNWIND_VERSION;

	f->start = (struct control_start){
		.dump_fd = f->dump_fd,
		.tables_fd = f->tables_fd,
		.payload_fd = f->payload_fd,
		.filter_log2 = rate_bytes == 1 ? FILTER_NONE : 16,
		.dump_max_bytes = FIXTURE_DUMP_BYTES,
		.tables_max_bytes = FIXTURE_TABLES_BYTES,
		.rate_bytes = rate_bytes,
		.seed = 20240229,
		.session_id = 42,
	};
	find_main_stack(&f->start);
}

void fixture_close(struct fixture *f)
{
	munmap(f->dump, FIXTURE_DUMP_BYTES);
	munmap(f->tables, FIXTURE_TABLES_BYTES);
	close(f->dump_fd);
	close(f->tables_fd);
	close(f->payload_fd);
}

uint64_t fixture_region(struct fixture *f, uint32_t kind, uint64_t bytes, uint64_t entries)
{
	uint32_t n = f->dump->region_count, serial = 0;
	uint64_t offset = f->dump_end;

	bytes = (bytes + DUMP_REGION_ALIGN - 1) / DUMP_REGION_ALIGN * DUMP_REGION_ALIGN;
	assert_true(offset + bytes <= FIXTURE_DUMP_BYTES);
	for (uint32_t i = 0; i < n; i++)
		serial += f->dump->regions[i].kind == kind;
	f->dump->regions[n] = (struct dump_region){
		.kind = kind,
		.serial = serial,
		.offset = offset,
		.bytes = bytes,
		.entries = entries,
	};
	f->dump_end += bytes;
	__atomic_store_n(&f->dump->region_count, n + 1, __ATOMIC_RELEASE);
	return offset;
}

void fixture_regions(struct fixture *f)
{
	fixture_region(f, DUMP_REGION_LIVE, DUMP_LIVE_BYTES(65536u), 65536);
	fixture_region(f, DUMP_REGION_STACK_INDEX, 4096 * DUMP_INDEX_ENTRY_BYTES, 4096);
	fixture_region(f, DUMP_REGION_STACKS, 8 << 20, 0);
	fixture_region(f, DUMP_REGION_HISTORY, 1024 * 4096, 1024);
}

uint64_t fixture_rows(struct fixture *f, const uint32_t *pcs, const uint32_t *rules, uint32_t count)
{
	uint64_t offset = f->tables_end, bytes = count * sizeof(uint32_t);

	memcpy(f->tables + offset, pcs, bytes);
	memcpy(f->tables + offset + bytes, rules, bytes);
	f->tables_end += 2 * bytes;
	return offset;
}

void fixture_index(struct fixture *f, const struct unwind_module *modules, uint32_t module_count,
                   const struct unwind_range *ranges, uint32_t range_count)
{
	struct unwind_header *header = (struct unwind_header *)f->tables;
	struct unwind_index *index = (struct unwind_index *)(f->tables + f->tables_end);
	uint8_t *at = (uint8_t *)(index + 1);

	index->generation = ++f->generation;
	index->module_count = module_count;
	index->range_count = range_count;
	if (module_count)
		memcpy(at, modules, module_count * sizeof(*modules));
	at += module_count * sizeof(*modules);
	if (range_count)
		memcpy(at, ranges, range_count * sizeof(*ranges));
	at += range_count * sizeof(*ranges);
	__atomic_store_n(&header->index_offset, f->tables_end, __ATOMIC_RELEASE);
	f->tables_end = (uint64_t)(at - f->tables);
}

void fixture_inert(struct memattach_session *session)
{
	struct trampoline *list = (struct trampoline *)trampoline_data(session->trampolines_address, 0);

	__atomic_store_n((uint32_t *)session->switch_address, 0, __ATOMIC_SEQ_CST);
	((struct counted_function *)session->counted_function_address)->jump = 0;
	for (uint32_t i = 0; i < session->trampoline_count; i++)
		list[i].next = list[i].original;
	*(uint64_t *)(session->trampolines_address + TRAMPOLINES_CODE_BYTES + TRAMPOLINES_NEAR_OWNER) = 0;
	session->state = SESSION_INERT;
}

void fixture_index_self(struct fixture *f, uint32_t id)
{
	struct unwind_module module = { .id = id };
	static struct unwind_range ranges[4096];
	uint64_t here = (uint64_t)fixture_index_self;
	uint32_t count = 0;
	struct maps_line line;
	FILE *maps = fopen("/proc/self/maps", "re");

	assert_non_null(maps);
	while (count < 4096 && maps_line(maps, &line)) {
		uint32_t flags = line.protection & PROT_EXEC ? UNWIND_RANGE_EXEC : 0;

		if ((line.protection & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE))
			flags |= UNWIND_RANGE_STACK;
		if (!flags)
			continue;
		if (here >= line.start && here < line.end) {
			module.start = line.start;
			module.end = line.end;
		}
		ranges[count++] = (struct unwind_range){ .start = line.start, .end = line.end, .flags = flags };
	}
	fclose(maps);
	fixture_index(f, &module, 1, ranges, count);
}

uint64_t fixture_counter(const struct fixture *f, enum dump_counter counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < DUMP_COUNTER_SHARDS; i++)
		sum += __atomic_load_n(&f->dump->counters[i][counter], __ATOMIC_RELAXED);
	return sum;
}

static const uint8_t *region_bytes(const struct fixture *f, uint32_t i)
{
	return (const uint8_t *)f->dump + f->dump->regions[i].offset;
}

/* The records of an address, or all of address 0: copies of the first `most`, and how many there are. */
static uint64_t live_scan(const struct fixture *f, uint64_t address, struct dump_live_record *copies, uint64_t most)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < f->dump->region_count; i++) {
		uint64_t entries = f->dump->regions[i].entries;
		const struct dump_live_record *records =
			(const void *)(region_bytes(f, i) + DUMP_LIVE_RECORDS_AT(entries));

		if (f->dump->regions[i].kind != DUMP_REGION_LIVE)
			continue;
		for (uint64_t k = 0; k < entries; k++) {
			uint64_t key = __atomic_load_n(&records[k].address, __ATOMIC_ACQUIRE);

			if (DUMP_KEY_IS_FREE(key) || key == DUMP_KEY_BUSY || (address && key != address))
				continue;
			if (found < most)
				copies[found] = records[k];
			found++;
		}
	}
	return found;
}

bool fixture_live(const struct fixture *f, const void *address, struct dump_live_record *record)
{
	uint64_t found = live_scan(f, (uint64_t)address, record, record ? 1 : 0);

	assert_true(found <= 1);
	return found == 1;
}

uint64_t fixture_live_count(const struct fixture *f)
{
	return live_scan(f, 0, NULL, 0);
}

uint64_t fixture_all_live(const struct fixture *f, struct dump_live_record *records, uint64_t most)
{
	return live_scan(f, 0, records, most);
}

static uint64_t history_scan(const struct fixture *f, uint64_t wanted, struct dump_history_record *record)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->dump->region_count; i++) {
		const struct dump_history_block *blocks = (const void *)region_bytes(f, i);

		if (f->dump->regions[i].kind != DUMP_REGION_HISTORY)
			continue;
		for (uint64_t b = 0; b < f->dump->regions[i].entries; b++) {
			for (uint32_t r = 0; blocks[b].sequence && r < blocks[b].used; r++, n++) {
				if (record && n == wanted)
					*record = blocks[b].records[r];
			}
		}
	}
	return n;
}

uint64_t fixture_history_count(const struct fixture *f)
{
	return history_scan(f, 0, NULL);
}

bool fixture_history(const struct fixture *f, uint64_t n, struct dump_history_record *record)
{
	return history_scan(f, n, record) > n;
}

const struct dump_stack *fixture_stack(const struct fixture *f, uint32_t reference)
{
	return reference ? (const void *)((const uint8_t *)f->dump + (uint64_t)reference * DUMP_STACK_ALIGN) : NULL;
}
