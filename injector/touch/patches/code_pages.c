/* SPDX-License-Identifier: MIT */
#include "touch/patches/code_pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "files/whole_io.h"
#include "maps/target_file.h"
#include "process/live_thread.h"
#include "process/proc_status.h"
#include "search/page_scan.h"

#define PAGE_BYTES 4096ull
#define RUN_BYTES_MAX (4ull << 20)
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux UAPI, linux/mman.h of 5.7 */
#endif

/* ---- which pages ---- */

static const enum change_kind kinds[] = { CHANGE_JUMP, CHANGE_ISLAND };
#define KINDS (sizeof kinds / sizeof *kinds)

static bool holds(const struct mapping *m, uint64_t address)
{
	return address >= m->start && address < m->end;
}

/* Code of a file that can be set apart, all of it in one mapping; NULL: it is none. Where the stub is, the mapping has
 * a private copy already. */
static const struct mapping *mapping_of(const struct session *s, const struct maps *maps, uint64_t start, uint64_t end)
{
	const struct mapping *m = maps_find(maps, start);
	const bool is_code = m && m->inode && !m->shared && m->prot == (PROT_READ | PROT_EXEC) && end <= m->end;

	return is_code && !holds(m, s->view.cave.code) && !holds(m, s->view.cave.frame) ? m : NULL;
}

static uint64_t first_page(const struct change *row)
{
	return row->address & -PAGE_BYTES;
}

static uint64_t last_page(const struct change *row)
{
	return (row->address + row->bytes - 1) & -PAGE_BYTES;
}

/* The run of this mapping, or a new one; NULL: there are too many. */
static struct code_run *run_in(const struct mapping *m, struct code_runs *runs)
{
	for (unsigned i = 0; i < runs->count; i++)
		if (runs->list[i].start >= m->start && runs->list[i].end <= m->end)
			return &runs->list[i];
	if (runs->count == CODE_RUNS_MAX)
		return NULL;
	runs->list[runs->count] = (struct code_run){ .start = m->end, .end = m->start };
	return &runs->list[runs->count++];
}

static void take_in(const struct session *s, const struct change *row, struct code_runs *runs)
{
	const struct mapping *m = mapping_of(s, &s->view.maps, row->address, row->address + row->bytes);
	struct code_run *run = m ? run_in(m, runs) : NULL;

	if (run && first_page(row) < run->start)
		run->start = first_page(row);
	if (run && last_page(row) + PAGE_BYTES > run->end)
		run->end = last_page(row) + PAGE_BYTES;
}

/* By the table of changes. In each mapping one, from the first page with a jump to the last: two that have private
 * copies could not be joined again, as the kernel keeps an anon_vma for each. */
static void find_runs(const struct session *s, struct code_runs *runs)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (int i = -1; (i = changes_next(&s->changes, kinds[kind], i)) >= 0;)
			take_in(s, &s->changes.list[i], runs);
}

static bool has_jump(const struct session *s, uint64_t page)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (int i = -1; (i = changes_next(&s->changes, kinds[kind], i)) >= 0;)
			if (first_page(&s->changes.list[i]) == page || last_page(&s->changes.list[i]) == page)
				return true;
	return false;
}

/* Are private copies nowhere but, where they are allowed, on pages with jumps? */
static bool is_of_the_file(const struct session *s, struct page_scan *pages, const struct code_run *run, bool jumps)
{
	for (uint64_t at = run->start; at < run->end;) {
		if (!page_scan_step(pages, &at, run->end))
			return false;
		for (size_t i = 0; i < pages->count; i++)
			for (uint64_t page = pages->runs[i].start; page < pages->runs[i].end; page += PAGE_BYTES)
				if (!pages->runs[i].file && !(jumps && has_jump(s, page)))
					return false;
	}
	return true;
}

