/* SPDX-License-Identifier: MIT */
/*
 * What an allocation function passes on to. Its code is followed from the entry along all paths. A path that reaches a
 * call or jump to another listed function ends there, "passed on"; one that reaches a return, or a jump to code that is
 * not followed, ends on its own. Functions in between that are not listed are followed to a small depth.
 */
#include <string.h>

#include "allocators/allocator_internal.h"
#include "allocators/function_body.h"
#include "arch/code.h"
#include "got/listed_hook.h"

#define DEPTH_MAX 2u
#define INSTRUCTIONS_MAX 4000u /* for one allocation function, with all that is followed */
#define FOLLOW_BYTES_MAX (16u << 10)
#define FOLLOWED_MAX 64u

/* Of one function, and of what it calls. Neither: it never returns. */
struct ways {
	bool passed; /* some path leads to a listed function */
	bool own;    /* some path returns without, or may do so */
};

struct followed {
	uint64_t address;
	struct ways ways;
};

struct follower {
	struct finder *f;
	const struct module_view *v;
	const struct allocator_function *of;
	unsigned depth;
	unsigned left;                      /* instructions */
	struct followed done[FOLLOWED_MAX]; /* functions in between, which are often called from several places */
	unsigned done_count;
	bool unread;
	bool other;         /* a listed function of another kind is called: free by realloc */
	bool until_handler; /* a path ends where it calls a function of the program's choice, by a pointer */
};

/* Where a word that holds a lazy stub will lead. */
static uint64_t by_relocation(const struct finder *f, const struct module_view *v, uint64_t word)
{
	const struct elf_module *m = v->file.module;
	struct elf_symbol s;

	for (size_t i = 0; i < v->jump_count; i++) {
		const Elf64_Rela *rela = &v->jumps[i];
		uint32_t n = (uint32_t)ELF64_R_SYM(rela->r_info);
		if (m->bias + rela->r_offset != word || ELF64_R_TYPE(rela->r_info) != RELOCATION_JUMP_SLOT)
			continue;
		return scope_find(f->scope, m, elf_module_symbol_name(m, n), elf_module_symbol_version(m, n), &s) &&
		                       !s.ifunc
		               ? s.address
		               : 0;
	}
	return 0;
}

/* What a call or jump through a word of the module leads to. */
static uint64_t through_word(struct finder *f, const struct module_view *v, uint64_t word)
{
	const struct got_plan *plans = f->in->plans;
	uint64_t value;

	if (budget_work(&f->budget, plans->entry_count + v->jump_count, ERR_IGNORED))
		return 0;
	for (size_t i = 0; i < plans->entry_count; i++)
		if (plans->entries[i].address == word)
			return plans->entries[i].original;
	if (!elf_module_holds(v->file.module, word, sizeof value, 0) ||
	    target_read_u64(&f->memory, word, &value, ERR_IGNORED))
		return 0;
	return elf_module_holds(v->file.module, value, 1, PF_X) && !finder_function(f, value)
	               ? by_relocation(f, v, word)
	               : value;
}

uint64_t allocator_layers_destination(struct finder *f, const struct module_view *v, const struct instruction *in)
{
	uint8_t stub[STUB_BYTES];
	uint64_t to = in->target, word;

	if (!in->has_target)
		return in->has_memory ? through_word(f, v, in->memory) : 0;
	if (finder_function(f, to) || !elf_module_holds(v->file.module, to, sizeof stub, PF_X) ||
	    module_file_read(&v->file, to, stub, sizeof stub, ERR_IGNORED) ||
	    !code_stub_word(stub, sizeof stub, to, &word))
		return to;
	return through_word(f, v, word);
}

static bool allocates(unsigned shape)
{
	return shape == SHAPE_ALLOC || shape == SHAPE_OUT || shape == SHAPE_REALLOC;
}

/* Does a call of to do what the function was called for? */
static bool does_the_work(struct follower *w, const struct allocator_function *to)
{
	unsigned shape = w->of->like.shape, other = to->like.shape;

	if (to->address == w->of->address)
		return false;
	if (shape == SHAPE_FREE)
		return other == SHAPE_FREE;
	if (shape == SHAPE_REALLOC && other != SHAPE_REALLOC) {
		w->other |= allocates(other) || other == SHAPE_FREE;
		return false;
	}
	return allocates(shape) && allocates(other);
}

static struct ways follow(struct follower *w, uint64_t address, uint64_t bytes);

/* A call or jump to code that is not listed. */
static struct ways follow_into(struct follower *w, uint64_t to)
{
	const struct ways unknown = { false, true };

