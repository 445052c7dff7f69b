/* SPDX-License-Identifier: MIT */
#include "arch/entry_code.h"

#include <string.h>

#include "arch/function_alias.h"
#include "arch/instruction.h"
#include "arch/x86_64/nop_before.h"

#define SHORT_JUMP_BYTES 2u
#define JCC_BYTES 6u
#define LONG_JUMP 0xe9
#define SHORT_JUMP 0xeb

/* Where the padding beside the function is: known when the code before it has been read. */
struct surroundings {
	struct entry_code_range before; /* start == end: none */
	struct entry_code_range after;
};

/* What is known of the function before a way is chosen. */
struct body {
	const struct entry_code_function *f;
	struct instruction first[ENTRY_DISPLACED_MAX + 1]; /* behind an endbr64 */
	size_t count;
	uint64_t start; /* of the first */
	bool ends;      /* its last instruction ends the flow */
	struct surroundings near;
};

static bool is_inside(uint64_t address, uint64_t start, uint64_t end)
{
	return address > start && address < end;
}

/* ---- reading ---- */

static bool read_at(const struct entry_code_function *f, uint64_t address, struct instruction *in)
{
	uint64_t at = address - f->address;

	return at < f->bytes && instruction_read(in, f->code + at, f->bytes - at, address);
}

static int read_first(struct body *b, struct err *e)
{
	const struct entry_code_function *f = b->f;
	struct instruction in;

	b->start = f->address;
	if (read_at(f, f->address, &in) && in.landing_pad)
		b->start += in.bytes;
	for (uint64_t at = b->start; b->count < sizeof b->first / sizeof b->first[0] && read_at(f, at, &in);
	     at += in.bytes) {
		b->first[b->count++] = in;
		if (instruction_ends_flow(&in))
			break;
	}
	return b->count ? 0 : err_set(e, ENOTSUP, "its first instruction cannot be decoded");
}

/* Calls fn for each instruction of code[bytes]. False: not all of it could be decoded. */
typedef bool (*each_fn)(void *context, const struct instruction *in);
static bool each_instruction(const uint8_t *code, size_t bytes, uint64_t address, each_fn fn, void *context)
{
	struct instruction in;

	for (size_t at = 0; at < bytes; at += in.bytes)
		if (!instruction_read(&in, code + at, bytes - at, address + at) || !fn(context, &in))
			return false;
	return true;
}

/* ---- padding ---- */

struct padding_search {
	uint64_t start; /* behind the last end of the flow, if only padding followed; 0: none */
};

static bool on_code_before(void *context, const struct instruction *in)
{
	struct padding_search *s = context;

	if (in->padding)
		return true;
	s->start = instruction_ends_flow(in) ? in->address + in->bytes : 0;
	return true;
}

struct branch_check {
	struct entry_code_range range;
	bool hit; /* a branch leads into it, its start included */
};

static bool on_branch_check(void *context, const struct instruction *in)
{
	struct branch_check *c = context;

	if (in->has_target && in->target >= c->range.start && in->target < c->range.end)
		c->hit = true;
	return true;
}

static bool is_reached_from(const struct entry_code_range *range, const uint8_t *code, size_t bytes, uint64_t address)
{
	struct branch_check c = { .range = *range };

	return !each_instruction(code, bytes, address, on_branch_check, &c) || c.hit;
}

/* The padding that islands may use: without what pointers to the function behind it may lead to. */
static void leave_alias(struct entry_code_range *range, const struct entry_code_function *f, const uint8_t *end)
{
	const uint64_t bytes = range->end - range->start;
	/* Without a nop in it, one could begin in the code before. */
	const unsigned nop = nop_before(end, bytes) ?: FUNCTION_ALIAS_AROUND;

	if (f->aliased)
		range->end -= nop < bytes ? nop : bytes;
}

static struct entry_code_range padding_before(const struct entry_code_function *f)
{
	const struct entry_code_range none = { 0, 0 };
	uint64_t begin = f->address - f->before_bytes;
	struct padding_search s = { 0 };

