/* SPDX-License-Identifier: MIT */
#include "stack_walk.h"

#include <libunwind-ptrace.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define AHEAD_BYTES 16384u /* of the stack */
#define READS_MAX 2000000u /* of words in one walk; unwind information may contain loops, and a thread is stopped */
#define CACHE_PAGES 1024u  /* direct-mapped by page number */

/* The part of .eh_frame_hdr before its search table, in the one encoding that linkers write (LSB, "10.6.2"). */
struct eh_frame_header {
	uint8_t version;
	uint8_t frame_encoding;
	uint8_t count_encoding;
	uint8_t table_encoding;
	int32_t frame;
	uint32_t count;
} __attribute__((packed));
#define ENCODING_UDATA4 0x03
#define ENCODING_DATAREL_SDATA4 0x3b
#define TABLE_ENTRY_BYTES 8u

/* Exported by libunwind for remote unwinders that bring their own search; not in its headers. */
#define search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
extern int search_unwind_table(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di, unw_proc_info_t *pi,
                               int need_unwind_info, void *arg);

struct cached_page {
	uint64_t address; /* 1: none (never page-aligned) */
	uint32_t walk;    /* the walk in which it was read, if it may change */
	bool constant;
	uint8_t bytes[PAGE];
};

struct stack_walk {
	const struct modules *modules;
	const struct target_memory *memory;
	unw_addr_space_t space;
	void *ptrace_info; /* of the present walk */
	uint32_t walk;
	unsigned reads; /* in the present walk */
	bool blind;     /* in this step a frame had no unwind information */
	struct cached_page cache[CACHE_PAGES];
};

/* Code and unwind information do not change while a module is mapped. */
static bool is_constant(const struct stack_walk *w, uint64_t page)
{
	const struct elf_module *m = modules_find(w->modules, page, false);

	if (!m)
		return false;
	for (size_t i = 0; i < m->phdr_count; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t start = m->bias + p->p_vaddr;
		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W) && page >= (start & ~(uint64_t)(PAGE - 1)) &&
		    page + PAGE <= ((start + p->p_memsz + PAGE - 1) & ~(uint64_t)(PAGE - 1)))
			return true;
	}
	return false;
}

static const struct cached_page *page_get(struct stack_walk *w, uint64_t page)
{
	struct cached_page *c = &w->cache[page / PAGE % CACHE_PAGES];
	struct err ignored;

	if (c->address == page && (c->constant || c->walk == w->walk))
		return c;
	c->address = 1;
	if (target_read(w->memory, page, c->bytes, PAGE, &ignored) < 0)
		return NULL;
	c->address = page;
	c->walk = w->walk;
	c->constant = is_constant(w, page);
	return c;
}

static bool read_bytes(struct stack_walk *w, uint64_t address, void *buffer, size_t bytes)
{
	uint8_t *to = buffer;

	while (bytes > 0) {
		uint64_t page = address & ~(uint64_t)(PAGE - 1);
		size_t offset = address - page;
		size_t part = bytes < PAGE - offset ? bytes : PAGE - offset;
		const struct cached_page *c = page_get(w, page);
		if (!c)
			return false;
		memcpy(to, c->bytes + offset, part);
		to += part;
		address += part;
		bytes -= part;
	}
	return true;
}

static int access_mem(unw_addr_space_t as, unw_word_t address, unw_word_t *value, int write, void *arg)
{
	(void)as;
	struct stack_walk *w = arg;

	return !write && w->reads++ < READS_MAX && read_bytes(w, address, value, sizeof *value) ? 0 : -UNW_EINVAL;
}

static int search_tables(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need, struct stack_walk *w)
{
	const struct elf_module *m = modules_find(w->modules, ip, true);
	struct eh_frame_header header;

	if (!m || !m->eh_frame_hdr.address || !read_bytes(w, m->eh_frame_hdr.address, &header, sizeof header) ||
	    header.version != 1 || header.count_encoding != ENCODING_UDATA4 ||
	    header.table_encoding != ENCODING_DATAREL_SDATA4 ||
	    (uint64_t)header.count * TABLE_ENTRY_BYTES > m->eh_frame_hdr.bytes)
		return -UNW_ENOINFO;
	unw_dyn_info_t di = {
		.start_ip = m->exec_start,
		.end_ip = m->exec_end,
		.format = UNW_INFO_FORMAT_REMOTE_TABLE,
		.u.rti = {
			.segbase = m->eh_frame_hdr.address,
			.table_data = m->eh_frame_hdr.address + sizeof header,
			.table_len = header.count * TABLE_ENTRY_BYTES / sizeof(unw_word_t),
		},
	};
	return search_unwind_table(as, ip, &di, pi, need, w);
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need, void *arg)
{
	struct stack_walk *w = arg;
	int rc = search_tables(as, ip, pi, need, w);

	w->blind |= rc < 0;
	return rc;
}

