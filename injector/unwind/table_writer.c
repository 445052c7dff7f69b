/* SPDX-License-Identifier: MIT */
#include "unwind/table_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "unwind/unwind_cache.h"
#include "unwind/unwind_worker.h"
#include "base/order.h"

#define BATCH_JOBS 128u
#define BATCH_BYTES (16ull << 20) /* of call frame information */

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define PAGE_BYTES 4096u
#define ALLOCATE_BYTES (1u << 20) /* at a time */

/* Rows that are in the file already. Without a build-id the inode and the extent of the code must do. */
struct unwind_stored {
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_bytes;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t none_; /* no padding: identities are compared as bytes */
	uint64_t inode;
	uint64_t header;
	uint64_t exec_bytes;
	uint64_t offset; /* from here on it is no part of the identity */
	uint32_t count;
};

/*
 * What the target gets allows it to read, and nothing else, also if it opens the file anew: it can neither cut the
 * file, which would be SIGBUS here, nor make holes in it, nor write. Our own mapping was there before the seal and
 * stays writable.
 */
static int seal(int fd, struct err *e)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	if (fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) == 0)
		return 0;
	/* Before Linux 5.1 the rights of the file must do. */
	if (errno != EINVAL || fchmod(fd, S_IRUSR) || fcntl(fd, F_ADD_SEALS, seals))
		return err_sys(e, "cannot seal the memory file of unwind tables");
	return 0;
}

/* Pages are made here, where it can be told that there is no memory for them. */
static int allocate(struct unwind_tables *t, uint64_t end, struct err *e)
{
	uint64_t until = (end + ALLOCATE_BYTES - 1) & ~(uint64_t)(ALLOCATE_BYTES - 1);

	if (until > t->max_bytes)
		until = t->max_bytes;
	if (until <= t->allocated)
		return 0;
	while (fallocate(t->own, 0, (off_t)t->allocated, (off_t)(until - t->allocated)) < 0)
		if (errno != EINTR)
			return err_sys(e, "no memory for unwind tables");
	t->allocated = until;
	return 0;
}

static int open_for_target(struct unwind_tables *t, struct err *e)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", t->own);
	t->fd = open(path, O_RDONLY | O_CLOEXEC);
	return t->fd < 0 ? err_sys(e, "cannot open the memory file of unwind tables") : 0;
}

static int map_own(struct unwind_tables *t, struct err *e)
{
	void *bytes = mmap(NULL, t->max_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->own, 0);

	if (bytes == MAP_FAILED)
		return err_sys(e, "cannot map the memory file of unwind tables");
	t->bytes = bytes;
	t->header = bytes;
	return 0;
}

