/* SPDX-License-Identifier: MIT */
/*
 * May the callers of a function rely on registers that it leaves alone?
 *
 * By the ABI a called function may change nine general registers and all vector registers. But with -fipa-ra, a part of
 * -O2, GCC lets a caller keep values in those which it sees that a function of the same source file does not change. A
 * hook at the entry would change them. What a function uses, to GCC, is what its instructions write; a call or jump to
 * another function of the file adds what that one uses, and any other call adds everything: of a function in another
 * file, of one that may be interposed, and through a pointer. Calls that do not return count, and so does code that the
 * compiler has put elsewhere.
 *
 * Which file a function comes from cannot be seen in a program. So the code is searched, along direct calls and jumps
 * within the module, for a call that adds everything wherever that is:
 *
 *   - through a pointer in memory, also where a register was loaded from there before, on a machine that has no other
 *     such calls. Not through another register: it may hold the address of a function that GCC knows, in the large code
 *     model for one. Nor from the stack, nor as a TLS descriptor is called (instruction.h)
 *   - of a stub that jumps through a word of the module, as those for functions of other modules do. A word that leads
 *     back into the stub's own function is none: `goto *label` looks the same
 *
 * If a function that is reached uses everything, so does the one where the search began: either it is in the same file,
 * or the call that leaves the file is enough. What cannot be followed shows nothing, and a search that comes to its end
 * without such a call, or has read enough, shows nothing: such a function is hooked with TRAMPOLINE_KEEPS (control.h),
 * which is right in any case and costs a little. Allocators nearly always have such a call, for memory or to complain.
 *
 * A function with a convention of its own (preserve_most, no_caller_saved_registers) saves what others may change when
 * it begins: it is taken for one that leaves registers alone, whatever it calls.
 *
 * Code is followed no further than its function reaches, by its description in .eh_frame: behind a call that does not
 * return stands another function. A static program has no table of the descriptions; there the symbols of functions say
 * it, of which none reaches beyond the begin of the next. A table may lack most functions of a module (chromium): an
 * allocation function that it does not have reaches as far as its own symbol says, others are not followed, and a stub
 * counts only if its word leads out of the module. What was written over the code since is not looked at: callers were
 * compiled with what the file has.
 */
#include <stdlib.h>
#include <string.h>

#include "allocators/allocator_internal.h"
#include "allocators/function_body.h"
#include "arch/code.h"
#include "arch/instruction.h"
#include "base/grow.h"
#include "base/sorted.h"
#include "base/order.h"

#define PLACES_MAX 128u        /* where calls and jumps lead to, for one allocation function */
#define INSTRUCTIONS_MAX 6000u /* all of them together */
#define FUNCTION_BYTES_MAX (64u << 10)
#define PROLOGUE_MAX 16u /* instructions */

struct extent {
	uint64_t start;
	uint64_t bytes;
};

/* Functions by their symbols, sorted; empty where the module has a table. */
struct extents {
	struct extent *list;
	size_t count;
	struct budget *budget;
	int result;
	struct err *e;
};

struct search {
	struct finder *f;
	const struct module_view *v;
	const struct extents *symbols;
	unsigned left; /* instructions */
	uint64_t places[PLACES_MAX];
	unsigned count, next;
	bool found;
	bool undescribed; /* the function whose code is read is not in .eh_frame, so others may lack there, too */
};

/* ---- how far functions reach ---- */

static bool on_symbol(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type)
{
	struct extents *x = context;

	(void)name;
	if (type != STT_FUNC || !bytes)
		return true;
	x->result = budget_take(x->budget, 2 * sizeof *x->list, x->e);
	if (x->result == 0 && !grow_list(x->list, x->count))
		x->result = err_set(x->e, ENOMEM, "no memory for the list of functions");
	if (x->result < 0)
		return false;
	x->list[x->count++] = (struct extent){ address, bytes };
	return true;
}

ORDER_BY(by_start, struct extent, start);

static int extents_open(struct extents *x, struct finder *f, const struct module_view *v, struct err *e)
{
	*x = (struct extents){ .budget = &f->budget, .e = e };
	if (v->table.count == 0)
		(void)module_file_symbols(&v->file, on_symbol, x);
	if (x->count)
		qsort(x->list, x->count, sizeof *x->list, by_start);
	for (size_t i = 0; i + 1 < x->count; i++)
		if (x->list[i].bytes > x->list[i + 1].start - x->list[i].start)
			x->list[i].bytes = x->list[i + 1].start - x->list[i].start;
	return x->result;
}

static bool extent_by_symbol(const struct extents *x, uint64_t address, struct extent *found)
{
	/* The last one that begins at the address or before; of several with one begin only the last has a length. */
	size_t low = SORTED_UP_TO(x->list, x->count, start, address);

	if (low == 0 || address - x->list[low - 1].start >= x->list[low - 1].bytes)
		return false;
	*found = x->list[low - 1];
	return true;
}

/* The function that holds the address, as far as it is known. */
static bool extent_around(const struct search *s, uint64_t address, struct extent *found)
{
	const struct module_view *v = s->v;

	if (!function_table_around(&v->table, address, &found->start, &found->bytes) &&
	    !extent_by_symbol(s->symbols, address, found))
		return false;
	return found->bytes <= FUNCTION_BYTES_MAX && elf_module_holds(v->file.module, found->start, found->bytes, PF_X);
}

