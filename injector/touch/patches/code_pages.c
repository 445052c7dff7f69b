/* SPDX-License-Identifier: MIT */
#include "touch/patches/code_pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "process/proc_status.h"
#include "search/page_scan.h"

#define PAGE_BYTES 4096u
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux UAPI, linux/mman.h of 5.7 */
#endif

/* ---- which pages ---- */

static void add_page(struct code_run *runs, unsigned *count, uint64_t page)
{
	unsigned at = 0;

	while (at < *count && runs[at].end < page)
		at++;
	if (at < *count && runs[at].start <= page && page < runs[at].end)
		return;
	if (at < *count && runs[at].end == page) {
		runs[at].end += PAGE_BYTES;
	} else if (at < *count && runs[at].start == page + PAGE_BYTES) {
		runs[at].start = page;
	} else if (*count < CODE_RUNS_MAX) {
		memmove(&runs[at + 1], &runs[at], (*count - at) * sizeof *runs);
		runs[at] = (struct code_run){ page, page + PAGE_BYTES, NULL };
		++*count;
	}
	if (at + 1 < *count && runs[at].end == runs[at + 1].start) {
		runs[at].end = runs[at + 1].end;
		memmove(&runs[at + 1], &runs[at + 2], (--*count - at - 1) * sizeof *runs);
	}
}

/* Runs of pages that jumps lead from, by the table of changes: ascending, apart. */
static unsigned find_runs(const struct session *s, struct code_run runs[CODE_RUNS_MAX])
{
	const enum change_kind kinds[] = { CHANGE_JUMP, CHANGE_ISLAND };
	unsigned count = 0;

	for (unsigned kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
		for (int i = -1; (i = changes_next(&s->changes, kinds[kind], i)) >= 0;) {
			const struct change *row = &s->changes.list[i];
			const uint64_t last = row->address + row->bytes - 1;
			add_page(runs, &count, row->address & -(uint64_t)PAGE_BYTES);
			add_page(runs, &count, last & -(uint64_t)PAGE_BYTES);
		}
	return count;
}

static bool is_code_of_a_file(const struct session *s, const struct code_run *run)
{
	const struct mapping *m = maps_find(&s->view.maps, run->start);

	return m && m->inode && !m->shared && m->prot == (PROT_READ | PROT_EXEC) && run->end <= m->end &&
	       (s->view.cave < run->start || s->view.cave >= run->end); /* the stub is there, and runs */
}

/* None of the pages is a private copy. */
static bool is_of_the_file(struct page_scan *pages, const struct code_run *run)
{
	for (uint64_t at = run->start; at < run->end;) {
		if (!page_scan_step(pages, &at, run->end))
			return false;
		for (size_t i = 0; i < pages->count; i++)
			if (!pages->runs[i].file)
				return false;
	}
	return true;
}

static bool stays_mapped(const struct session *s, const struct code_run *run)
{
	const struct elf_module *m = modules_find(&s->view.modules, run->start, true);

	return m && (m == s->view.libc.module || m->is_main);
}

/* What the pages hold, to be freed; NULL: they are not to be taken away again. */
static unsigned char *copy_of(const struct session *s, const struct code_run *run)
{
	unsigned char *copy = stays_mapped(s, run) ? malloc(run->end - run->start) : NULL;
	struct err ignored;

	if (copy && target_read(&s->memory, run->start, copy, run->end - run->start, &ignored) < 0) {
		free(copy);
		copy = NULL;
	}
	return copy;
}

static bool is_as_before(const struct session *s, const struct code_run *run)
{
	const struct mapping *m = maps_find(&s->view.maps, run->start);
	unsigned char *now = run->copy && m && m->start == run->start && m->end == run->end ? copy_of(s, run) : NULL;
	const bool same = now && !memcmp(now, run->copy, run->end - run->start);

	free(now);
	return same;
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

static int choose_runs(struct session *s, struct err *e)
{
	struct code_run found[CODE_RUNS_MAX];
	const unsigned count = find_runs(s, found);
	struct page_scan pages;

	code_runs_free(&s->code_runs);
	int rc = count ? page_scan_open(&pages, &s->target, e) : 0;
	if (rc < 0 || !count)
		return rc;
	for (unsigned i = 0; i < count; i++)
		if (is_code_of_a_file(s, &found[i]) && is_of_the_file(&pages, &found[i])) {
			found[i].copy = copy_of(s, &found[i]);
			s->code_runs.list[s->code_runs.count++] = found[i];
		}
	page_scan_close(&pages);
	return 0;
}

int code_pages_set_apart(struct loan *l, struct err *e)
{
	struct code_runs *runs = &l->s->code_runs;
	struct stub_call calls[CODE_RUNS_MAX];

	_Static_assert(CODE_RUNS_MAX <= SA_CALL_MAX, "calls");
	if (l->thread->filtered || choose_runs(l->s, e) < 0 || !runs->count)
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

int code_pages_join(struct loan *l, struct err *e)
{
	struct session *s = l->s;
	struct code_runs left = { .count = 0 };
	int rc = 0;

	if (l->thread->filtered)
		return 0;
	if (!s->code_runs.count)
		left.count = find_runs(s, left.list);
	const struct code_runs *runs = s->code_runs.count ? &s->code_runs : &left;
	const bool may_take = runs->count && !has_locked_memory(s);
	for (unsigned i = 0; i < runs->count && rc == 0; i++)
		if (is_code_of_a_file(s, &runs->list[i]))
			rc = join(l, &runs->list[i], may_take && is_as_before(s, &runs->list[i]), e);
	if (rc == 0)
		changes_end(&s->changes, CHANGE_CODE_PAGES, CHANGE_UNDONE);
	code_runs_free(&s->code_runs);
	return rc;
}
