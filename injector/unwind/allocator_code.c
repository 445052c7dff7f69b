/* SPDX-License-Identifier: MIT */
#include "unwind/allocator_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "catalogue/allocator_catalogue.h"
#include "arch/code.h"
#include "base/grow.h"
#include "base/sorted.h"
#include "unwind/frame_header.h"
#include "base/order.h"

#define FUNCTIONS_MAX (1u << 20)
#define WORDS_MAX (1u << 22) /* of data that the functions refer to */
#define EDGES_MAX (1u << 23)
#define SOURCES_MAX 16u
#define PADDING_BYTES 32u /* between functions, at most */

struct function {
	uint64_t start, end;
	enum allocator_part part;
	bool public;     /* by its name: the program calls it */
	bool stands_for; /* by its name a function of the C library, or one that all programs call as such */
	bool stub;
};

enum edge_kind {
	EDGE_REFERENCE,   /* to its beginning, by a call or as an address */
	EDGE_JUMP,        /* to its beginning */
	EDGE_JUMP_INSIDE, /* a cold part, or back from one; or chance */
};

struct edge {
	uint32_t from, to;
	enum edge_kind kind;
};

struct graph {
	const struct module_file *f;
	uint8_t *text;       /* exec_start … exec_end */
	uint8_t *beginnings; /* a bit for each byte of it */
	struct function *functions;
	size_t count;
	struct edge *edges; /* ascending by from */
	size_t edge_count;
	uint32_t present; /* function that is read */
	uint64_t data_start, data_end;
	uint64_t *words; /* of data that functions of the allocator refer to */
	size_t word_count;
	uint64_t *shared; /* words that all may refer to: the GOT, variables of the C library */
	size_t shared_count;
	uint64_t sources[SOURCES_MAX]; /* words that hold the address of mmap or sbrk */
	size_t source_count;
	bool gets_memory; /* the allocator calls one of them */
	bool full;        /* or out of memory */
	const char *unknown;
};

static const uint8_t *code_of(const struct graph *g, const struct function *fn)
{
	return g->text + (fn->start - g->f->module->exec_start);
}

/* ---- the functions ---- */

ORDER_BY(by_start, struct function, start);

/* What no entry covers is code of no function. */
static void set_functions(struct graph *g, const struct frame_header *h, const struct frame_row *rows,
                          const uint8_t *frames, uint64_t first)
{
	const struct elf_module *m = g->f->module;

	for (size_t i = 0; i < h->count; i++) {
		const uint64_t start = h->base + (uint64_t)(int64_t)rows[i].entry;
		const uint64_t at = h->base + (uint64_t)(int64_t)rows[i].place;
		const uint8_t *rest;
		const uint64_t bytes = frame_header_description(frames + (at - first), at, start, &rest);
		if (start < m->exec_start || start >= m->exec_end || bytes == 0 || bytes > m->exec_end - start)
			continue;
		struct function *fn = &g->functions[g->count++];
		*fn = (struct function){ .start = start, .end = start + bytes };
		fn->stub = code_is_stub(code_of(g, fn), bytes);
		g->beginnings[(start - m->exec_start) / 8] |= 1u << (start - m->exec_start) % 8;
	}
	qsort(g->functions, g->count, sizeof *g->functions, by_start);
}

/* All of .eh_frame that the table tells of. */
static int read_frames(struct graph *g, const struct frame_header *h, const struct frame_row *rows, struct err *e)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < h->count; i++) {
		const uint64_t at = h->base + (uint64_t)(int64_t)rows[i].place;
		first = at < first ? at : first;
		last = at > last ? at : last;
	}
	if (last - first > ALLOCATOR_TEXT_MAX) {
		g->unknown = "it is too large";
		return 0;
	}
	AUTO_FREE uint8_t *frames = calloc(last - first + FRAME_DESCRIPTION_BYTES, 1);
	if (!frames)
		return err_set(e, ENOMEM, "out of memory");
	if (module_file_read(g->f, first, frames, last - first + FRAME_DESCRIPTION_BYTES, ERR_IGNORED) < 0)
		g->unknown = "the table of its functions cannot be read";
	else
		set_functions(g, h, rows, frames, first);
	return 0;
}

