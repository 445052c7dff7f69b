/* SPDX-License-Identifier: MIT */
/* Records of the dump that memattach itself writes: modules, threads, notes, what was measured, and Java's names. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "arch/java_frame.h"
#include "base/grow.h"
#include "recording/dump_writer_internal.h"

struct record_part {
	const void *data;
	size_t bytes;
};

/* A record of more after a fixed part whose first word is its size, released last. */
static int add_long_record(struct dump_writer *w, uint32_t kind, struct record_part fixed, struct record_part more,
                           uint64_t *offset, struct err *e)
{
	void *record;
	uint64_t bytes = dump_writer_align(fixed.bytes + more.bytes, 16);

	int rc = dump_writer_take(w, kind, bytes, &record, offset, e);
	if (rc < 0)
		return rc;
	memcpy((char *)record + 4, (const char *)fixed.data + 4, fixed.bytes - 4);
	if (more.bytes)
		memcpy((char *)record + fixed.bytes, more.data, more.bytes);
	atomic_store_explicit(dump_writer_u32(record), (uint32_t)bytes, memory_order_release);
	return 0;
}

/* The same of a text, or of nothing. */
static int add_record(struct dump_writer *w, uint32_t kind, struct record_part fixed, const char *text,
                      uint64_t *offset, struct err *e)
{
	return add_long_record(w, kind, fixed, (struct record_part){ text, text ? strlen(text) + 1 : 0 }, offset, e);
}

int dump_writer_module(struct dump_writer *w, const struct elf_module *m, uint32_t rows, uint32_t entries,
                       uint32_t flags, struct err *e)
{
	struct dump_module record = {
		.id = m->id,
		.start = m->start,
		.end = m->end,
		.bias = m->bias,
		.loaded_stamp = clock_dump_stamp(),
		.unwind_rows = rows,
		.got_entries = entries,
		.flags = flags | (m->is_main ? DUMP_MODULE_MAIN : 0) | (m->is_vdso ? DUMP_MODULE_VDSO : 0),
		.build_id_bytes = m->build_id_bytes < DUMP_BUILD_ID_MAX ? m->build_id_bytes : DUMP_BUILD_ID_MAX,
	};

	memcpy(record.build_id, m->build_id, record.build_id_bytes);
	if (!grow_list(w->modules, w->module_count))
		return err_set(e, ENOMEM, "out of memory");
	struct writer_module *module = &w->modules[w->module_count];
	int rc = add_record(w, DUMP_REGION_MODULES, (struct record_part){ &record, sizeof record }, m->path,
	                    &module->offset, e);
	if (rc == 0) {
		module->id = m->id;
		w->module_count++;
	}
	return rc;
}

void dump_writer_module_gone(struct dump_writer *w, uint32_t id)
{
	for (size_t i = 0; i < w->module_count; i++) {
		if (w->modules[i].id != id)
			continue;
		struct dump_module *record = dump_writer_at(w, w->modules[i].offset);
		atomic_store_explicit(dump_writer_u64(&record->unloaded_stamp), clock_dump_stamp(),
		                      memory_order_relaxed);
		w->modules[i] = w->modules[--w->module_count];
		return;
	}
}

int dump_writer_thread(struct dump_writer *w, uint32_t tid, const char *name, struct err *e)
{
	struct dump_thread record = { .tid = tid };

	uint64_t offset;

	snprintf(record.name, sizeof record.name, "%s", name);
	return add_record(w, DUMP_REGION_THREADS, (struct record_part){ &record, sizeof record }, NULL, &offset, e);
}

int dump_writer_note(struct dump_writer *w, enum dump_note_kind kind, const char *text, struct err *e)
{
	struct dump_note record = { .kind = kind };
	uint64_t offset;

	return add_record(w, DUMP_REGION_NOTES, (struct record_part){ &record, sizeof record }, text, &offset, e);
}

void dump_writer_python(struct dump_writer *w, uint32_t version, const struct dump_evaluator *evaluators)
{
	memcpy(w->own->evaluators, evaluators, sizeof w->own->evaluators);
	memcpy(w->shared->evaluators, evaluators, sizeof w->shared->evaluators);
	w->own->python_version = version;
	atomic_store_explicit(dump_writer_u32(&w->shared->python_version), version, memory_order_release);
}

int dump_writer_path(struct dump_writer *w, const char *text, struct err *e)
{
	struct dump_path record = { 0 };
	uint64_t offset;

	return add_record(w, DUMP_REGION_PATHS, (struct record_part){ &record, sizeof record }, text, &offset, e);
}

int dump_writer_memory(struct dump_writer *w, const struct dump_memory *row, const char *name, struct err *e)
{
	char cut[DUMP_MEMORY_NAME_MAX];
	uint64_t offset;

	snprintf(cut, sizeof cut, "%s", name);
	return add_record(w, DUMP_REGION_MEMORY, (struct record_part){ row, sizeof *row }, cut, &offset, e);
}

int dump_writer_look(struct dump_writer *w, const struct dump_look *look, const char *text, struct err *e)
{
	char cut[DUMP_MEMORY_NAME_MAX];
	uint64_t offset;

	snprintf(cut, sizeof cut, "%s", text);
	return add_record(w, DUMP_REGION_MEMORY, (struct record_part){ look, sizeof *look }, cut, &offset, e);
}

