/* SPDX-License-Identifier: MIT */
#include "unwind_tables.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "grow.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define THREADS_MAX 8u
#define PAGE_BYTES 4096u
#define ALLOCATE_BYTES (1u << 20) /* at a time */

/* Rows that are in the file already. Without a build-id the inode and the extent of the code must do. */
struct unwind_stored {
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_bytes;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint64_t inode;
	uint64_t header;
	uint64_t exec_bytes;
	uint64_t offset;
	uint32_t count;
};

/*
 * What the target gets allows it to read, and nothing else, also if it opens the file anew: it can neither cut the file, which would be SIGBUS here, nor
 * make holes in it, nor write. Our own mapping was there before the seal and stays writable.
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
	struct unwind_tables new = { .fd = -1, .max_bytes = max_bytes & ~(uint64_t)(PAGE_BYTES - 1), .used = sizeof *new.header };

	new.own = memfd_create("memattach-tables", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (new.own < 0)
		return err_sys(e, "cannot create the memory file of unwind tables");
	int rc = 0;
	if (new.max_bytes < 2 * PAGE_BYTES)
		rc = err_set(e, EINVAL, "no room for unwind tables");
	else if (ftruncate(new.own, (off_t)new.max_bytes))
		rc = err_sys(e, "cannot prepare the memory file of unwind tables");
	if (rc == 0)
		rc = map_own(&new, e);
	if (rc == 0)
		rc = allocate(&new, new.used, e);
	if (rc == 0)
		rc = open_for_target(&new, e);
	if (rc == 0)
		rc = seal(new.own, e);
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

/* Writes behind what is there; the room was checked. */
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
	if (!r)
		r = write_all(t, rows->pc, half, start, e);
	if (!r)
		r = write_all(t, rows->rule, half, start + half, e);
	if (r)
		return r;
	t->used = align8(start + 2 * half);
	*offset = start;
	return 0;
}

static int compare_modules(const void *a, const void *b)
{
	const struct unwind_module *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

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
	if (!r)
		r = write_all(t, &index, sizeof index, at, e);
	if (!r)
		r = write_all(t, modules, module_bytes, at + sizeof index, e);
	if (!r)
		r = write_all(t, ranges, range_bytes, at + sizeof index + module_bytes, e);
	if (r)
		return r;
	t->used = align8(at + sizeof index + module_bytes + range_bytes);
	t->generation++;
	/* Partner: the payload's acquire at the start of each stack. */
	__atomic_store_n(&t->header->index_offset, at, __ATOMIC_RELEASE);
	return 0;
}

/* ---- ranges ---- */

static uint32_t range_flags(const struct mapping *m)
{
	bool stack = (m->prot & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE) && !m->shared;

	return (stack ? UNWIND_RANGE_STACK : 0) | (m->prot & PROT_EXEC ? UNWIND_RANGE_EXEC : 0);
}