int unwind_tables_create(struct unwind_tables *t, uint64_t max_bytes, struct err *e)
{
	struct unwind_tables new = { .fd = -1,
		                     .max_bytes = max_bytes & ~(uint64_t)(PAGE_BYTES - 1),
		                     .used = sizeof *new.header };

	new.own = memfd_create("memattach-tables", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (new.own < 0)
		return err_sys(e, "cannot create the memory file of unwind tables");
	int rc = 0;
	if (new.max_bytes < 2 * PAGE_BYTES)
		rc = err_set(e, EINVAL, "no room for unwind tables");
	else if (ftruncate(new.own, (off_t) new.max_bytes))
		rc = err_sys(e, "cannot prepare the memory file of unwind tables");
	rc = rc ?: map_own(&new, e);
	rc = rc ?: allocate(&new, new.used, e);
	rc = rc ?: open_for_target(&new, e);
	rc = rc ?: seal(new.own, e);
	if (rc < 0) {
		unwind_tables_close(&new);
		return rc;
	}
	new.header->magic = UNWIND_MAGIC;
	new.header->version = UNWIND_VERSION;
	*t = new;
	return 0;
}

void unwind_tables_close(struct unwind_tables *t)
{
	if (t->bytes)
		munmap(t->bytes, t->max_bytes);
	if (t->fd >= 0)
		close(t->fd);
	if (t->own >= 0)
		close(t->own);
	free(t->stored);
	*t = (struct unwind_tables){ .fd = -1, .own = -1 };
}

/* Writes after what is there; the room was checked. */
static int write_all(struct unwind_tables *t, const void *data, size_t bytes, uint64_t offset, struct err *e)
{
	int rc = allocate(t, offset + bytes, e);

	if (rc == 0 && bytes)
		memcpy(t->bytes + offset, data, bytes);
	return rc;
}

static int reserve(const struct unwind_tables *t, uint64_t bytes, struct err *e)
{
	return bytes > t->max_bytes - t->used ? err_set(e, ENOSPC, "the unwind tables are full") : 0;
}

static uint64_t align8(uint64_t n)
{
	return (n + 7) & ~7ull;
}

int unwind_tables_append(struct unwind_tables *t, const struct unwind_rows *rows, uint64_t *offset, struct err *e)
{
	uint64_t half = rows->count * sizeof(uint32_t), start = t->used;

	if (rows->count == 0) {
		*offset = 0;
		return 0;
	}
	int r = reserve(t, align8(2 * half), e);
	r = r ?: write_all(t, rows->pc, half, start, e);
	r = r ?: write_all(t, rows->rule, half, start + half, e);
	if (r)
		return r;
	t->used = align8(start + 2 * half);
	*offset = start;
	return 0;
}

ORDER_BY(compare_modules, struct unwind_module, start);

int unwind_tables_publish(struct unwind_tables *t, struct unwind_module *modules, uint32_t module_count,
                          const struct unwind_range *ranges, uint32_t range_count, struct err *e)
{
	uint32_t kept = 0;

	qsort(modules, module_count, sizeof *modules, compare_modules);
	for (uint32_t i = 0; i < module_count; i++)
		if (modules[i].start < modules[i].end && (kept == 0 || modules[i].start >= modules[kept - 1].end))
			modules[kept++] = modules[i];
	struct unwind_index index = { .generation = t->generation + 1,
		                      .module_count = kept,
		                      .range_count = range_count };
	uint64_t at = t->used, module_bytes = kept * sizeof *modules, range_bytes = range_count * sizeof *ranges;
	int r = reserve(t, sizeof index + module_bytes + range_bytes, e);
	r = r ?: write_all(t, &index, sizeof index, at, e);
	r = r ?: write_all(t, modules, module_bytes, at + sizeof index, e);
	r = r ?: write_all(t, ranges, range_bytes, at + sizeof index + module_bytes, e);
	if (r)
		return r;
	t->used = align8(at + sizeof index + module_bytes + range_bytes);
	t->generation++;
	/* Partner: the payload's acquire at the start of each stack. */
	__atomic_store_n(&t->header->index_offset, at, __ATOMIC_RELEASE);
	return 0;
}

/* ---- ranges ---- */

static bool is_anonymous(const struct mapping *m)
{
	return !m->inode && !m->path[0];
}

/* Reserved right behind code that the process makes itself: a JVM puts more of it there, page by page. */
static bool is_room_for_code(const struct maps *maps, size_t i)
{
	const struct mapping *m = &maps->list[i], *code = i ? m - 1 : NULL;

	return !m->prot && is_anonymous(m) && code && code->end == m->start && code->prot & PROT_EXEC &&
	       is_anonymous(code);
}

static bool are_of_one_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* Mappings beside each other of one file: a module, if one of them is executable. */
struct file_run {
	size_t end;
	bool module;
};

static struct file_run run_from(const struct maps *maps, size_t first)
{
	struct file_run run = { .end = first };

	for (; run.end < maps->count && are_of_one_file(&maps->list[run.end], &maps->list[first]); run.end++)
		run.module |= maps->list[run.end].prot & PROT_EXEC;
	return run;
}

/* Shared memory without a descriptor looks like this one. */
static bool is_file(const struct mapping *m)
{
	return m->inode && !(m->deleted && !strcmp(m->path, "/dev/zero"));
}

static uint32_t range_flags(const struct maps *maps, size_t i, const struct file_run *run)
{
	const struct mapping *m = &maps->list[i];
	bool stack = (m->prot & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE) && !m->shared;

	bool code = m->prot & PROT_EXEC || is_room_for_code(maps, i);

	bool file = is_file(m) && !run->module;

	return (stack ? UNWIND_RANGE_STACK : 0) | (code ? UNWIND_RANGE_EXEC : 0) | (file ? UNWIND_RANGE_FILE : 0);
}

int unwind_ranges(const struct maps *maps, struct unwind_range **ranges, uint32_t *count, struct err *e)
{
	struct unwind_range *list = calloc(maps->count + 1, sizeof *list);
	struct file_run run = { 0 };
	uint32_t n = 0;

	if (!list)
		return err_set(e, ENOMEM, "no memory for the list of ranges");
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *m = &maps->list[i];
		if (i == run.end)
			run = run_from(maps, i);
		uint32_t flags = range_flags(maps, i, &run);

		if (!flags)
			continue;
		if (n && list[n - 1].end == m->start && list[n - 1].flags == flags)
			list[n - 1].end = m->end;
		else
			list[n++] = (struct unwind_range){ .start = m->start, .end = m->end, .flags = flags };
	}
	*ranges = list;
	*count = n;
	return 0;
}

