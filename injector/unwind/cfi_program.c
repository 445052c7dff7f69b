/* SPDX-License-Identifier: MIT */
#include "unwind/cfi_program.h"

#include <dwarf.h>

#define REMEMBER_MAX 32u /* compilers nest one deep */

uint64_t cfi_reader_unsigned(struct cfi_reader *r, unsigned bytes)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->at) < bytes) {
		r->bad = true;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)r->at[i] << (8 * i);
	r->at += bytes;
	return v;
}

uint64_t cfi_reader_uleb(struct cfi_reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; r->at < r->end; shift += 7) {
		uint8_t byte = *r->at++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	r->bad = true;
	return 0;
}

int64_t cfi_reader_sleb(struct cfi_reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; r->at < r->end;) {
		uint8_t byte = *r->at++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			if (byte & 0x40 && shift < 64)
				v |= ~0ull << shift;
			return (int64_t)v;
		}
	}
	r->bad = true;
	return 0;
}

uint64_t cfi_reader_pointer(struct cfi_reader *r, uint8_t encoding, uint64_t at_address)
{
	uint64_t v;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8: v = cfi_reader_unsigned(r, 8); break;
	case DW_EH_PE_udata2: v = cfi_reader_unsigned(r, 2); break;
	case DW_EH_PE_udata4: v = cfi_reader_unsigned(r, 4); break;
	case DW_EH_PE_sdata2: v = (uint64_t)(int64_t)(int16_t)cfi_reader_unsigned(r, 2); break;
	case DW_EH_PE_sdata4: v = (uint64_t)(int64_t)(int32_t)cfi_reader_unsigned(r, 4); break;
	case DW_EH_PE_uleb128: v = cfi_reader_uleb(r); break;
	case DW_EH_PE_sleb128: v = (uint64_t)cfi_reader_sleb(r); break;
	default: r->bad = true; return 0;
	}
	switch (encoding & 0xf0) {
	case DW_EH_PE_absptr: return v;
	case DW_EH_PE_pcrel: return v + at_address;
	default: r->bad = true; return 0;
	}
}

/* ---- the machine ---- */

struct machine {
	const struct cfi_program *program;
	struct cfi_reader r;
	struct frame_state *state;
	struct frame_state remembered[REMEMBER_MAX];
	unsigned depth;
	struct frame_register ignored;
	uint64_t location;
	cfi_stretch_fn fn;
	void *context;
	int error;
};

/* Of most registers the rules do not matter to us. */
static struct frame_register *register_rule(struct machine *m, uint64_t number)
{
	if (number == frame_pointer_number)
		return &m->state->frame_pointer;
	return number == return_address_number ? &m->state->return_address : &m->ignored;
}

static void set_rule(struct machine *m, uint64_t number, enum frame_register_kind kind, int64_t offset)
{
	*register_rule(m, number) = (struct frame_register){ .kind = kind, .offset = offset };
}

static int64_t factored(const struct machine *m, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)m->program->data_align);
}

static void restore_rule(struct machine *m, uint64_t number)
{
	const struct frame_state *initial = m->program->initial;

	if (!initial)
		m->r.bad = true;
	else if (number == frame_pointer_number)
		m->state->frame_pointer = initial->frame_pointer;
	else if (number == return_address_number)
		m->state->return_address = initial->return_address;
}

static void move_to(struct machine *m, uint64_t location)
{
	if (location < m->location || location > m->program->location_end) {
		m->r.bad = true;
		return;
	}
	if (m->fn && location > m->location)
		m->error = m->fn(m->context, m->location, location, m->state);
	m->location = location;
}

static void advance(struct machine *m, uint64_t units)
{
	uint64_t room = m->program->location_end - m->location;

	if (m->program->code_align && units > room / m->program->code_align)
		m->r.bad = true;
	else
		move_to(m, m->location + units * m->program->code_align);
}

static void set_location(struct machine *m)
{
	uint64_t here = m->program->code_address + (uint64_t)(m->r.at - m->program->code);

	move_to(m, cfi_reader_pointer(&m->r, m->program->pointer_encoding, here));
}

/* Takes a length and as many bytes. */
static const uint8_t *take_block(struct machine *m, size_t *bytes)
{
	uint64_t n = cfi_reader_uleb(&m->r);
	const uint8_t *block = m->r.at;

	if (n > (size_t)(m->r.end - m->r.at)) {
		m->r.bad = true;
		n = 0;
	}
	m->r.at += n;
	*bytes = n;
	return block;
}

static void define_cfa(struct machine *m, uint64_t number, int64_t offset)
{
	m->state->cfa = FRAME_CFA_REGISTER;
	m->state->cfa_register = number;
	m->state->cfa_offset = offset;
}

static void define_cfa_expression(struct machine *m)
{
	m->state->cfa = FRAME_CFA_EXPRESSION;
	m->state->cfa_expression = take_block(m, &m->state->cfa_expression_bytes);
}

static void set_expression(struct machine *m, uint64_t number)
{
	struct frame_register rule = { .kind = FRAME_EXPRESSION };

	rule.expression = take_block(m, &rule.expression_bytes);
	*register_rule(m, number) = rule;
}

static void remember(struct machine *m)
{
	if (m->depth == REMEMBER_MAX)
		m->r.bad = true;
	else
		m->remembered[m->depth++] = *m->state;
}