int dump_writer_usage(struct dump_writer *w, const struct dump_usage *usage, struct err *e)
{
	uint64_t offset;

	return add_record(w, DUMP_REGION_USAGE, (struct record_part){ usage, sizeof *usage }, NULL, &offset, e);
}

int dump_writer_block_name(struct dump_writer *w, const struct dump_block_name *name, const char *text, struct err *e)
{
	uint64_t offset;

	return add_record(w, DUMP_REGION_BLOCKS, (struct record_part){ name, sizeof *name }, text, &offset, e);
}

int dump_writer_blocks(struct dump_writer *w, const struct dump_block *blocks, uint32_t count, struct err *e)
{
	const struct dump_block_list list = { .kind = DUMP_BLOCK_LIST, .count = count };
	uint64_t offset;

	return add_long_record(w, DUMP_REGION_BLOCKS, (struct record_part){ &list, sizeof list },
	                       (struct record_part){ blocks, count * sizeof *blocks }, &offset, e);
}

int dump_writer_block_look(struct dump_writer *w, const struct dump_block_look *look, const char *text, struct err *e)
{
	uint64_t offset;

	return add_record(w, DUMP_REGION_BLOCKS, (struct record_part){ look, sizeof *look }, text, &offset, e);
}

void dump_writer_java(struct dump_writer *w, uint32_t version)
{
	w->own->java_version = w->shared->java_version = version;
	w->own->features |= JAVA_FRAME_FEATURE;
	w->shared->features = w->own->features;
}

int dump_writer_java_method(struct dump_writer *w, uint32_t id, uint32_t flags, const char *name, const char *file,
                            struct err *e)
{
	struct dump_java_method record = { .kind = DUMP_JAVA_METHOD, .id = id, .flags = flags };
	char texts[DUMP_JAVA_TEXT_MAX];
	uint64_t offset;

	size_t name_bytes = (size_t)snprintf(texts, sizeof texts - 1, "%s", name) + 1;
	name_bytes = name_bytes < sizeof texts ? name_bytes : sizeof texts - 1;
	size_t room = sizeof texts - name_bytes,
	       file_bytes = (size_t)snprintf(texts + name_bytes, room, "%s", file) + 1;
	record.name_bytes = (uint16_t)name_bytes;
	return add_long_record(w, DUMP_REGION_JAVA, (struct record_part){ &record, sizeof record },
	                       (struct record_part){ texts, name_bytes + (file_bytes < room ? file_bytes : room) },
	                       &offset, e);
}

int dump_writer_java_calls(struct dump_writer *w, uint64_t frame, uint32_t flags, const struct dump_java_call *calls,
                           uint32_t count, uint64_t *offset, struct err *e)
{
	struct dump_java_calls record = {
		.kind = DUMP_JAVA_CALLS, .count = (uint16_t)count, .frame = frame, .flags = flags
	};

	return add_long_record(w, DUMP_REGION_JAVA, (struct record_part){ &record, sizeof record },
	                       (struct record_part){ calls, count * sizeof *calls }, offset, e);
}

void dump_writer_java_gone(struct dump_writer *w, uint64_t offset)
{
	struct dump_java_calls *record = dump_writer_at(w, offset);

	atomic_store_explicit(dump_writer_u32(&record->gone), 1, memory_order_relaxed);
}

void dump_writer_java_age(struct dump_writer *w, uint64_t age)
{
	w->own->java_age = age;
	atomic_store_explicit(dump_writer_u64(&w->shared->java_age), age, memory_order_relaxed);
}

void dump_writer_java_behind(struct dump_writer *w, bool behind)
{
	atomic_store_explicit(dump_writer_u64(&w->shared->java_behind), behind, memory_order_release);
}

static int keep_thinning(struct dump_writer *w, const struct dump_rate_change *change, struct err *e)
{
	if (!grow_list(w->thinnings, w->thinning_count))
		return err_set(e, ENOMEM, "out of memory");
	w->thinnings[w->thinning_count] = (struct thinning){ change->stamp, change->thinned_bytes };
	return 0;
}

int dump_writer_rate(struct dump_writer *w, const struct dump_rate_change *change, struct err *e)
{
	struct dump_header *own = w->own;
	uint64_t offset;

	int rc = change->thinned_bytes ? keep_thinning(w, change, e) : 0;
	/* Recorded first: a reader never finds a sample with a rate that it cannot know of. */
	rc = rc ?: add_record(w, DUMP_REGION_RATES, (struct record_part){ change, sizeof *change }, NULL, &offset, e);
	if (change->new_bytes > 1)
		own->features &= ~DUMP_FEATURE_EXACT;
	own->rate_bytes = change->new_bytes;
	w->shared->features = own->features;
	atomic_store_explicit(dump_writer_u64(&w->shared->rate_bytes), own->rate_bytes, memory_order_release);
	if (rc == 0 && change->thinned_bytes) {
		own->thinnings = (uint32_t)++w->thinning_count;
		/* Acquired by readers at their end: what is removed after this, they know of or read again. */
		atomic_store_explicit(dump_writer_u32(&w->shared->thinnings), own->thinnings, memory_order_seq_cst);
	}
	return rc;
}

uint64_t dump_writer_rate_changes_left(const struct dump_writer *w)
{
	const struct writer_arena *arena = &w->arenas[DUMP_REGION_RATES];

	return (arena->bytes - sizeof(struct dump_arena) - arena->used) / sizeof(struct dump_rate_change);
}
