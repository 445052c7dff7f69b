/* SPDX-License-Identifier: MIT */
/* The records of a dump that memattach alone has written: modules, threads, notes, rates, paths, Java, what its memory
 * is, and its blocks. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/dump_internal.h"

#define ARENA_RECORD_MAX 65536u

/* The head that module, thread and note records have in common. */
struct arena_record {
	uint32_t bytes;
};

/*
 * Walks the arenas of a kind. A record is handed out as a copy of its bytes, at least minimum of them, followed by a
 * zero byte, so that a string at its end is terminated.
 */
static int each_arena_record(struct dump *dump, uint32_t kind, size_t minimum, enum dump_skip reason,
                             int (*fn)(void *arg, char *record, uint32_t bytes), void *arg)
{
	AUTO_FREE char *buffer = malloc(ARENA_RECORD_MAX + 8);

	if (!buffer)
		return -ENOMEM;
	for (uint32_t i = 0; i < dump->region_count; i++) {
		const struct dump_region *region = &dump->regions[i];
		struct dump_arena arena;
		if (region->kind != kind || dump_read(dump, region->offset, &arena, sizeof arena) != sizeof arena)
			continue;
		uint64_t at = region->offset + sizeof arena;
		uint64_t end = dump_region_end(dump, region);
		if (end > at && arena.used < end - at)
			end = at + arena.used;
		while (at + sizeof(struct arena_record) <= end) {
			struct arena_record head;
			if (dump_read(dump, at, &head, sizeof head) != sizeof head || !head.bytes)
				break;
			if (head.bytes < minimum || head.bytes > ARENA_RECORD_MAX || head.bytes > end - at ||
			    dump_read(dump, at, buffer, head.bytes) != head.bytes) {
				dump_skip(dump, reason); /* where the next one begins is not known either */
				break;
			}
			memset(buffer + head.bytes, 0, 8);
			int r = fn(arg, buffer, head.bytes);
			if (r)
				return r;
			at += (head.bytes + 15u) & ~15u;
		}
	}
	return 0;
}

struct visit {
	struct dump *dump;
	int (*module)(void *, const struct dump_module *);
	int (*thread)(void *, const struct dump_thread *);
	int (*note)(void *, uint32_t, const char *);
	int (*rate)(void *, const struct dump_rate_change *);
	int (*path)(void *, const char *);
	void *arg;
};

static int visit_module(void *arg, char *record, uint32_t bytes)
{
	struct visit *v = arg;
	struct dump_module *module = (struct dump_module *)record;

	(void)bytes;
	if (!module->id || module->id > UINT16_MAX || module->build_id_bytes > DUMP_BUILD_ID_MAX ||
	    module->start >= module->end) {
		dump_skip(v->dump, DUMP_SKIP_module);
		return 0;
	}
	return v->module(v->arg, module);
}

static int visit_thread(void *arg, char *record, uint32_t bytes)
{
	struct visit *v = arg;
	struct dump_thread *thread = (struct dump_thread *)record;

	(void)bytes;
	thread->name[sizeof thread->name - 1] = 0;
	return v->thread(v->arg, thread);
}

static int visit_note(void *arg, char *record, uint32_t bytes)
{
	struct visit *v = arg;
	struct dump_note *note = (struct dump_note *)record;

	(void)bytes;
	return v->note(v->arg, note->kind, note->text);
}

static int visit_path(void *arg, char *record, uint32_t bytes)
{
	struct visit *v = arg;

	(void)bytes;
	return v->path(v->arg, ((struct dump_path *)record)->text);
}

int dump_each_module(struct dump *dump, int (*fn)(void *arg, const struct dump_module *module), void *arg)
{
	struct visit v = { .dump = dump, .module = fn, .arg = arg };

	return each_arena_record(dump, DUMP_REGION_MODULES, sizeof(struct dump_module), DUMP_SKIP_module, visit_module,
	                         &v);
}

int dump_each_thread(struct dump *dump, int (*fn)(void *arg, const struct dump_thread *thread), void *arg)
{
	struct visit v = { .dump = dump, .thread = fn, .arg = arg };

	return each_arena_record(dump, DUMP_REGION_THREADS, sizeof(struct dump_thread), DUMP_SKIP_thread, visit_thread,
	                         &v);
}

int dump_each_note(struct dump *dump, int (*fn)(void *arg, uint32_t kind, const char *text), void *arg)
{
	struct visit v = { .dump = dump, .note = fn, .arg = arg };

	return each_arena_record(dump, DUMP_REGION_NOTES, sizeof(struct dump_note), DUMP_SKIP_note, visit_note, &v);
}

int dump_each_path(struct dump *dump, int (*fn)(void *arg, const char *text), void *arg)
{
	struct visit v = { .dump = dump, .path = fn, .arg = arg };

	return each_arena_record(dump, DUMP_REGION_PATHS, sizeof(struct dump_path), DUMP_SKIP_path, visit_path, &v);
}

static int visit_rate(void *arg, char *record, uint32_t bytes)
{
	struct visit *v = arg;
	const struct dump_rate_change *change = (const struct dump_rate_change *)record;

	(void)bytes;
	if (!change->old_bytes || change->old_bytes > UINT32_MAX || !change->new_bytes ||
	    change->new_bytes > UINT32_MAX || change->thinned_bytes > UINT32_MAX) {
		dump_skip(v->dump, DUMP_SKIP_rate);
		return 0;
	}
	return v->rate(v->arg, change);
}

int dump_each_rate(struct dump *dump, int (*fn)(void *arg, const struct dump_rate_change *change), void *arg)
{
	struct visit v = { .dump = dump, .rate = fn, .arg = arg };

	return each_arena_record(dump, DUMP_REGION_RATES, sizeof(struct dump_rate_change), DUMP_SKIP_rate, visit_rate,
	                         &v);
}