static int read_functions(struct graph *g, struct err *e)
{
	struct frame_header h;

	if (!frame_header_read(&h, g->f) || !h.count || h.count > FUNCTIONS_MAX) {
		g->unknown = "it has no table of its functions";
		return 0;
	}
	AUTO_FREE struct frame_row *rows = frame_header_rows(&h, g->f);
	g->functions = calloc(h.count, sizeof *g->functions);
	if (!g->functions)
		return err_set(e, ENOMEM, "out of memory");
	if (!rows) {
		g->unknown = "the table of its functions cannot be read";
		return 0;
	}
	return read_frames(g, &h, rows, e);
}

static int read_text(struct graph *g, struct err *e)
{
	const struct elf_module *m = g->f->module;

	if (m->exec_end - m->exec_start > ALLOCATOR_TEXT_MAX) {
		g->unknown = "it is too large";
		return 0;
	}
	g->text = malloc(m->exec_end - m->exec_start + 1);
	g->beginnings = calloc((m->exec_end - m->exec_start) / 8 + 1, 1);
	if (!g->text || !g->beginnings)
		return err_set(e, ENOMEM, "out of memory");
	if (module_file_read(g->f, m->exec_start, g->text, m->exec_end - m->exec_start, ERR_IGNORED) < 0)
		g->unknown = "its code cannot be read";
	for (size_t i = 0; i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W))
			continue;
		uint64_t start = m->bias + p->p_vaddr;
		if (!g->data_end || start < g->data_start)
			g->data_start = start;
		if (start + p->p_memsz > g->data_end)
			g->data_end = start + p->p_memsz;
	}
	return 0;
}

/* The function that begins at address, or NULL. */
static struct function *begins_at(const struct graph *g, uint64_t address)
{
	const struct elf_module *m = g->f->module;
	const struct function key = { .start = address };
	const uint64_t at = address - m->exec_start;

	if (at >= m->exec_end - m->exec_start || !(g->beginnings[at / 8] >> at % 8 & 1))
		return NULL;
	return bsearch(&key, g->functions, g->count, sizeof key, by_start);
}

static struct function *holds(const struct graph *g, uint64_t address)
{
	size_t low = SORTED_UP_TO(g->functions, g->count, end, address);

	return low < g->count && g->functions[low].start <= address ? &g->functions[low] : NULL;
}

/* ---- the names ---- */

static void name_core(struct graph *g)
{
	const struct elf_module *m = g->f->module;

	for (size_t i = 0; i < m->symbol_count; i++) {
		const Elf64_Sym *sym = &m->symbols[i];
		if (sym->st_shndx == SHN_UNDEF || !catalogue_is_core_symbol(elf_module_symbol_name(m, (uint32_t)i)))
			continue;
		struct function *fn = begins_at(g, m->bias + sym->st_value);
		if (!fn || ELF64_ST_TYPE(sym->st_info) != STT_FUNC)
			g->unknown = "its allocation functions are not in the table of its functions";
		else
			fn->part = ALLOCATOR_ENTERED;
	}
}

static void name_exported(struct graph *g, allocator_name_fn is_allocation, const struct elf_module *instead)
{
	const struct elf_module *m = g->f->module;
	struct elf_symbol same;

	for (size_t i = 0; i < m->symbol_count; i++) {
		const Elf64_Sym *sym = &m->symbols[i];
		const char *name = elf_module_symbol_name(m, (uint32_t)i);
		struct function *fn = sym->st_shndx == SHN_UNDEF ? NULL : begins_at(g, m->bias + sym->st_value);
		if (fn && is_allocation(name)) {
			fn->part = ALLOCATOR_ENTERED;
			fn->public = true;
		} else if (fn && (catalogue_is_instrumentation_symbol(name) ||
		                  (instead && elf_module_find(instead, name, NULL, &same)))) {
			fn->stands_for = true;
		}
	}
}

