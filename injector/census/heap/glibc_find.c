/* SPDX-License-Identifier: MIT */
#include "census/heap/glibc_find.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sorted.h"
#include "maps/target_file.h"
#include "process/task.h"

#define BINS 127u
#define BINS_BYTES (16 * BINS)
#define BINS_CHANGED 4u
#define NEAR_BYTES 8192u       /* mp_ is so near to main_arena */
#define HEAP_SLACK (64u << 10) /* the loader, or the TLS of a static program, takes so much of the heap at most */
#define FILE_BYTES (64u << 20) /* of a library that is searched for its release */
#define WINDOW_BYTES (64u << 10)
#define AT_LEAST 35u             /* has malloc.hugetlb */
#define GROWN_BYTES (1ull << 30) /* since its mappings were read */

/* malloc/malloc.c: the same members from 2.27 to 2.42, without fastbins from 2.43 on. */
static const struct glibc_layout layouts[] = {
	{ .fastbins = 0x10, .top = 0x60, .bins = 0x70, .next = 0x870, .system_bytes = 0x888, .bytes = 0x898 },
	{ .fastbins = 0, .top = 8, .bins = 0x18, .next = 0x818, .system_bytes = 0x830, .bytes = 0x840 },
};

struct search {
	struct glibc *glibc;
	const struct maps *maps;
	const struct mapping *heap; /* brk's; NULL: none */
	struct census_memory *memory;
	const uint64_t *arenas; /* sorted */
	size_t arena_count, found;
	uint64_t next;                     /* where the member next of the main arena is */
	const struct glibc_layout *layout; /* where it is the only arena */
	const struct mapping *in;          /* which data it is in */
};

static const struct mapping *brk_heap(const struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		if (!strcmp(maps->list[i].path, "[heap]"))
			return &maps->list[i];
	return NULL;
}

static bool may_be_chunk(const struct search *s, uint64_t address)
{
	return maps_find(s->maps, address) || (s->heap && address - s->heap->end < GROWN_BYTES);
}

/* In a process that runs some of them may change while they are read. */
static bool bins_are_lists(struct search *s, uint64_t arena, const struct glibc_layout *l)
{
	unsigned changed = 0;

	for (unsigned i = 0; i < BINS; i++) {
		const uint64_t bin = arena + l->bins + 16 * i - 16;
		uint64_t links[2];
		if (!census_memory_read(s->memory, bin + 16, links, sizeof links))
			return false;
		changed += (links[0] == bin) != (links[1] == bin);
		if (links[0] % 16 || links[1] % 16 || (links[0] != bin && !may_be_chunk(s, links[0])))
			return false;
	}
	return changed <= BINS_CHANGED;
}

static bool is_arena(const struct search *s, uint64_t address)
{
	const size_t i = sorted_before(s->arenas, s->arena_count, sizeof *s->arenas, 0, address, 0);

	return i < s->arena_count && s->arenas[i] == address;
}

/*
 * Words of a piece of data at `at`: may one be the member next of main_arena? Its bins are as far before it in either
 * layout, so which of them it is only follows where it leads to its own arena.
 */
static void search_words(struct search *s, const uint64_t *words, size_t count, uint64_t at)
{
	for (size_t i = 0; i < count && s->found < 2; i++) {
		const uint64_t next = at + 8 * i;
		const struct glibc_layout *layout = next - words[i] == layouts[0].next   ? &layouts[0]
		                                    : next - words[i] == layouts[1].next ? &layouts[1]
		                                                                         : NULL;
		/* Looking at bins is charged: all words of the data may be made to look like this one. */
		if ((!layout && !is_arena(s, words[i])) ||
		    budget_work(&s->memory->budget, BINS_BYTES, ERR_IGNORED) < 0 ||
		    !bins_are_lists(s, next - layouts[0].next, &layouts[0]))
			continue;
		s->found++;
		s->next = next;
		s->layout = layout;
	}
}

static void search_data(struct search *s, const struct mapping *m)
{
	AUTO_FREE uint64_t *words = malloc(WINDOW_BYTES);
	const size_t before = s->found;

	for (uint64_t at = m->start; words && at < m->end; at += WINDOW_BYTES) {
		const size_t bytes = m->end - at < WINDOW_BYTES ? m->end - at : WINDOW_BYTES;
		if (!census_memory_read_range(s->memory, at, words, bytes))
			break;
		search_words(s, words, bytes / sizeof *words, at);
	}
	if (s->found > before)
		s->in = m;
}