	if (!f->before || f->before_bytes > ENTRY_BODY_MAX ||
	    !each_instruction(f->before, f->before_bytes, begin, on_code_before, &s) || !s.start)
		return none;
	struct entry_code_range range = { s.start, f->address };
	if (is_reached_from(&range, f->before, f->before_bytes, begin) ||
	    is_reached_from(&range, f->code, f->bytes, f->address))
		return none;
	leave_alias(&range, f, f->before + f->before_bytes);
	return range;
}

static struct entry_code_range padding_after(const struct entry_code_function *f, bool ends)
{
	uint64_t end = f->address + f->bytes;
	uint64_t most = -end % ENTRY_AFTER_MAX;
	struct entry_code_range range = { end, end };
	struct instruction in;

	if (!ends || !f->after)
		return range;
	if (most > f->after_bytes)
		most = f->after_bytes;
	while (range.end - end < most &&
	       instruction_read(&in, f->after + (range.end - end), most - (range.end - end), range.end) && in.padding)
		range.end += in.bytes;
	if (is_reached_from(&range, f->code, f->bytes, f->address))
		range.end = range.start;
	leave_alias(&range, f, f->after + (range.end - end));
	return range;
}

/* The place in a range that is not taken and as near as can be to a short jump that ends at from; 0: none. */
static uint64_t island_in(const struct entry_code_function *f, const struct entry_code_range *range, uint64_t from)
{
	uint64_t best = 0, best_distance = UINT64_MAX;

	for (uint64_t at = range->start; range->end - at >= ENTRY_JUMP_BYTES && at < range->end; at++) {
		int64_t distance = (int64_t)(at - from);
		bool free = true;

		for (size_t i = 0; i < f->taken_count; i++)
			if (at < f->taken[i].end && at + ENTRY_JUMP_BYTES > f->taken[i].start)
				free = false;
		uint64_t size = (uint64_t)(distance < 0 ? -distance : distance);
		if (free && distance >= INT8_MIN && distance <= INT8_MAX && size < best_distance) {
			best = at;
			best_distance = size;
		}
	}
	return best;
}

/* ---- the ways ---- */

struct last_instruction {
	bool ends;
};

static bool on_last(void *context, const struct instruction *in)
{
	((struct last_instruction *)context)->ends = instruction_ends_flow(in);
	return true;
}

static int read_body(struct body *b, const struct entry_code_function *f, struct err *e)
{
	struct last_instruction last = { false };

	*b = (struct body){ .f = f };
	if (f->bytes == 0)
		return err_set(e, ENOTSUP, "where it ends is not known");
	if (f->bytes > ENTRY_BODY_MAX)
		return err_set(e, ENOTSUP, "it is longer than %u bytes", ENTRY_BODY_MAX);
	int r = read_first(b, e);
	if (r)
		return r;
	if (!each_instruction(f->code, f->bytes, f->address, on_last, &last))
		return err_set(e, ENOTSUP, "not all of its code can be decoded");
	b->ends = last.ends;
	b->near = (struct surroundings){ padding_before(f), padding_after(f, b->ends) };
	return 0;
}

struct entry_check {
	uint64_t entry, start, end; /* of the first instructions: from start to end */
	bool inside, back;
};

static bool on_entry_check(void *context, const struct instruction *in)
{
	struct entry_check *c = context;

	if (!in->has_target)
		return true;
	c->inside |= is_inside(in->target, c->start, c->end);
	c->back |= in->flow != FLOW_CALL && (in->target == c->entry || in->target == c->start);
	return true;
}

static int check_branches(const struct body *b, const struct entry_code_plan *p, struct err *e)
{
	const struct entry_code_function *f = b->f;
	struct entry_check c = { f->address, b->start, p->write_at + p->displaced_bytes, false, false };
	struct entry_check other = c;

	if (f->before)
		(void)each_instruction(f->before, f->before_bytes, f->address - f->before_bytes, on_entry_check,
		                       &other);
	if (other.inside || (f->entered && is_inside(f->entered, c.start, c.end)))
		return err_set(e, ENOTSUP, "other code jumps into its first instructions");
	if (!each_instruction(f->code, f->bytes, f->address, on_entry_check, &c))
		return err_set(e, ENOTSUP, "not all of its code can be decoded");
	if (c.back)
		return err_set(e, ENOTSUP, "it jumps back to its own entry");
	return c.inside ? err_set(e, ENOTSUP, "it jumps into its first instructions") : 0;
}