static void recall(struct machine *m)
{
	if (m->depth == 0)
		m->r.bad = true;
	else
		*m->state = m->remembered[--m->depth];
}

/*
 * The instructions with operands of their own; true if opcode is one of those that define the CFA or move on.
 */
static bool run_cfa_instruction(struct machine *m, uint8_t opcode)
{
	uint64_t number;

	switch (opcode) {
	case DW_CFA_set_loc: set_location(m); return true;
	case DW_CFA_advance_loc1: advance(m, cfi_reader_unsigned(&m->r, 1)); return true;
	case DW_CFA_advance_loc2: advance(m, cfi_reader_unsigned(&m->r, 2)); return true;
	case DW_CFA_advance_loc4: advance(m, cfi_reader_unsigned(&m->r, 4)); return true;
	case DW_CFA_MIPS_advance_loc8: advance(m, cfi_reader_unsigned(&m->r, 8)); return true;
	case DW_CFA_def_cfa:
		number = cfi_reader_uleb(&m->r);
		define_cfa(m, number, (int64_t)cfi_reader_uleb(&m->r));
		return true;
	case DW_CFA_def_cfa_sf:
		number = cfi_reader_uleb(&m->r);
		define_cfa(m, number, factored(m, cfi_reader_sleb(&m->r)));
		return true;
	case DW_CFA_def_cfa_register:
		m->r.bad |= m->state->cfa != FRAME_CFA_REGISTER;
		m->state->cfa_register = cfi_reader_uleb(&m->r);
		return true;
	case DW_CFA_def_cfa_offset:
		m->r.bad |= m->state->cfa != FRAME_CFA_REGISTER;
		m->state->cfa_offset = (int64_t)cfi_reader_uleb(&m->r);
		return true;
	case DW_CFA_def_cfa_offset_sf:
		m->r.bad |= m->state->cfa != FRAME_CFA_REGISTER;
		m->state->cfa_offset = factored(m, cfi_reader_sleb(&m->r));
		return true;
	case DW_CFA_def_cfa_expression: define_cfa_expression(m); return true;
	default: return false;
	}
}

static void run_register_instruction(struct machine *m, uint8_t opcode)
{
	uint64_t number;

	switch (opcode) {
	case DW_CFA_nop: return;
	case DW_CFA_remember_state: remember(m); return;
	case DW_CFA_restore_state: recall(m); return;
	case DW_CFA_GNU_args_size: cfi_reader_uleb(&m->r); return;
	case DW_CFA_GNU_window_save: return;
	default: break;
	}
	number = cfi_reader_uleb(&m->r);
	switch (opcode) {
	case DW_CFA_offset_extended:
		set_rule(m, number, FRAME_OFFSET, factored(m, (int64_t)cfi_reader_uleb(&m->r)));
		break;
	case DW_CFA_offset_extended_sf: set_rule(m, number, FRAME_OFFSET, factored(m, cfi_reader_sleb(&m->r))); break;
	case DW_CFA_GNU_negative_offset_extended:
		set_rule(m, number, FRAME_OFFSET,
		         (int64_t)(0 - (uint64_t)factored(m, (int64_t)cfi_reader_uleb(&m->r))));
		break;
	case DW_CFA_restore_extended: restore_rule(m, number); break;
	case DW_CFA_undefined: set_rule(m, number, FRAME_UNDEFINED, 0); break;
	case DW_CFA_same_value: set_rule(m, number, FRAME_SAME, 0); break;
	case DW_CFA_expression: set_expression(m, number); break;
	case DW_CFA_val_expression:
		set_expression(m, number);
		set_rule(m, number, FRAME_OTHER, 0);
		break;
	case DW_CFA_register:
	case DW_CFA_val_offset:
		cfi_reader_uleb(&m->r);
		set_rule(m, number, FRAME_OTHER, 0);
		break;
	case DW_CFA_val_offset_sf:
		cfi_reader_sleb(&m->r);
		set_rule(m, number, FRAME_OTHER, 0);
		break;
	default: m->r.bad = true;
	}
}

static void step(struct machine *m)
{
	uint8_t opcode = (uint8_t)cfi_reader_unsigned(&m->r, 1);

	switch (opcode & 0xc0) {
	case DW_CFA_advance_loc: advance(m, opcode & 0x3f); break;
	case DW_CFA_offset:
		set_rule(m, opcode & 0x3f, FRAME_OFFSET, factored(m, (int64_t)cfi_reader_uleb(&m->r)));
		break;
	case DW_CFA_restore: restore_rule(m, opcode & 0x3f); break;
	default:
		if (!run_cfa_instruction(m, opcode))
			run_register_instruction(m, opcode);
	}
}

bool cfi_program_run(const struct cfi_program *program, struct frame_state *state, cfi_stretch_fn fn, void *context,
                     int *error)
{
	struct machine m;

	/* Without the array of remembered states: it is large and needs no zeros. */
	m.program = program;
	m.r = (struct cfi_reader){ program->code, program->end, false };
	m.state = state;
	m.depth = 0;
	m.location = program->location;
	m.fn = fn;
	m.context = context;
	m.error = 0;
	while (m.r.at < m.r.end && !m.r.bad && !m.error)
		step(&m);
	if (!m.r.bad && !m.error)
		move_to(&m, program->location_end);
	*error = m.error;
	return !m.r.bad && !m.error;
}