static bool may_have_malloc(const struct target *t, const struct mapping *m)
{
	const char *slash = strrchr(m->path, '/'), *name = slash ? slash + 1 : m->path;

	return m->inode && !m->shared && m->prot & 2 &&
	       ((!strncmp(name, "libc", 4) && strstr(name, ".so")) || (t->program[0] && !strcmp(m->path, t->program)));
}

/* The first two characters behind a text in a file; 0: it is not there. */
static bool text_in(int fd, const char *mark, char behind[3])
{
	const size_t length = strlen(mark);
	AUTO_FREE char *text = malloc(WINDOW_BYTES + 1);
	size_t kept = 0;

	for (off_t at = 0; text && at < (off_t)FILE_BYTES;) {
		ssize_t n = pread(fd, text + kept, WINDOW_BYTES - kept, at);
		if (n <= 0)
			return false;
		text[kept + (size_t)n] = '\0';
		const char *found = memmem(text, kept + (size_t)n, mark, length);
		if (found && found + length + 3 <= text + kept + (size_t)n) {
			memcpy(behind, found + length, 2);
			behind[2] = '\0';
			return true;
		}
		at += n;
		const size_t have = kept + (size_t)n;
		kept = have < length + 3 ? have : length + 3;
		memmove(text, text + have - kept, kept);
	}
	return false;
}

/* What the text of gnu_get_libc_version's neighbour names, or at least. */
static void find_release(struct glibc *g, const struct target *t, const struct mapping *m)
{
	AUTO_CLOSE int fd = target_file_open(task_alive(t->pid), m, m->path);
	char behind[3] = "";

	if (fd >= 0 && text_in(fd, "stable release version 2.", behind))
		g->release = (unsigned)atoi(behind);
	else if (fd >= 0 && text_in(fd, "glibc.malloc.hugetlb", behind)) {
		g->release = AT_LEAST;
		g->or_later = true;
	}
	g->release = g->release >= 31 && g->release <= 43 ? g->release : 0;
}

static void find_parameters(struct search *s)
{
	struct glibc *g = s->glibc;
	const uint64_t offset = g->release >= 35 ? 36 : 32; /* from n_mmaps to sbrk_base */
	const struct mapping *heap = s->heap;

	if (!heap)
		return;
	for (uint64_t at = g->main_arena - NEAR_BYTES; at < g->main_arena + NEAR_BYTES; at += 8) {
		uint64_t words[5]; /* mmapped_mem, max_mmapped_mem, sbrk_base, tcache_bins, tcache_max_bytes */
		uint32_t count;
		if (!census_memory_read(s->memory, at - 16, words, sizeof words) ||
		    words[2] - heap->start >= HEAP_SLACK || words[2] % 16 || words[0] > words[1] || words[3] > 76 ||
		    words[4] > 8 << 20)
			continue;
		g->heap_start = words[2];
		g->counts_mapped = g->release && census_memory_read(s->memory, at - offset, &count, sizeof count);
		g->mapped_count = g->counts_mapped ? count : 0;
		g->mapped_bytes = words[0];
		return;
	}
}

void glibc_find(struct glibc *g, const struct target *t, const struct maps *maps, struct census_memory *memory,
                const uint64_t *arenas, size_t arena_count)
{
	struct search s = { .glibc = g,
		            .maps = maps,
		            .heap = brk_heap(maps),
		            .memory = memory,
		            .arenas = arenas,
		            .arena_count = arena_count };

	*g = (struct glibc){ 0 };
	for (size_t i = 0; i < maps->count; i++)
		if (may_have_malloc(t, &maps->list[i]))
			search_data(&s, &maps->list[i]);
	if (s.found != 1)
		return;
	find_release(g, t, s.in);
	g->layout = s.layout ? s.layout : &layouts[g->release >= 43];
	if (g->or_later && g->layout == &layouts[1])
		g->release = 43;
	if (g->release && g->layout != &layouts[g->release >= 43]) /* not what that release has */
		g->release = 0;
	g->main_arena = s.next - g->layout->next;
	find_parameters(&s);
}