struct naming {
	struct graph *g;
	allocator_name_fn is_allocation;
};

static bool name_hidden(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type)
{
	const struct naming *n = context;
	struct function *fn = type == STT_FUNC && n->is_allocation(name) ? begins_at(n->g, address) : NULL;

	(void)bytes;
	if (fn) {
		fn->part = ALLOCATOR_ENTERED;
		fn->public = true;
	}
	return true;
}

/* ---- what they refer to ---- */

/* Words that the loader fills by a name, or copies there. */
static void note_shared(struct graph *g, const struct elf_table *table)
{
	AUTO_FREE Elf64_Rela *relas = NULL;
	size_t count = 0;

	if (elf_module_relocations(g->f->module, g->f->tm, table, &relas, &count, ERR_IGNORED) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (ELF64_R_SYM(relas[i].r_info) == 0)
			continue;
		if (!grow_list(g->shared, g->shared_count)) {
			g->full = true;
			return;
		}
		const uint64_t at = g->f->module->bias + relas[i].r_offset;
		g->shared[g->shared_count++] = at & ~7ull;
		if (g->source_count < SOURCES_MAX && catalogue_is_source_symbol(elf_module_symbol_name(
							     g->f->module, (uint32_t)ELF64_R_SYM(relas[i].r_info))))
			g->sources[g->source_count++] = at;
	}
}

static void add_edge(struct graph *g, const struct function *to, enum edge_kind kind)
{
	const uint32_t index = (uint32_t)(to - g->functions);
	const struct edge *last = g->edge_count ? &g->edges[g->edge_count - 1] : NULL;

	if (to->stub || (last && last->from == g->present && last->to == index && last->kind == kind))
		return;
	if (g->edge_count == EDGES_MAX || !grow_list(g->edges, g->edge_count)) {
		g->full = true;
		return;
	}
	g->edges[g->edge_count++] = (struct edge){ g->present, index, kind };
}

static void on_reference(void *context, enum reference_kind kind, uint64_t destination)
{
	struct graph *g = context;
	const struct elf_module *m = g->f->module;
	const struct function *from = &g->functions[g->present], *to;

	if (destination < m->exec_start || destination >= m->exec_end ||
	    (destination >= from->start && destination < from->end))
		return;
	to = begins_at(g, destination);
	if (to)
		add_edge(g, to, kind == REFERENCE_JUMP || kind == REFERENCE_NEAR_JUMP ? EDGE_JUMP : EDGE_REFERENCE);
	else if (kind == REFERENCE_JUMP && (to = holds(g, destination)))
		add_edge(g, to, EDGE_JUMP_INSIDE);
}

ORDER_NUMBERS(by_value, uint64_t);

static bool is_listed(const uint64_t *list, size_t count, uint64_t value)
{
	return count && bsearch(&value, list, count, sizeof value, by_value);
}

/* A word of the module's own writable data, not of its GOT, nor a variable that it has of a library. */
static bool is_own_word(const struct graph *g, uint64_t at)
{
	const struct elf_module *m = g->f->module;

	return at >= g->data_start && at < g->data_end && (at < m->relro_start || at >= m->relro_end) &&
	       !is_listed(g->shared, g->shared_count, at & ~7ull);
}

/* Does it refer to the word that holds mmap, or call the stub that jumps there? */
static bool leads_to_source(const struct graph *g, enum reference_kind kind, uint64_t destination)
{
	const struct elf_module *m = g->f->module;
	const uint64_t at = destination - m->exec_start;
	uint64_t word = destination;

	if (kind != REFERENCE_DATA && (at >= m->exec_end - m->exec_start ||
	                               !code_stub_word(g->text + at, m->exec_end - destination, destination, &word)))
		return false;
	for (size_t i = 0; i < g->source_count; i++)
		if (g->sources[i] == word)
			return true;
	return false;
}

