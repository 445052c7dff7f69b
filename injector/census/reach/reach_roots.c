/* SPDX-License-Identifier: MIT */
#include "census/reach/reach_roots.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "maps/target_file.h"

#define STACK_BYTES_MAX (64ull << 20)
#define HEADER_BYTES 16u /* of a chunk */

bool reach_root_may_hold(const struct mapping *m, bool private)
{
	struct region region;

	if (!region_of_mapping(&region, m) || region.kind == REGION_KERNEL)
		return false;
	return private || region.kind == REGION_SHARED || (m->shared && m->prot & PROT_WRITE);
}

bool reach_roots_have_huge_pages(const struct maps *maps)
{
	struct region region;

	for (size_t i = 0; i < maps->count; i++)
		if (strstr(maps->list[i].path, "hugepage") && maps->list[i].prot != PROT_NONE &&
		    !region_of_mapping(&region, &maps->list[i]))
			return true;
	return false;
}

/* Bytes of the memory behind a mapping, whoever has touched it; UINT64_MAX: not told. */
static uint64_t object_bytes(pid_t pid, const struct mapping *m)
{
	char link[TARGET_FILE_LINK];
	struct stat st;

	target_file_link(pid, m, link);
	return stat(link, &st) == 0 ? (uint64_t)st.st_blocks * 512 : UINT64_MAX;
}

uint64_t reach_roots_unseen_shared(const struct maps *maps, const struct resident_pages *pages, pid_t pid)
{
	uint64_t unseen = 0;

	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *m = &maps->list[i];
		const uint64_t seen = resident_pages_sum(pages, m->start, m->end);
		struct region region;

		if (seen == m->end - m->start || !region_of_mapping(&region, m) || region.kind != REGION_SHARED)
			continue;
		const uint64_t bytes = object_bytes(pid, m), size = m->end - m->start;
		if (bytes > seen)
			unseen += (bytes < size ? bytes : size) - seen;
	}
	return unseen;
}

unsigned reach_root_every(const struct mapping *m)
{
	return !m->inode && m->prot & PROT_EXEC ? 1 : 4;
}

bool reach_root_may_be_stack(const struct maps *maps, const struct mapping *m)
{
	if (!strcmp(m->path, "[stack]"))
		return true;
	return !m->path[0] && !m->inode && !m->shared && m->prot & PROT_WRITE && m->end - m->start <= STACK_BYTES_MAX &&
	       m > maps->list && m[-1].end == m->start && m[-1].prot == PROT_NONE;
}

/* A range but for what blocks are in. */
static void look_between_parts(struct reach *r, uint64_t start, uint64_t end, unsigned every)
{
	for (size_t i = block_space_from(&r->blocks, start); start < end && !r->over; i++) {
		const struct block_part *p = i < r->blocks.count ? &r->blocks.parts[i] : NULL;
		const uint64_t until = p && p->start < end ? p->start : end;
		if (start < until)
			reach_range(r, start, until, every);
		start = p && p->start < end ? p->end : end;
	}
}

static void look_at_mapping(struct reach *r, const struct mapping *m)
{
	const struct resident_pages *pages = r->memory->pages;

	for (size_t i = resident_pages_from(pages, m->start);
	     i < pages->count && pages->runs[i].start < m->end && !r->over; i++) {
		const struct page_run *run = &pages->runs[i];
		if (!run->swapped && reach_root_may_hold(m, !run->file))
			look_between_parts(r, run->start > m->start ? run->start : m->start,
			                   run->end < m->end ? run->end : m->end, reach_root_every(m));
	}
}

/* Data of a module, and what follows it without a file (.bss). */
static bool is_data(const struct maps *maps, const struct mapping *m)
{
	if (m->inode)
		return !m->shared && m->prot & PROT_WRITE;
	return !m->path[0] && m > maps->list && m[-1].end == m->start && m[-1].inode && m[-1].prot & PROT_WRITE;
}

enum pass { PASS_DATA, PASS_OTHER, PASS_STACKS };

static enum pass pass_of(const struct reach *r, const struct mapping *m, const struct mapping *libc)
{
	if (reach_root_may_be_stack(r->maps, m))
		return PASS_STACKS;
	return is_data(r->maps, m) && !(libc && mapping_same_file(m, libc)) ? PASS_DATA : PASS_OTHER;
}

static void look_in_pass(struct reach *r, const struct mapping *libc, enum pass pass)
{
	for (size_t i = 0; i < r->maps->count; i++)
		if (pass_of(r, &r->maps->list[i], libc) == pass)
			look_at_mapping(r, &r->maps->list[i]);
	reach_drain(r);
}

void reach_look(struct reach *r, const struct mapping *libc, bool with_stacks)
{
	r->puts_off = true;
	for (enum pass pass = PASS_DATA; pass <= (with_stacks ? PASS_STACKS : PASS_OTHER); pass++)
		look_in_pass(r, libc, pass);
	reach_odd_words(r);
	reach_drain(r);
}

void reach_mapped_blocks(struct reach *r)
{
	for (size_t i = 0; i < r->blocks.count; i++)
		if (!r->blocks.parts[i].segment)
			reach_word(r, r->blocks.parts[i].start + HEADER_BYTES, REACH_OF_NEW);
}

void reach_look_at_stacks(struct reach *r)
{
	look_in_pass(r, NULL, PASS_STACKS);
}