/* Takes instructions until there is room for a jump. */
static int displace(const struct body *b, size_t first, unsigned needed, struct entry_code_plan *p, struct err *e)
{
	for (size_t i = first; i < b->count && p->displaced_bytes < needed; i++) {
		const struct instruction *in = &b->first[i];

		if (in->flow == FLOW_CALL)
			return err_set(e, ENOTSUP, "a call is among its first instructions");
		if (in->fixed)
			return err_set(e, ENOTSUP, "its first instructions branch in a way that cannot be widened");
		p->displaced_bytes += in->bytes;
		p->displaced_count++;
	}
	if (p->displaced_bytes < needed)
		return err_set(e, ENOTSUP, "it is shorter than a jump");
	p->kind = p->displaced_count == 1 ? ENTRY_ONE : ENTRY_SEVERAL;
	return 0;
}

static int consider(const struct body *b, bool behind, unsigned jump_bytes, struct entry_code_plan *p, struct err *e)
{
	struct entry_code_plan out = { .write_at = b->start, .write_bytes = (uint8_t)jump_bytes };

	if (behind && !b->first[0].repeatable)
		return err_set(e, ENOTSUP, "its first instruction cannot be run twice");
	if (!behind && b->start == b->f->address &&
	    *b->f->code != (jump_bytes == SHORT_JUMP_BYTES ? SHORT_JUMP : LONG_JUMP))
		return err_set(e, ENOTSUP, "a uprobe on it would not meet what it has in its file");
	if (behind) {
		out.write_at += b->first[0].bytes;
		out.repeated_bytes = b->first[0].bytes;
		out.undo = b->first[0].undo;
	}
	int r = displace(b, behind, jump_bytes, &out, e);
	r = r ?: check_branches(b, &out, e);
	if (r)
		return r;
	out.crosses_word = out.write_at % 8 + jump_bytes > 8;
	out.crosses_line = out.write_at % 64 + jump_bytes > 64;
	if (jump_bytes == SHORT_JUMP_BYTES) {
		uint64_t from = out.write_at + SHORT_JUMP_BYTES;
		out.island = island_in(b->f, &b->near.after, from);
		if (!out.island)
			out.island = island_in(b->f, &b->near.before, from);
		if (!out.island)
			return err_set(e, ENOTSUP, "there is no padding near it for a jump");
	}
	out.code_bytes = (uint8_t)(out.write_at + out.displaced_bytes - b->f->address);
	memcpy(out.code, b->f->code, out.code_bytes);
	*p = out;
	return 0;
}

/* One cache line before two, one instruction before several, one word before two, no island before an island. */
static unsigned cost_of(const struct entry_code_plan *p)
{
	return p->crosses_line * 8u + (p->kind == ENTRY_SEVERAL) * 4u + p->crosses_word * 2u + (p->island != 0);
}

int entry_code_plan_make(struct entry_code_plan *plan, const struct entry_code_function *f, struct err *e)
{
	static const struct {
		uint8_t jump_bytes;
		bool behind;
	} ways[] = {
		{ ENTRY_JUMP_BYTES, true },
		{ ENTRY_JUMP_BYTES, false },
		{ SHORT_JUMP_BYTES, true },
		{ SHORT_JUMP_BYTES, false },
	};
	unsigned best = UINT32_MAX;
	struct body b;

	int first = read_body(&b, f, e);
	if (first)
		return first;
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		struct entry_code_plan p;
		int r = consider(&b, ways[i].behind, ways[i].jump_bytes, &p, i ? ERR_IGNORED : e);

		if (i == 0)
			first = r;
		if (r || cost_of(&p) >= best)
			continue;
		best = cost_of(&p);
		*plan = p;
	}
	return best == UINT32_MAX ? first : 0;
}

/* ---- encoding ---- */

static void store32(uint8_t *at, int64_t value)
{
	int32_t v = (int32_t)value;

	memcpy(at, &v, sizeof v);
}