/* The rest is libunwind-ptrace's, which wants its own argument. */
static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write, void *arg)
{
	return write ? -UNW_EREADONLYREG : _UPT_access_reg(as, reg, value, 0, ((struct stack_walk *)arg)->ptrace_info);
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
	return write ? -UNW_EREADONLYREG
	             : _UPT_access_fpreg(as, reg, value, 0, ((struct stack_walk *)arg)->ptrace_info);
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	_UPT_put_unwind_info(as, pi, ((struct stack_walk *)arg)->ptrace_info);
}

static int no_dyn_info(unw_addr_space_t as, unw_word_t *address, void *arg)
{
	(void)as, (void)address, (void)arg;
	return -UNW_ENOINFO;
}

static int no_resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
	(void)as, (void)cursor, (void)arg;
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t as, unw_word_t address, char *name, size_t size, unw_word_t *offset, void *arg)
{
	(void)as, (void)address, (void)name, (void)size, (void)offset, (void)arg;
	return -UNW_ENOINFO;
}

struct stack_walk *stack_walk_new(const struct modules *modules, const struct target_memory *memory)
{
	unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = no_dyn_info,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = no_resume,
		.get_proc_name = no_name,
	};
	struct stack_walk *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->modules = modules;
	w->memory = memory;
	for (unsigned i = 0; i < CACHE_PAGES; i++)
		w->cache[i].address = 1;
	w->space = unw_create_addr_space(&accessors, 0);
	if (!w->space) {
		free(w);
		return NULL;
	}
	unw_set_caching_policy(w->space, UNW_CACHE_GLOBAL);
	return w;
}

void stack_walk_free(struct stack_walk *w)
{
	if (!w)
		return;
	unw_destroy_addr_space(w->space);
	free(w);
}

const struct target_memory *stack_walk_memory(const struct stack_walk *w)
{
	return w->memory;
}

/* One step outwards; false: there is no further frame to visit. */
static bool step_out(struct stack_walk *w, unw_cursor_t *cursor, unw_word_t pc, struct stack_walk_end *end)
{
	w->blind = false;
	int step = unw_step(cursor);

	if (w->blind && !end->guessed) {
		end->guessed = true;
		end->guess_frame = end->frames - 1;
		end->guess_pc = pc;
	}
	end->reached = step == 0;
	return step > 0;
}

void stack_walk(struct stack_walk *w, const struct tracee *t, stack_walk_fn visit, void *context,
                struct stack_walk_end *end)
{
	unw_cursor_t cursor;

	*end = (struct stack_walk_end){ 0 };
	w->walk++;
	w->reads = 0;
	w->ptrace_info = _UPT_create(t->tid);
	if (!w->ptrace_info)
		return;
	if (unw_init_remote(&cursor, w->space, w) == 0) {
		while (end->frames < STACK_WALK_FRAMES) {
			unw_word_t pc, sp;
			if (unw_get_reg(&cursor, UNW_REG_IP, &pc) < 0 || unw_get_reg(&cursor, UNW_REG_SP, &sp) < 0)
				break;
			if (pc == 0) {
				end->reached = true;
				break;
			}
			if (!visit(context, end->frames++, pc, sp) || !step_out(w, &cursor, pc, end))
				break;
		}
	}
	_UPT_destroy(w->ptrace_info);
	w->ptrace_info = NULL;
}

static void read_ahead(struct stack_walk *w, uint64_t ip)
{
	unw_proc_info_t ignored;

	if (search_tables(w->space, ip, &ignored, 0, w) < 0)
		return;
}

void stack_walk_read_ahead(struct stack_walk *w, uint64_t pc, uint64_t sp)
{
	uint64_t word;

	w->walk++;
	w->reads = 0;
	read_ahead(w, pc);
	for (uint64_t at = sp & ~7ull; at < sp + AHEAD_BYTES && read_bytes(w, at, &word, sizeof word);
	     at += sizeof word)
		if (modules_find(w->modules, word, true))
			read_ahead(w, word - 1);
}