int unwind_ranges(const struct maps *maps, struct unwind_range **ranges, uint32_t *count, struct err *e)
{
	struct unwind_range *list = calloc(maps->count + 1, sizeof *list);
	uint32_t n = 0;

	if (!list)
		return err_set(e, ENOMEM, "no memory for the list of ranges");
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *m = &maps->list[i];
		uint32_t flags = range_flags(m);

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

struct job {
	const struct elf_module *module;
	size_t index; /* in modules.list */
	struct unwind_rows rows;
	struct err error;
	int result;
};

struct pool {
	const struct target_memory *tm;
	const struct maps *maps;
	struct unwind_cache *cache;
	struct job *jobs;
	size_t count;
	atomic_size_t next; /* relaxed: jobs are independent, pthread_join publishes the results */
};

static void *work(void *argument)
{
	struct pool *pool = argument;

	for (;;) {
		size_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
		if (i >= pool->count)
			return NULL;
		struct job *job = &pool->jobs[i];
		struct module_file f;
		module_file_open(&f, job->module, pool->tm, pool->maps);
		job->result = unwind_compile_module(&job->rows, &f, pool->cache, &job->error);
		module_file_close(&f);
	}
}

/* The calling thread works too, so it goes on if no thread can be created. */
static void run_jobs(struct pool *pool)
{
	pthread_t threads[THREADS_MAX];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t wanted = cpus > 1 ? (size_t)cpus - 1 : 1, started = 0;

	if (wanted > THREADS_MAX)
		wanted = THREADS_MAX;
	while (started < wanted && started + 1 < pool->count &&
	       !pthread_create(&threads[started], NULL, work, pool))
		started++;
	work(pool);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

static struct unwind_stored identity(const struct elf_module *m)
{
	struct unwind_stored s = { .build_id_bytes = m->build_id_bytes,
		                   .exec_bytes = m->exec_end - m->exec_start };

	memcpy(s.build_id, m->build_id, m->build_id_bytes);
	if (s.build_id_bytes == 0) {
		s.dev_major = m->dev_major;
		s.dev_minor = m->dev_minor;
		s.inode = m->inode;
		s.header = m->header;
	}
	return s;
}

static const struct unwind_stored *find_stored(const struct unwind_tables *t, const struct elf_module *m)
{
	struct unwind_stored wanted = identity(m);

	for (size_t i = 0; i < t->stored_count; i++) {
		const struct unwind_stored *s = &t->stored[i];
		if (s->exec_bytes == wanted.exec_bytes && s->build_id_bytes == wanted.build_id_bytes &&
		    !memcmp(s->build_id, wanted.build_id, sizeof s->build_id) && s->inode == wanted.inode &&
		    s->dev_major == wanted.dev_major && s->dev_minor == wanted.dev_minor &&
		    s->header == wanted.header)
			return s;
	}
	return NULL;
}

/* Appends the rows of a finished job and remembers them. */
static int store(struct unwind_tables *t, const struct job *job, struct err *e)
{
	struct unwind_stored s = identity(job->module);

	if (!grow_list(t->stored, t->stored_count))
		return err_set(e, ENOMEM, "no memory for unwind tables");
	s.count = job->rows.count;
	int r = unwind_tables_append(t, &job->rows, &s.offset, e);
	if (!r)
		t->stored[t->stored_count++] = s;
	return r;
}

static bool needs_rows(const struct elf_module *m)
{
	return m->id != 0 && m->exec_end > m->exec_start;
}

static bool in_jobs(const struct pool *pool, const struct elf_module *m)
{
	struct unwind_stored wanted = identity(m);

	for (size_t i = 0; i < pool->count; i++) {
		struct unwind_stored other = identity(pool->jobs[i].module);
		if (!memcmp(&wanted, &other, sizeof wanted))
			return true;
	}
	return false;
}

/* Compiles what is not in the file yet, and appends it. */
static int compile_missing(struct unwind_tables *t, const struct modules *m, const struct target_memory *tm,
                           const struct maps *maps, struct unwind_coverage *coverage, struct err *e)
{
	struct pool pool = { .tm = tm, .maps = maps, .cache = t->cache };
	int r = 0;

	pool.jobs = calloc(m->count + 1, sizeof *pool.jobs);
	if (!pool.jobs)
		return err_set(e, ENOMEM, "no memory for unwind tables");
	for (size_t i = 0; i < m->count; i++) {
		coverage[i].reused = needs_rows(&m->list[i]) && find_stored(t, &m->list[i]);
		if (needs_rows(&m->list[i]) && !coverage[i].reused && !in_jobs(&pool, &m->list[i]))
			pool.jobs[pool.count++] = (struct job){ .module = &m->list[i], .index = i };
	}
	if (pool.count)
		run_jobs(&pool);
	for (size_t i = 0; i < pool.count; i++) {
		struct job *job = &pool.jobs[i];
		char *text = coverage[job->index].text;

		if (job->result)
			snprintf(text, sizeof coverage->text, "%.110s", job->error.text);
		else if (!r)
			r = store(t, job, e);
		if (!job->result && job->rows.count == 0)
			snprintf(text, sizeof coverage->text, "it has no call frame information");
		unwind_rows_done(&job->rows);
	}
	free(pool.jobs);
	return r;
}

int unwind_tables_update(struct unwind_tables *t, const struct modules *m, const struct target_memory *tm,
                         const struct maps *maps, struct unwind_coverage *coverage, struct err *e)
{
	AUTO_FREE struct unwind_coverage *own = calloc(m->count + 1, sizeof *own);
	AUTO_FREE struct unwind_module *list = calloc(m->count + 1, sizeof *list);
	AUTO_FREE struct unwind_range *ranges = NULL;
	uint32_t count = 0, range_count;

	if (!own || !list)
		return err_set(e, ENOMEM, "no memory for unwind tables");
	int r = compile_missing(t, m, tm, maps, own, e);
	if (!r)
		r = unwind_ranges(maps, &ranges, &range_count, e);
	if (r)
		return r;
	for (size_t i = 0; i < m->count; i++) {
		const struct elf_module *module = &m->list[i];
		const struct unwind_stored *s = needs_rows(module) ? find_stored(t, module) : NULL;

		own[i].rows = s ? s->count : 0;
		if (module->exec_end > module->exec_start)
			list[count++] = (struct unwind_module){ .start = module->exec_start,
				                                .end = module->exec_end,
				                                .rows_offset = s ? s->offset : 0,
				                                .row_count = s ? s->count : 0,
				                                .id = module->id };
	}
	r = unwind_tables_publish(t, list, count, ranges, range_count, e);
	if (!r && coverage)
		memcpy(coverage, own, m->count * sizeof *own);
	return r;
}