/* ---- the search ---- */

/* Does a jump through the word leave the code that begins at `from`? */
static bool leads_away(const struct search *s, uint64_t word, uint64_t from)
{
	struct extent around;
	uint64_t value;

	if (!elf_module_holds(s->v->file.module, word, sizeof value, 0) ||
	    target_read_u64(&s->f->memory, word, &value, ERR_IGNORED))
		return false;
	if (!extent_around(s, from, &around))
		return !s->undescribed || !elf_module_holds(s->v->file.module, value, 1, PF_X);
	return around.start != from || value - from >= around.bytes;
}

/* Is there the code that the linker makes for calls of functions elsewhere? Some load a number first. */
static bool is_stub(const struct search *s, uint64_t address)
{
	uint8_t code[STUB_BYTES];
	struct instruction in;
	uint64_t word;

	if (!elf_module_holds(s->v->file.module, address, sizeof code, PF_X) ||
	    module_file_read(&s->v->file, address, code, sizeof code, ERR_IGNORED))
		return false;
	if (code_stub_word(code, sizeof code, address, &word))
		return leads_away(s, word, address);
	for (size_t at = 0; at < sizeof code; at += in.bytes) {
		if (!instruction_read(&in, code + at, sizeof code - at, address + at))
			return false;
		if (in.flow != FLOW_NEXT)
			return in.flow == FLOW_JUMP && in.has_memory && leads_away(s, in.memory, address);
	}
	return false;
}

static void add_place(struct search *s, uint64_t address)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->places[i] == address)
			return;
	if (s->count < PLACES_MAX)
		s->places[s->count++] = address;
}

static void take_branch(struct search *s, struct function_body *b, const struct instruction *in)
{
	if (!in->has_target)
		return;
	if (in->target - b->address < b->bytes)
		function_body_add(b, in->target);
	else if (is_stub(s, in->target))
		s->found = true;
	else
		add_place(s, in->target);
}

/* The code of one function from `from` on. */
static void search_body(struct search *s, struct function_body *b, uint64_t from)
{
	struct instruction in;

	function_body_add(b, from);
	while (!s->found && s->left && function_body_next(b, &in)) {
		s->left--;
		if (in.calls_pointer ||
		    (in.calls_register && code_calls_what_was_read(b->code, in.address - b->address)))
			s->found = true;
		else if (in.flow == FLOW_CALL || in.flow == FLOW_JUMP || in.flow == FLOW_CONDITION)
			take_branch(s, b, &in);
		if (!instruction_ends_flow(&in))
			function_body_add(b, in.address + in.bytes);
	}
}

static bool saves_arguments(const struct search *s, const struct allocator_function *fn)
{
	uint8_t code[PROLOGUE_MAX * INSTRUCTION_MAX];
	size_t bytes = fn->bytes < sizeof code ? fn->bytes : sizeof code;
	unsigned count = 0;
	struct instruction in;

	if (module_file_read(&s->v->file, fn->address, code, bytes, ERR_IGNORED))
		return true;
	for (size_t at = 0, i = 0; i < PROLOGUE_MAX && at < bytes; i++, at += in.bytes) {
		if (!instruction_read(&in, code + at, bytes - at, fn->address + at) || in.flow != FLOW_NEXT)
			break;
		count += in.saves_argument;
	}
	return count > 1;
}

/* Where .eh_frame describes little of a module (chromium), the function itself reaches as far as its symbol says. */
static bool extent_of_place(struct search *s, const struct allocator_function *fn, uint64_t address,
                            struct extent *found)
{
	s->undescribed = !extent_around(s, address, found);
	if (!s->undescribed)
		return true;
	*found = (struct extent){ fn->address, fn->bytes };
	return address == fn->address && fn->bytes <= FUNCTION_BYTES_MAX &&
	       elf_module_holds(s->v->file.module, fn->address, fn->bytes, PF_X);
}

static bool uses_all(struct search *s, const struct allocator_function *fn)
{
	if (!fn->bytes || saves_arguments(s, fn))
		return false;
	add_place(s, fn->address);
	while (!s->found && s->left && s->next < s->count) {
		uint64_t address = s->places[s->next++];
		struct extent around;
		struct function_body b;

		if (!extent_of_place(s, fn, address, &around))
			continue;
		if (function_body_read(&b, &s->v->file, around.start, around.bytes))
			search_body(s, &b, address);
		function_body_done(&b);
	}
	return s->found;
}

static int search_functions(struct finder *f, const struct module_view *v, const struct extents *symbols, struct err *e)
{
	for (size_t i = 0; i < f->out.function_count; i++) {
		struct allocator_function *fn = &f->out.functions[i];
		struct search s = { .f = f, .v = v, .symbols = symbols, .left = INSTRUCTIONS_MAX };

		if (fn->module != v->module)
			continue;
		fn->uses_all = uses_all(&s, fn);
		int r = budget_work(&f->budget, (uint64_t)(INSTRUCTIONS_MAX - s.left) * DECODE_COST, e);
		if (r)
			return r;
	}
	return budget_check(&f->budget, e);
}

int allocator_registers_find(struct finder *f, const struct module_view *v, struct err *e)
{
	struct extents symbols;

	int r = extents_open(&symbols, f, v, e);
	r = r ?: search_functions(f, v, &symbols, e);
	free(symbols.list);
	return r;
}