/* ---- compiling many modules ---- */

static struct unwind_stored identity(const struct elf_module *m)
{
	struct unwind_stored s = { .build_id_bytes = m->build_id_bytes, .exec_bytes = m->exec_end - m->exec_start };

	memcpy(s.build_id, m->build_id, m->build_id_bytes);
	if (s.build_id_bytes == 0) {
		s.dev_major = m->dev_major;
		s.dev_minor = m->dev_minor;
		s.inode = m->inode;
		s.header = m->header;
	}
	return s;
}

static int compare_stored(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct unwind_stored, offset));
}

/* The list is sorted. */
static const struct unwind_stored *find_stored(const struct unwind_tables *t, const struct elf_module *m)
{
	const struct unwind_stored wanted = identity(m);

	return t->stored_count ? bsearch(&wanted, t->stored, t->stored_count, sizeof wanted, compare_stored) : NULL;
}

/* Appends rows and remembers them; the list is sorted later. */
static int store(struct unwind_tables *t, const struct elf_module *m, const struct unwind_rows *rows, struct err *e)
{
	struct unwind_stored s = identity(m);

	if (!grow_list(t->stored, t->stored_count))
		return err_set(e, ENOMEM, "no memory for unwind tables");
	s.count = rows->count;
	int r = unwind_tables_append(t, rows, &s.offset, e);
	if (!r)
		t->stored[t->stored_count++] = s;
	return r;
}

static bool needs_rows(const struct elf_module *m)
{
	return m->id != 0 && m->exec_end > m->exec_start;
}

/* A module that is to be compiled; of those that are alike only one is. */
struct missing {
	struct unwind_stored identity;
	size_t index; /* in modules.list */
};

static int compare_missing(const void *a, const void *b)
{
	const struct missing *x = a, *y = b;
	int order = compare_stored(&x->identity, &y->identity);

	return order ? order : (x->index > y->index) - (x->index < y->index);
}

static size_t list_missing(struct missing *list, const struct unwind_tables *t, const struct modules *m,
                           struct unwind_coverage *coverage)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < m->count; i++) {
		coverage[i].reused = needs_rows(&m->list[i]) && find_stored(t, &m->list[i]);
		if (needs_rows(&m->list[i]) && !coverage[i].reused)
			list[count++] = (struct missing){ identity(&m->list[i]), i };
	}
	qsort(list, count, sizeof *list, compare_missing);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || compare_stored(&list[i].identity, &list[kept - 1].identity) != 0)
			list[kept++] = list[i];
	return kept;
}

/* Jobs that go to one child. Their files are open, and what they are compiled from is in memory: both are limited. */
struct batch {
	struct unwind_job jobs[BATCH_JOBS];
	size_t index[BATCH_JOBS]; /* in modules.list */
	struct cache_key keys[BATCH_JOBS];
	bool keyed[BATCH_JOBS];
	size_t count;
	uint64_t bytes;
};

static void finish_job(struct unwind_tables *t, const struct unwind_job *job, struct unwind_coverage *coverage)
{
	struct err e = job->error;

	/* A table that finds no room is as one that cannot be compiled. */
	if (job->result < 0 || store(t, job->file.module, &job->rows, &e) < 0)
		snprintf(coverage->text, sizeof coverage->text, "%.110s", e.text);
	else if (job->rows.count == 0)
		snprintf(coverage->text, sizeof coverage->text, "it has no call frame information");
}

static void run_batch(struct unwind_tables *t, struct batch *b, struct unwind_coverage *coverage)
{
	if (b->count)
		unwind_worker_run(b->jobs, b->count);
	for (size_t i = 0; i < b->count; i++) {
		struct unwind_job *job = &b->jobs[i];

		if (!job->result && b->keyed[i] && !job->input.by_section)
			unwind_cache_store(t->cache, &b->keys[i], &job->rows);
		finish_job(t, job, &coverage[b->index[i]]);
		unwind_rows_done(&job->rows);
		unwind_input_done(&job->input);
		module_file_close(&job->file);
	}
	b->count = 0;
	b->bytes = 0;
}