static void on_word(void *context, enum reference_kind kind, uint64_t destination)
{
	struct graph *g = context;

	g->gets_memory |= leads_to_source(g, kind, destination);
	if (kind != REFERENCE_DATA || !is_own_word(g, destination))
		return;
	if (g->word_count == WORDS_MAX || !grow_list(g->words, g->word_count)) {
		g->full = true;
		return;
	}
	g->words[g->word_count++] = destination;
}

static void read_references(struct graph *g, const struct function *fn, code_reference_fn visit)
{
	g->present = (uint32_t)(fn - g->functions);
	code_references(code_of(g, fn), fn->end - fn->start, fn->start, g->f->module->type == ET_EXEC, visit, g);
}

/* ---- the parts ---- */

static int by_from(const void *key, const void *element)
{
	const uint32_t from = *(const uint32_t *)key;
	const struct edge *edge = element;

	return (from > edge->from) - (from < edge->from);
}

/* The edges of a function: the first, or NULL. */
static const struct edge *edges_of(const struct graph *g, uint32_t from)
{
	const struct edge *edge = g->edge_count ? bsearch(&from, g->edges, g->edge_count, sizeof *edge, by_from) : NULL;

	while (edge && edge > g->edges && edge[-1].from == from)
		edge--;
	return edge;
}

/* All that is reached from what has the part already gets it, by jumps alone or by all references. */
static int spread(struct graph *g, enum allocator_part part, struct err *e)
{
	const enum edge_kind besides = part == ALLOCATOR_ENTERED ? EDGE_REFERENCE : EDGE_JUMP_INSIDE;
	AUTO_FREE uint32_t *open = calloc(g->count + 1, sizeof *open);
	size_t count = 0;

	if (!open)
		return err_set(e, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < g->count; i++)
		if (g->functions[i].part >= part)
			open[count++] = i;
	while (count > 0) {
		const uint32_t from = open[--count];
		for (const struct edge *edge = edges_of(g, from);
		     edge && edge < g->edges + g->edge_count && edge->from == from; edge++) {
			if (g->functions[edge->to].part >= part || edge->kind == besides)
				continue;
			g->functions[edge->to].part = part;
			open[count++] = edge->to;
		}
	}
	return 0;
}

struct word_search {
	const struct graph *g;
	bool found;
};

static void look_for_word(void *context, enum reference_kind kind, uint64_t destination)
{
	struct word_search *s = context;

	if (!s->found && kind == REFERENCE_DATA && is_own_word(s->g, destination))
		s->found = is_listed(s->g->words, s->g->word_count, destination);
}

/* Those that refer to what only the allocator should know. Decided for all before it is noted, so that it goes no
 * further than one step. */
static int add_relatives(struct graph *g, struct err *e)
{
	AUTO_FREE bool *relative = calloc(g->count + 1, sizeof *relative);

	if (!relative)
		return err_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < g->count; i++)
		if (g->functions[i].part != ALLOCATOR_NOT) {
			read_references(g, &g->functions[i], on_word);
			g->gets_memory |= code_maps_memory(code_of(g, &g->functions[i]),
			                                   g->functions[i].end - g->functions[i].start);
		}
	if (g->words)
		qsort(g->words, g->word_count, sizeof *g->words, by_value);
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct function *to = &g->functions[g->edges[i].to];
		relative[g->edges[i].from] |= g->edges[i].kind != EDGE_JUMP_INSIDE && to->part != ALLOCATOR_NOT &&
		                              !to->public && !to->stands_for;
	}
	for (size_t i = 0; i < g->count; i++) {
		struct function *fn = &g->functions[i];
		struct word_search search = { .g = g, .found = relative[i] };
		/* What the program calls as it would the C library (interceptors of sanitizers) is passed through, too.
		 */
		if (fn->stands_for && fn->part == ALLOCATOR_RELATED)
			fn->part = ALLOCATOR_NOT;
		if (fn->part != ALLOCATOR_NOT || fn->stands_for || fn->stub)
			continue;
		if (!search.found && g->word_count)
			code_references(code_of(g, fn), fn->end - fn->start, fn->start, g->f->module->type == ET_EXEC,
			                look_for_word, &search);
		if (search.found)
			fn->part = ALLOCATOR_RELATED;
	}
	return 0;
}

