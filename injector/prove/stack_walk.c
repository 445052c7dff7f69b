/* SPDX-License-Identifier: MIT */
#include "prove/stack_walk.h"

#include <stdlib.h>
#include <string.h>

#include "arch/registers.h"
#include "arch/signal_frame.h"
#include "arch/code.h"
#include "arch/rule_encode.h"

#define PAGE 4096u
#define CACHE_PAGES 16u         /* of stacks, direct-mapped by page number */
#define FRAME_POINTER_MAX 16384 /* a frame that is guessed is no larger */

struct cached_page {
	uint64_t address; /* 1: none (never page-aligned) */
	uint32_t walk;    /* the walk in which it was read: later it may have changed */
	uint8_t bytes[PAGE];
};

struct stack_walk {
	const struct modules *modules;
	const struct target_memory *memory;
	const struct unwind_tables *tables;
	uint32_t walk;
	struct cached_page cache[CACHE_PAGES];
};

/* A frame that the walk has arrived at. */
struct place {
	uint64_t pc, sp, fp;
	uint64_t link;  /* the register with the return address, of code that may not have saved it; 0: lost, or none */
	bool is_return; /* pc is a return address: the call is before it */
	bool fp_is_lost; /* no rule tells it */
};

enum step {
	STEP_ON,
	STEP_END,  /* something that looks like the outermost frame */
	STEP_LOST, /* there is a caller that cannot be found */
};

static const struct cached_page *page_get(struct stack_walk *w, uint64_t page)
{
	struct cached_page *c = &w->cache[page / PAGE % CACHE_PAGES];

	if (c->address == page && c->walk == w->walk)
		return c;
	c->address = 1;
	if (target_read(w->memory, page, c->bytes, PAGE, ERR_IGNORED) < 0)
		return NULL;
	c->address = page;
	c->walk = w->walk;
	return c;
}

static bool read_word(struct stack_walk *w, uint64_t address, uint64_t *word)
{
	uint8_t *to = (uint8_t *)word;

	for (size_t left = sizeof *word; left > 0;) {
		uint64_t page = address & ~(uint64_t)(PAGE - 1);
		size_t offset = address - page, part = left < PAGE - offset ? left : PAGE - offset;
		const struct cached_page *c = page_get(w, page);
		if (!c)
			return false;
		memcpy(to, c->bytes + offset, part);
		to += part;
		address += part;
		left -= part;
	}
	return true;
}

struct stack_walk *stack_walk_new(const struct modules *modules, const struct target_memory *memory,
                                  const struct unwind_tables *tables)
{
	struct stack_walk *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->modules = modules;
	w->memory = memory;
	w->tables = tables;
	for (unsigned i = 0; i < CACHE_PAGES; i++)
		w->cache[i].address = 1;
	return w;
}

void stack_walk_free(struct stack_walk *w)
{
	free(w);
}

const struct target_memory *stack_walk_memory(const struct stack_walk *w)
{
	return w->memory;
}

/* Entries of a PLT have no rule, or an expression for a CFA, which is none (UNWIND_UNSUPPORTED). */
static uint32_t rule_in_stub(const struct stack_walk *w, const struct place *at, uint32_t rule)
{
	uint8_t code[STUB_BYTES];

	for (uint64_t into = at->pc % STUB_ALIGNMENT; !at->is_return && into < sizeof code; into += STUB_ALIGNMENT)
		if (target_read(w->memory, at->pc - into, code, sizeof code, ERR_IGNORED) == 0 &&
		    code_is_stub(code, sizeof code))
			return rule_encode_in_stub(at->pc);
	return rule;
}

/* The rule for the code that the frame is in. A signal handler may return to code without a rule (musl). */
static uint32_t rule_of(const struct stack_walk *w, const struct place *at)
{
	const uint64_t pc = at->pc - at->is_return;
	const struct elf_module *m = modules_find(w->modules, pc, true);
	struct unwind_rows rows;
	uint32_t rule = UNWIND_RULE(UNWIND_NONE, 0, 0);

	if (m && unwind_tables_rows(w->tables, m, &rows) && pc - m->exec_start <= UINT32_MAX)
		rule = unwind_rows_find(&rows, (uint32_t)(pc - m->exec_start));
	if (UNWIND_KIND(rule) == UNWIND_NONE && signal_frame_is_return(w->memory, at->pc))
		return UNWIND_RULE(UNWIND_SIGNAL, 0, 0);
	if (UNWIND_KIND(rule) == UNWIND_UNSUPPORTED || UNWIND_KIND(rule) == UNWIND_NONE)
		return rule_in_stub(w, at, rule);
	return rule;
}

/* To the caller, whose return address is known. */
static enum step return_to(struct place *at, uint64_t cfa, uint64_t address)
{
	at->pc = code_address(address);
	at->sp = cfa;
	at->link = 0;
	at->is_return = true;
	return at->pc ? STEP_ON : STEP_END;
}

/* … and is so far below the CFA. */
static enum step step_to(struct stack_walk *w, struct place *at, uint64_t cfa, uint64_t below)
{
	uint64_t address;

	if (cfa < at->sp + below || !read_word(w, cfa - below, &address))
		return STEP_LOST;
	return return_to(at, cfa, address);
}

static bool find_cfa(struct stack_walk *w, const struct place *at, uint32_t rule, uint64_t *cfa)
{
	const uint64_t n = (uint64_t)UNWIND_N_BYTES(rule);

	switch (UNWIND_KIND(rule)) {
	case UNWIND_SP:
	case UNWIND_PAIR_SP:
	case UNWIND_LINK_SP: *cfa = at->sp + n; return true;
	case UNWIND_FP:
	case UNWIND_PAIR_FP:
	case UNWIND_LINK_FP: *cfa = at->fp + n; return !at->fp_is_lost;
	case UNWIND_AT_SP: return read_word(w, at->sp + n, cfa);
	case UNWIND_AT_FP: return !at->fp_is_lost && read_word(w, at->fp + n, cfa);
	case UNWIND_AT_SP_8:
		if (!read_word(w, at->sp + n, cfa))
			return false;
		*cfa += 8;
		return true;
	default: return false;
	}
}