/* An allocator that is found before the C library's was there when the program began. */
static bool stays_mapped(const struct session *s, const struct code_run *run)
{
	const struct elf_module *m = modules_find(&s->view.modules, run->start, true);

	return m && (m == s->view.libc.module || m == s->view.libc.allocator || m->is_main);
}

/* Reads the pages with jumps, each to its place; the others are not touched. */
static bool read_pages(const struct session *s, const struct code_run *run, unsigned char *to)
{
	bool all = true;

	for (uint64_t page = run->start; page < run->end && all; page += PAGE_BYTES)
		if (has_jump(s, page))
			all = target_read(&s->memory, page, to + (page - run->start), PAGE_BYTES, ERR_IGNORED) == 0;
	return all;
}

/* What the pages with jumps hold, to be freed; NULL: they are not to be taken away again. */
static unsigned char *copy_of(const struct session *s, const struct code_run *run)
{
	unsigned char *copy = stays_mapped(s, run) ? calloc(1, run->end - run->start) : NULL;

	if (!copy || read_pages(s, run, copy))
		return copy;
	free(copy);
	return NULL;
}

static uint64_t file_offset(const struct mapping *m, const struct code_run *run)
{
	return m->offset + (run->start - m->start);
}

/* The same as copy_of(), as the file has it: for a session whose memattach, which had copies, has died. */
static unsigned char *copy_of_file(const struct session *s, const struct mapping *m, const struct code_run *run)
{
	AUTO_CLOSE int fd = target_file_open(s->target.pid, m, m->path);
	unsigned char *copy = fd >= 0 && stays_mapped(s, run) ? calloc(1, run->end - run->start) : NULL;
	bool all = copy != NULL;

	for (uint64_t page = run->start; page < run->end && all; page += PAGE_BYTES)
		if (has_jump(s, page))
			all = whole_io_pread(fd, copy + (page - run->start), PAGE_BYTES, m->offset + (page - m->start));
	if (all)
		return copy;
	free(copy);
	return NULL;
}

/* The same part of the same file is mapped there, alone, and holds the same. */
static bool is_as_before(const struct session *s, struct page_scan *pages, const struct mapping *m,
                         const struct code_run *run)
{
	if (!run->copy || m->start != run->start || m->end != run->end || !mapping_same_file(m, &run->file) ||
	    file_offset(m, run) != run->file.offset || !is_of_the_file(s, pages, run, true))
		return false;
	unsigned char *now = copy_of(s, run);
	const bool same = now && !memcmp(now, run->copy, run->end - run->start);
	free(now);
	return same;
}

void code_pages_look(struct session *s)
{
	if (s->code_runs.count)
		return;
	find_runs(s, &s->code_runs);
	for (unsigned i = 0; i < s->code_runs.count; i++) {
		struct code_run *run = &s->code_runs.list[i];
		const struct mapping *m = maps_find(&s->view.maps, run->start);
		run->copy = copy_of_file(s, m, run);
		run->file = *m;
		run->file.path = NULL;
		run->file.offset = file_offset(m, run);
	}
}

static bool has_locked_memory(const struct session *s)
{
	char status[STATUS_BYTES];

	return proc_status_read(status, s->target.pid, s->target.tid) < 0 ||
	       proc_status_number(status, "VmLck", 10, 0) != 0;
}

/* ---- the calls ---- */

static struct stub_call hint_call(const struct code_run *run, int hint)
{
	return (struct stub_call){ .target = SYS_madvise,
		                   .argument = { run->start, run->end - run->start, (uint64_t)hint } };
}

static void choose_runs(struct session *s)
{
	struct code_runs found = { .count = 0 };
	struct page_scan pages;

	find_runs(s, &found);
	if (!found.count || page_scan_open(&pages, &s->target, ERR_IGNORED) < 0)
		return;
	for (unsigned i = 0; i < found.count; i++) {
		struct code_run *run = &found.list[i];
		if (run->end - run->start > RUN_BYTES_MAX || !is_of_the_file(s, &pages, run, false))
			continue;
		run->file = *maps_find(&s->view.maps, run->start);
		run->file.path = NULL; /* it goes with the maps */
		run->file.offset = file_offset(&run->file, run);
		run->copy = copy_of(s, run);
		s->code_runs.list[s->code_runs.count++] = *run;
	}
	page_scan_close(&pages);
}