static bool passes_on(const struct graph *g, const struct function *fn)
{
	const struct code_extent module = { g->f->module->start, g->f->module->end };

	return code_jumps_by_pointer(code_of(g, fn), fn->end - fn->start, fn->start, &module);
}

static int find_parts(struct graph *g, allocator_name_fn is_allocation, const struct elf_module *instead, struct err *e)
{
	struct naming naming = { g, is_allocation };

	name_core(g);
	int rc = spread(g, ALLOCATOR_ENTERED, e);
	for (size_t i = 0; i < g->count && rc == 0; i++)
		if (g->functions[i].part == ALLOCATOR_ENTERED && passes_on(g, &g->functions[i]))
			g->unknown = "its allocation functions jump by pointers";
	name_exported(g, is_allocation, instead);
	module_file_symbols(g->f, name_hidden, &naming);
	rc = rc ?: spread(g, ALLOCATOR_ENTERED, e);
	rc = rc ?: spread(g, ALLOCATOR_RELATED, e);
	rc = rc ?: add_relatives(g, e);
	if (rc == 0 && !g->gets_memory)
		g->unknown = "its allocation functions are not seen to get memory";
	return rc;
}

/* ---- the answer ---- */

static int write_ranges(const struct graph *g, struct allocator_code *c, struct err *e)
{
	for (size_t i = 0; i < g->count; i++) {
		const struct function *fn = &g->functions[i];
		struct allocator_range *last = c->count ? &c->list[c->count - 1] : NULL;
		if (fn->part == ALLOCATOR_NOT || (g->unknown && fn->part != ALLOCATOR_ENTERED))
			continue;
		if (last && fn->start - last->end < PADDING_BYTES && last->part == fn->part) {
			last->end = fn->end;
			continue;
		}
		if (!grow_list(c->list, c->count))
			return err_set(e, ENOMEM, "out of memory");
		c->list[c->count++] = (struct allocator_range){ fn->start, fn->end, fn->part };
	}
	c->unknown = g->unknown;
	return 0;
}

static int fill(struct graph *g, allocator_name_fn is_allocation, const struct elf_module *instead, struct err *e)
{
	int rc = read_text(g, e);
	if (rc == 0 && !g->unknown)
		rc = read_functions(g, e);
	if (rc < 0 || g->unknown)
		return rc;
	note_shared(g, &g->f->module->rela);
	note_shared(g, &g->f->module->jmprel);
	if (g->shared)
		qsort(g->shared, g->shared_count, sizeof *g->shared, by_value);
	for (size_t i = 0; i < g->count && !g->full; i++)
		if (!g->functions[i].stub)
			read_references(g, &g->functions[i], on_reference);
	return find_parts(g, is_allocation, instead, e);
}

int allocator_code_find(struct allocator_code *c, const struct module_file *f, allocator_name_fn is_allocation,
                        const struct elf_module *instead, struct err *e)
{
	struct graph g = { .f = f };

	*c = (struct allocator_code){ 0 };
	int rc = fill(&g, is_allocation, instead, e);
	if (g.full)
		g.unknown = "it refers to too much";
	rc = rc ?: write_ranges(&g, c, e);
	free(g.text);
	free(g.functions);
	free(g.edges);
	free(g.words);
	free(g.shared);
	free(g.beginnings);
	if (rc < 0)
		allocator_code_done(c);
	return rc;
}

void allocator_code_done(struct allocator_code *c)
{
	free(c->list);
	*c = (struct allocator_code){ 0 };
}