/* Writes the distance of a branch or operand that ends at end. */
static int store_distance(uint8_t *at, uint64_t end, uint64_t target, struct err *e)
{
	int64_t distance = (int64_t)(target - end);

	if (distance != (int32_t)distance)
		return err_set(e, ERANGE, "0x%llx is more than 2 GiB away from 0x%llx", (unsigned long long)target,
		               (unsigned long long)end);
	store32(at, distance);
	return 0;
}

static int encode_jump(uint8_t *code, uint64_t at, uint64_t target, struct err *e)
{
	code[0] = LONG_JUMP;
	return store_distance(code + 1, at + ENTRY_JUMP_BYTES, target, e);
}

int entry_code_patch_make(struct entry_code_patch *patch, const struct entry_code_plan *plan, uint64_t hook,
                          struct err *e)
{
	struct entry_code_patch out = { 0 };
	uint64_t at = plan->island ? plan->island : plan->write_at;
	int r = encode_jump(plan->island ? out.island : out.jump, at, hook, e);

	if (r)
		return r;
	if (plan->island) {
		out.jump[0] = SHORT_JUMP;
		out.jump[1] = (uint8_t)(plan->island - (plan->write_at + SHORT_JUMP_BYTES));
	}
	*patch = out;
	return 0;
}

/* lea distance(register), register */
void entry_code_undo(uint8_t code[ENTRY_UNDO_BYTES], const struct instruction_undo *undo)
{
	const uint8_t high = undo->number >> 3, low = undo->number & 7;

	code[0] = (uint8_t)(0x48 | high << 2 | high);
	code[1] = 0x8d;
	code[2] = (uint8_t)(0x44 | low << 3);
	code[3] = (uint8_t)(0x20 | low);
	code[4] = (uint8_t)undo->distance;
}

/* jmp *0(%rip), and the address */
void entry_code_far_jump(uint8_t code[ENTRY_FAR_JUMP_BYTES], uint64_t target)
{
	static const uint8_t jump[] = { 0xff, 0x25, 0, 0, 0, 0 };

	memcpy(code, jump, sizeof jump);
	memcpy(code + sizeof jump, &target, sizeof target);
}

/* One instruction for the address at. Returns its length there, or -ERANGE. */
static int encode_copy(uint8_t *out, const uint8_t *code, const struct instruction *in, uint64_t at, struct err *e)
{
	if (in->has_target && in->flow == FLOW_JUMP) {
		int r = encode_jump(out, at, in->target, e);
		return r ?: (int)ENTRY_JUMP_BYTES;
	}
	if (in->has_target) {
		out[0] = 0x0f;
		out[1] = (uint8_t)(0x80 | in->condition);
		int r = store_distance(out + 2, at + JCC_BYTES, in->target, e);
		return r ?: (int)JCC_BYTES;
	}
	memcpy(out, code, in->bytes);
	if (in->has_memory) {
		int r = store_distance(out + in->distance_at, at + in->bytes, in->memory, e);
		if (r)
			return r;
	}
	return in->bytes;
}

int entry_code_copy_make(struct entry_code_copy *copy, const struct entry_code_plan *plan, uint64_t at, struct err *e)
{
	const uint64_t end = plan->write_at + plan->displaced_bytes;
	const struct entry_code_function f = { .address = end - plan->code_bytes,
		                               .code = plan->code,
		                               .bytes = plan->code_bytes };
	struct entry_code_copy out = { 0 };
	bool ends = false;

	for (uint64_t from = plan->write_at - plan->repeated_bytes; from < end;) {
		struct instruction in;

		if (!read_at(&f, from, &in))
			return err_set(e, ENOTSUP, "its first instructions cannot be decoded");
		int r = encode_copy(out.code + out.bytes, f.code + (from - f.address), &in, at + out.bytes, e);
		if (r < 0)
			return r;
		out.bytes += (uint8_t)r;
		from += in.bytes;
		ends = instruction_ends_flow(&in);
	}
	if (!ends) {
		int r = encode_jump(out.code + out.bytes, at + out.bytes, end, e);
		if (r)
			return r;
		out.bytes += ENTRY_JUMP_BYTES;
	}
	*copy = out;
	return 0;
}