	for (unsigned i = 0; i < w->done_count; i++)
		if (w->done[i].address == to)
			return w->done[i].ways;
	uint64_t bytes = to ? function_table_bytes(&w->v->table, to, 0) : 0;

	if (w->depth == DEPTH_MAX || !bytes || bytes > FOLLOW_BYTES_MAX)
		return unknown;
	w->depth++;
	struct ways ways = follow(w, to, bytes);
	w->depth--;
	if (w->done_count < FOLLOWED_MAX)
		w->done[w->done_count++] = (struct followed){ to, ways };
	return ways;
}

/* Returns whether the path goes on behind the instruction. */
static bool take_branch(struct follower *w, struct function_body *b, const struct instruction *in, struct ways *ways)
{
	bool is_call = in->flow == FLOW_CALL;

	if (w->until_handler && is_call && !in->has_target && !in->has_memory)
		return false;
	if (!is_call && in->has_target && in->target - b->address < b->bytes) {
		function_body_add(b, in->target);
		return in->flow == FLOW_CONDITION;
	}
	uint64_t to = allocator_layers_destination(w->f, w->v, in);
	const struct allocator_function *fn = to ? finder_function(w->f, to) : NULL;
	struct ways inner = { fn && does_the_work(w, fn), fn && !does_the_work(w, fn) };
	if (!fn)
		inner = follow_into(w, to);
	ways->passed |= inner.passed;
	if (is_call)
		return inner.own;
	ways->own |= inner.own;
	return in->flow == FLOW_CONDITION;
}

static struct ways follow_body(struct follower *w, struct function_body *b)
{
	struct ways ways = { false, false };

	function_body_add(b, b->address);
	while (b->todo_count) {
		struct instruction in;
		bool on = true;

		if (!w->left || !function_body_next(b, &in)) {
			w->unread |= !w->depth && w->left;
			ways.own = true;
			return ways;
		}
		w->left--;
		if (in.flow == FLOW_RETURN)
			ways.own = true;
		if (in.flow == FLOW_CALL || in.flow == FLOW_JUMP || in.flow == FLOW_CONDITION)
			on = take_branch(w, b, &in, &ways);
		/* Behind the end of the function is no way: the call before it does not return. */
		if (on && in.flow != FLOW_RETURN && in.flow != FLOW_TRAP)
			function_body_add(b, in.address + in.bytes);
	}
	return ways;
}

static struct ways follow(struct follower *w, uint64_t address, uint64_t bytes)
{
	struct ways ways = { false, true };
	struct function_body b;

	if (function_body_read(&b, &w->v->file, address, bytes))
		ways = follow_body(w, &b);
	else
		w->unread |= !w->depth;
	function_body_done(&b);
	return ways;
}

static enum allocator_layer layer_of(struct finder *f, const struct module_view *v, const struct allocator_function *of)
{
	struct follower w = { .f = f, .v = v, .of = of, .left = INSTRUCTIONS_MAX };

	if (!of->bytes || of->bytes > FOLLOW_BYTES_MAX)
		return LAYER_UNKNOWN;
	struct ways ways = follow(&w, of->address, of->bytes);
	if (w.unread)
		return ways.passed ? LAYER_MIXED : LAYER_UNKNOWN;
	if (ways.passed && !ways.own)
		return LAYER_WRAPPER;
	return ways.passed || w.other ? LAYER_MIXED : LAYER_LOWEST;
}

/*
 * operator new that works by itself, and asks another listed function once there was no memory and it has called the
 * program's new_handler.
 */
static bool is_own_until_handler(struct finder *f, const struct module_view *v, const struct allocator_function *of)
{
	struct follower w = { .f = f, .v = v, .of = of, .left = INSTRUCTIONS_MAX, .until_handler = true };

	return listed_hook_throws(of->like.hook) && of->layer == LAYER_MIXED &&
	       !follow(&w, of->address, of->bytes).passed && !w.unread && w.left;
}

int allocator_layers_find(struct finder *f, const struct module_view *v, struct err *e)
{
	for (size_t i = 0; i < f->out.function_count; i++) {
		struct allocator_function *fn = &f->out.functions[i];

		if (fn->module != v->module)
			continue;
		int r = budget_work(&f->budget, (uint64_t)INSTRUCTIONS_MAX * DECODE_COST, e);
		if (r)
			return r;
		fn->layer = layer_of(f, v, fn);
		fn->own_until_handler = is_own_until_handler(f, v, fn);
	}
	return budget_check(&f->budget, e);
}