struct java_visit {
	struct dump *dump;
	const struct dump_java_visitor *to;
};

/* The record is followed by zeros, so its texts have ends. */
static int visit_java_method(const struct java_visit *v, const struct dump_java_method *m, uint32_t bytes)
{
	const uint32_t room = bytes - (uint32_t)sizeof *m;

	if (!m->id || m->id > DUMP_JAVA_METHODS_MAX || !m->name_bytes || m->name_bytes > room ||
	    room > DUMP_JAVA_TEXT_MAX + DUMP_STACK_ALIGN || m->text[m->name_bytes - 1]) {
		dump_skip(v->dump, DUMP_SKIP_java);
		return 0;
	}
	return v->to->method(v->to->arg, m, m->text + m->name_bytes);
}

static int visit_java(void *arg, char *record, uint32_t bytes)
{
	const struct java_visit *v = arg;
	const struct dump_java_method *m = (const struct dump_java_method *)(const void *)record;
	const struct dump_java_calls *c = (const struct dump_java_calls *)(const void *)record;

	if (m->kind == DUMP_JAVA_METHOD)
		return visit_java_method(v, m, bytes);
	if (c->kind != DUMP_JAVA_CALLS || bytes < sizeof *c || !c->count || c->count > DUMP_JAVA_DEPTH_MAX ||
	    c->count > (bytes - sizeof *c) / sizeof *c->calls ||
	    !(c->frame & DUMP_JAVA_MARK(dump_header(v->dump)->features))) {
		dump_skip(v->dump, DUMP_SKIP_java);
		return 0;
	}
	return v->to->calls(v->to->arg, c);
}

int dump_each_java(struct dump *dump, const struct dump_java_visitor *visitor)
{
	struct java_visit v = { dump, visitor };

	return each_arena_record(dump, DUMP_REGION_JAVA, sizeof(struct dump_java_method), DUMP_SKIP_java, visit_java,
	                         &v);
}

struct memory_visit {
	struct dump *dump;
	const struct dump_memory_visitor *to;
};

/* The record is followed by zeros, so its text has an end. */
static int visit_memory(void *arg, char *record, uint32_t bytes)
{
	const struct memory_visit *v = arg;
	struct dump_memory *row = (struct dump_memory *)(void *)record;

	if ((row->moment != DUMP_MEMORY_START && row->moment != DUMP_MEMORY_END) ||
	    bytes > sizeof *row + DUMP_MEMORY_NAME_MAX + DUMP_STACK_ALIGN) {
		dump_skip(v->dump, DUMP_SKIP_memory);
		return 0;
	}
	if (row->kind == DUMP_MEMORY_LOOK)
		return v->to->look(v->to->arg, (const struct dump_look *)(const void *)record);
	row->kind = row->kind < DUMP_MEMORY_KINDS ? row->kind : DUMP_MEMORY_UNKNOWN;
	return v->to->row(v->to->arg, row);
}

int dump_each_memory(struct dump *dump, const struct dump_memory_visitor *visitor)
{
	struct memory_visit v = { dump, visitor };

	return each_arena_record(dump, DUMP_REGION_MEMORY, sizeof(struct dump_memory), DUMP_SKIP_memory, visit_memory,
	                         &v);
}

struct block_visit {
	struct dump *dump;
	const struct dump_block_visitor *to;
};

static int visit_block(void *arg, char *record, uint32_t bytes)
{
	const struct block_visit *v = arg;
	struct dump_block_name *name = (struct dump_block_name *)(void *)record;
	const struct dump_block_list *list = (const struct dump_block_list *)(const void *)record;
	const bool is_name = name->kind == DUMP_BLOCK_TYPE || name->kind == DUMP_BLOCK_HOLDER;

	if (name->kind == DUMP_BLOCK_LIST && list->count && list->count <= DUMP_BLOCK_LIST_MAX &&
	    list->count <= (bytes - sizeof *list) / sizeof *list->blocks)
		return v->to->list(v->to->arg, list);
	if ((!is_name && name->kind != DUMP_BLOCK_LOOK) ||
	    bytes > sizeof *name + DUMP_BLOCK_NAME_MAX + DUMP_STACK_ALIGN) {
		dump_skip(v->dump, DUMP_SKIP_block);
		return 0;
	}
	if (!is_name)
		return v->to->look(v->to->arg, (const struct dump_block_look *)(const void *)record);
	name->source = name->source < DUMP_TYPE_SOURCES ? name->source : DUMP_TYPE_NONE;
	return v->to->name(v->to->arg, name);
}

int dump_each_block(struct dump *dump, const struct dump_block_visitor *visitor)
{
	struct block_visit v = { dump, visitor };

	return each_arena_record(dump, DUMP_REGION_BLOCKS, sizeof(struct dump_block_name), DUMP_SKIP_block, visit_block,
	                         &v);
}

struct usage_visit {
	int (*fn)(void *arg, const struct dump_usage *usage);
	void *arg;
};

static int visit_usage(void *arg, char *record, uint32_t bytes)
{
	const struct usage_visit *v = arg;

	(void)bytes;
	return v->fn(v->arg, (const struct dump_usage *)(const void *)record);
}

int dump_each_usage(struct dump *dump, int (*fn)(void *arg, const struct dump_usage *usage), void *arg)
{
	struct usage_visit v = { fn, arg };

	return each_arena_record(dump, DUMP_REGION_USAGE, sizeof(struct dump_usage), DUMP_SKIP_usage, visit_usage, &v);
}