static bool is_alone(const struct session *s)
{
	AUTO_FREE pid_t *tids = NULL;
	size_t count = 0;

	return target_tids(&s->target, &tids, &count, ERR_IGNORED) == 0 && count == 1;
}

/* Does the kernel join a mapping that has private copies with neighbours that have none? */
static bool joins_copies(void)
{
	unsigned major, minor;
	struct utsname kernel;

	return uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 16));
}

int code_pages_set_apart(struct loan *l, struct err *e)
{
	struct code_runs *runs = &l->s->code_runs;
	struct stub_call calls[CODE_RUNS_MAX];

	_Static_assert(CODE_RUNS_MAX <= SA_CALL_MAX, "calls");
	code_runs_free(runs);
	if (!l->thread->filtered && (is_alone(l->s) || joins_copies()))
		choose_runs(l->s);
	if (!runs->count)
		return 0;
	for (unsigned i = 0; i < runs->count; i++)
		calls[i] = hint_call(&runs->list[i], MADV_RANDOM);
	int rc = remote_call(l->remote, calls, runs->count, l->deadline_ns, e);
	if (rc == 0)
		changes_made(&l->s->changes, CHANGE_CODE_PAGES);
	return rc;
}

static int join(struct loan *l, const struct code_run *run, bool take_away, struct err *e)
{
	const uint64_t bytes = run->end - run->start;
	struct stub_call calls[3];
	unsigned count = 0;

	if (take_away) {
		calls[count++] = (struct stub_call){
			.target = SYS_mremap,
			.argument = { run->start, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP },
		};
		/* Where the copies went; an error is no address, and nothing is unmapped. */
		calls[count++] = (struct stub_call){
			.target = SYS_munmap | 1ull << SC_WORD_BIT,
			.argument = { REMOTE_AT(l->remote, stub.calls[0].result), bytes },
		};
	}
	calls[count++] = hint_call(run, MADV_NORMAL);
	return remote_call(l->remote, calls, count, l->deadline_ns, e);
}

/* Nobody may map anything there, or write, between the look at the pages and the call that takes them away: the
 * borrowed thread is the only one. */
static bool may_take_away(const struct session *s)
{
	return is_alone(s) && !has_locked_memory(s);
}

/* A run that is in one mapping with its neighbours was not set apart: the program has a hint of its own there. */
static int join_all(struct loan *l, const struct code_runs *runs, struct err *e)
{
	struct session *s = l->s;
	struct page_scan pages;
	const bool may_take = may_take_away(s) && page_scan_open(&pages, &s->target, ERR_IGNORED) == 0;
	struct maps maps = { 0 };

	int rc = live_thread_maps(&s->target, &maps, e);
	for (unsigned i = 0; i < runs->count && rc == 0; i++) {
		const struct code_run *run = &runs->list[i];
		const struct mapping *m = mapping_of(s, &maps, run->start, run->end);
		if (m && (m->start == run->start || m->end == run->end))
			rc = join(l, run, may_take && is_as_before(s, &pages, m, run), e);
	}
	maps_free(&maps);
	if (may_take)
		page_scan_close(&pages);
	return rc;
}

int code_pages_join(struct loan *l, struct err *e)
{
	struct session *s = l->s;

	if (l->thread->filtered)
		return 0;
	int rc = s->code_runs.count ? join_all(l, &s->code_runs, e) : 0;
	if (rc == 0)
		changes_end(&s->changes, CHANGE_CODE_PAGES, CHANGE_UNDONE);
	code_runs_free(&s->code_runs);
	return rc;
}