/* Of a frame that leaves the frame pointer alone. A function that has not saved its return address has called nobody.
 */
static enum step step_by_link(struct stack_walk *w, struct place *at, uint64_t cfa, uint32_t field)
{
	if (field)
		return step_to(w, at, cfa, 8ull * field);
	return at->link && cfa >= at->sp ? return_to(at, cfa, at->link) : STEP_LOST;
}

/* Of a frame whose return address is in the word above the frame pointer that it has saved. */
static enum step step_by_pair(struct stack_walk *w, struct place *at, uint32_t rule, uint64_t cfa)
{
	const uint64_t field = UNWIND_FP_FIELD(rule), base = UNWIND_KIND(rule) == UNWIND_PAIR_SP ? at->sp : at->fp;
	const uint64_t pair = field == UNWIND_FP_AT_FP ? base : cfa - 8 * field;

	if (field == UNWIND_FP_LOST || pair < at->sp || cfa - pair < 16 || cfa < pair)
		return STEP_LOST;
	at->fp_is_lost = !read_word(w, pair, &at->fp);
	return step_to(w, at, cfa, cfa - pair - 8);
}

static enum step step_by_rule(struct stack_walk *w, struct place *at, uint32_t rule)
{
	const uint32_t field = UNWIND_FP_FIELD(rule), kind = UNWIND_KIND(rule);
	uint64_t cfa;

	if (!find_cfa(w, at, rule, &cfa))
		return STEP_LOST;
	if (kind == UNWIND_LINK_SP || kind == UNWIND_LINK_FP)
		return step_by_link(w, at, cfa, field);
	if (kind == UNWIND_PAIR_SP || kind == UNWIND_PAIR_FP)
		return step_by_pair(w, at, rule, cfa);
	if (field == UNWIND_FP_AT_FP)
		at->fp_is_lost |= !read_word(w, at->fp, &at->fp);
	else if (field == UNWIND_FP_LOST)
		at->fp_is_lost = true;
	else if (field != UNWIND_FP_SAME)
		at->fp_is_lost = !read_word(w, cfa - 8ull * field, &at->fp);
	return step_to(w, at, cfa, 8);
}

/* To what the signal has interrupted, perhaps on another stack. */
static enum step step_over_signal(struct stack_walk *w, struct place *at)
{
	const uint64_t context = at->sp;

	if (!read_word(w, context + SIGNAL_CONTEXT_PC, &at->pc) ||
	    !read_word(w, context + SIGNAL_CONTEXT_SP, &at->sp) || !read_word(w, context + SIGNAL_CONTEXT_FP, &at->fp))
		return STEP_LOST;
	if (SIGNAL_CONTEXT_LINK && !read_word(w, context + SIGNAL_CONTEXT_LINK, &at->link))
		return STEP_LOST;
	at->is_return = false;
	at->fp_is_lost = false;
	return at->pc ? STEP_ON : STEP_END;
}

/* As if the code had a frame pointer. What cannot be one looks like the end. */
static enum step step_by_guess(struct stack_walk *w, struct place *at)
{
	uint64_t fp = at->fp, saved;

	if (at->fp_is_lost || fp < at->sp || fp - at->sp > FRAME_POINTER_MAX || !read_word(w, fp, &saved))
		return STEP_END;
	at->fp = saved;
	return step_to(w, at, fp + 16, 8);
}

/* One step outwards from the frame that was visited last. */
static enum step step_out(struct stack_walk *w, struct place *at, struct stack_walk_end *end)
{
	const uint32_t rule = rule_of(w, at);

	switch (UNWIND_KIND(rule)) {
	case UNWIND_END: return STEP_END;
	case UNWIND_SIGNAL: end->in_handler = true; return step_over_signal(w, at);
	case UNWIND_NONE:
		if (!end->guessed) {
			end->guessed = true;
			end->guess_frame = end->frames - 1;
			end->guess_pc = at->pc;
		}
		return step_by_guess(w, at);
	default: return step_by_rule(w, at, rule);
	}
}

static void walk(struct stack_walk *w, struct place at, stack_walk_fn visit, void *context, struct stack_walk_end *end)
{
	enum step step = STEP_ON;

	*end = (struct stack_walk_end){ 0 };
	w->walk++;
	while (step == STEP_ON && end->frames < STACK_WALK_FRAMES && visit(context, end->frames++, at.pc, at.sp))
		step = step_out(w, &at, end);
	end->reached = step == STEP_END;
}

void stack_walk(struct stack_walk *w, struct tracee *t, stack_walk_fn visit, void *context, struct stack_walk_end *end)
{
	struct registers regs;

	*end = (struct stack_walk_end){ 0 };
	if (tracee_registers(t, &regs, ERR_IGNORED) < 0)
		return;
	const struct place at = { .pc = registers_pc(&regs),
		                  .sp = registers_sp(&regs),
		                  .fp = registers_fp(&regs),
		                  .link = registers_link(&regs) };
	walk(w, at, visit, context, end);
}

void stack_walk_asleep(struct stack_walk *w, uint64_t pc, uint64_t sp, stack_walk_fn visit, void *context,
                       struct stack_walk_end *end)
{
	walk(w, (struct place){ .pc = pc, .sp = sp, .fp_is_lost = true }, visit, context, end);
}