/* Takes the rows from the cache, or puts the module into the batch. */
static void take_module(struct unwind_tables *t, struct batch *b, const struct elf_module *m, size_t index,
                        const struct target_memory *tm, const struct maps *maps, struct unwind_coverage *coverage)
{
	struct unwind_job *job = &b->jobs[b->count];

	*job = (struct unwind_job){ 0 };
	module_file_open(&job->file, m, tm, maps);
	unwind_input_read(&job->input, &job->file);
	b->keyed[b->count] = t->cache && unwind_input_key(&job->input, &b->keys[b->count]);
	if (b->keyed[b->count] &&
	    unwind_cache_load(t->cache, &b->keys[b->count], m->exec_end - m->exec_start, &job->rows)) {
		finish_job(t, job, &coverage[index]);
		unwind_rows_done(&job->rows);
		unwind_input_done(&job->input);
		module_file_close(&job->file);
		return;
	}
	b->index[b->count++] = index;
	b->bytes += job->input.bytes;
}

int unwind_tables_compile(struct unwind_tables *t, const struct modules *m, const struct target_memory *memory,
                          const struct maps *maps, struct unwind_coverage *coverage, struct err *e)
{
	struct budget budget;
	const struct target_memory metered = target_memory_charged(memory, &budget);
	AUTO_FREE struct missing *missing = calloc(m->count + 1, sizeof *missing);
	AUTO_FREE struct batch *b = calloc(1, sizeof *b);

	if (!missing || !b)
		return err_set(e, ENOMEM, "no memory for unwind tables");
	budget_start(&budget, BUDGET_FRAMES_BYTES, BUDGET_PLAN_WORK);
	size_t count = list_missing(missing, t, m, coverage);
	for (size_t i = 0; i < count; i++) {
		take_module(t, b, &m->list[missing[i].index], missing[i].index, &metered, maps, coverage);
		if (b->count == BATCH_JOBS || b->bytes >= BATCH_BYTES || i + 1 == count)
			run_batch(t, b, coverage);
	}
	run_batch(t, b, coverage);
	if (t->stored_count)
		qsort(t->stored, t->stored_count, sizeof *t->stored, compare_stored);
	for (size_t i = 0; i < m->count; i++) {
		const struct unwind_stored *s = needs_rows(&m->list[i]) ? find_stored(t, &m->list[i]) : NULL;
		coverage[i].rows = s ? s->count : 0;
	}
	return 0;
}

bool unwind_tables_rows(const struct unwind_tables *t, const struct elf_module *m, struct unwind_rows *rows)
{
	const struct unwind_stored *s = needs_rows(m) ? find_stored(t, m) : NULL;

	if (!s || !s->count)
		return false;
	uint32_t *words = (uint32_t *)(void *)(t->bytes + s->offset);
	*rows = (struct unwind_rows){ .pc = words, .rule = words + s->count, .count = s->count };
	return true;
}

int unwind_tables_index(struct unwind_tables *t, const struct modules *m, const struct maps *maps, struct err *e)
{
	AUTO_FREE struct unwind_module *list = calloc(m->count + 1, sizeof *list);
	AUTO_FREE struct unwind_range *ranges = NULL;
	uint32_t count = 0, range_count;

	if (!list)
		return err_set(e, ENOMEM, "no memory for unwind tables");
	int r = unwind_ranges(maps, &ranges, &range_count, e);
	if (r)
		return r;
	for (size_t i = 0; i < m->count; i++) {
		const struct elf_module *module = &m->list[i];
		const struct unwind_stored *s = needs_rows(module) ? find_stored(t, module) : NULL;

		if (module->exec_end > module->exec_start)
			list[count++] = (struct unwind_module){ .start = module->exec_start,
				                                .end = module->exec_end,
				                                .rows_offset = s ? s->offset : 0,
				                                .row_count = s ? s->count : 0,
				                                .id = module->id };
	}
	return unwind_tables_publish(t, list, count, ranges, range_count, e);
}

int unwind_tables_update(struct unwind_tables *t, const struct modules *m, const struct target_memory *tm,
                         const struct maps *maps, struct unwind_coverage *coverage, struct err *e)
{
	AUTO_FREE struct unwind_coverage *own = calloc(m->count + 1, sizeof *own);

	if (!own)
		return err_set(e, ENOMEM, "no memory for unwind tables");
	int r = unwind_tables_compile(t, m, tm, maps, own, e);
	r = r ?: unwind_tables_index(t, m, maps, e);
	if (!r && coverage)
		memcpy(coverage, own, m->count * sizeof *own);
	return r;
}
