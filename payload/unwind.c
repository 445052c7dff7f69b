/* SPDX-License-Identifier: MIT */
/*
 * The walk of a stack.
 *
 * Nothing of the target's memory is trusted: a rule may be wrong for hand-written code, and a register may hold anything. So
 * every word is read inside [sp of the frame, end of the stack), the CFA grows with each frame, and a frame that does not fit ends
 * the walk: the stack is marked truncated, nothing is made up.
 *
 * The end of the stack is, in this order: the end of the readable and writable range of the index that holds sp (a guard page
 * ends it), cut at the thread pointer if that lies above sp in the range, since both libcs put the thread control block on top
 * of a thread's stack; the thread pointer, for a thread younger than the index; the end of the main stack, which grows downward away
 * from what the index knows. Of any other stack only UNKNOWN_BYTES above sp are read, and only by rules from tables.
 *
 * A signal frame leads to the interrupted code, perhaps on another stack: there the walk begins anew, a limited number of
 * times, since nothing else keeps a forged chain of signal frames from going round.
 */
#include "unwind.h"

#include "arch.h"
#include "thread_slot.h"

#define STACK_MAX_BYTES (64ull << 20)
#define UNKNOWN_BYTES (256ull << 10)
#define SIGNAL_FRAMES_MAX 8

struct walk {
	struct unwind_view view;
	uint64_t pc; /* the return address, or the interrupted instruction + 1 */
	uint64_t sp;
	uint64_t fp;
	uint64_t stack_end;
	uint64_t thread_pointer;
	bool fp_known;
	bool stack_known;
	uint32_t signal_frames;
	uint32_t fallback;
};

enum step { STEP_ON, STEP_END, STEP_LOST };

/* Reads the target's stack: words that no C object of ours covers. */
__attribute__((no_sanitize("address", "thread"))) static uint64_t stack_word(uint64_t address)
{
	return *(const volatile uint64_t *)address;
}

static bool walk_covers(const struct walk *w, uint64_t address, uint64_t bytes)
{
	return !(address & 7) && address >= w->sp && address < w->stack_end && bytes <= w->stack_end - address;
}

static bool walk_read(const struct walk *w, uint64_t address, uint64_t *value)
{
	if (!walk_covers(w, address, sizeof(*value)))
		return false;
	*value = stack_word(address);
	return true;
}

static bool range_of_stack(struct walk *w, struct thread_slot *slot, uint64_t *end)
{
	const struct unwind_range *range;

	if (slot && slot->stack_generation == w->view.generation && w->sp >= slot->stack_start &&
	    w->sp < slot->stack_end) {
		*end = slot->stack_end;
		return true;
	}
	range = unwind_range_find(&w->view, w->sp, UNWIND_RANGE_STACK);
	if (!range)
		return false;
	*end = range->end;
	if (slot) {
		slot->stack_generation = w->view.generation;
		slot->stack_start = range->start;
		slot->stack_end = range->end;
	}
	return true;
}

static bool ends_at(const struct walk *w, uint64_t end)
{
	return w->sp < end && end - w->sp <= STACK_MAX_BYTES;
}

static void walk_find_stack(struct walk *w, struct thread_slot *slot)
{
	uint64_t end = 0;

	w->stack_known = true;
	if (range_of_stack(w, slot, &end)) {
		if (ends_at(w, w->thread_pointer) && w->thread_pointer < end)
			end = w->thread_pointer;
		w->stack_end = end;
	} else if (ends_at(w, w->thread_pointer)) {
		w->stack_end = w->thread_pointer;
	} else if (ends_at(w, payload.main_stack_end)) {
		w->stack_end = payload.main_stack_end;
	} else {
		w->stack_known = false;
		w->stack_end = w->sp + UNKNOWN_BYTES;
	}
}

static enum step step_to(struct walk *w, uint64_t cfa, uint64_t pc)
{
	w->sp = cfa;
	w->pc = pc;
	return pc ? STEP_ON : STEP_END;
}

static void restore_fp(struct walk *w, uint32_t field, uint64_t cfa)
{
	if (field == UNWIND_RBP_SAME)
		return;
	if (field == UNWIND_RBP_AT_RBP)
		w->fp_known = w->fp_known && walk_read(w, w->fp, &w->fp);
	else
		w->fp_known = field != UNWIND_RBP_LOST && walk_read(w, cfa - 8ull * field, &w->fp);
}

static enum step step_by_rule(struct walk *w, uint32_t rule)
{
	uint64_t n = (uint64_t)UNWIND_N_BYTES(rule), cfa, pc;

	switch (UNWIND_KIND(rule)) {
	case UNWIND_RSP:
		cfa = w->sp + n;
		break;
	case UNWIND_AT_RSP:
	case UNWIND_AT_RSP_8:
		if (!walk_read(w, w->sp + n, &cfa))
			return STEP_LOST;
		cfa += UNWIND_KIND(rule) == UNWIND_AT_RSP_8 ? 8 : 0;
		break;
	case UNWIND_RBP:
		if (!w->fp_known)
			return STEP_LOST;
		cfa = w->fp + n;
		break;
	case UNWIND_AT_RBP:
		if (!w->fp_known || !walk_read(w, w->fp + n, &cfa))
			return STEP_LOST;
		break;
	default:
		return STEP_LOST;
	}
	if (cfa <= w->sp || !walk_read(w, cfa - 8, &pc))
		return STEP_LOST;
	restore_fp(w, UNWIND_RBP_FIELD(rule), cfa);
	return step_to(w, cfa, pc);
}

/* No rule: the saved frame pointer and return address where -fno-omit-frame-pointer puts them, if they look right. */
static enum step step_by_fp(struct walk *w)
{
	uint64_t fp = w->fp, caller_fp, pc;

	if (!w->stack_known || !w->fp_known || !walk_covers(w, fp, 16) || !walk_read(w, fp, &caller_fp) ||
	    !walk_read(w, fp + 8, &pc))
		return STEP_LOST;
	if (pc && !unwind_range_find(&w->view, pc - 1, UNWIND_RANGE_EXEC))
		return STEP_LOST;
	w->fp = caller_fp;
	w->fallback++;
	return step_to(w, fp + 16, pc);
}

static enum step step_over_signal(struct walk *w, struct thread_slot *slot)
{
	uint64_t context = w->sp, pc, sp;

	if (++w->signal_frames > SIGNAL_FRAMES_MAX || !walk_covers(w, context, ARCH_UCONTEXT_BYTES))
		return STEP_LOST;
	pc = stack_word(context + ARCH_UCONTEXT_PC);
	sp = stack_word(context + ARCH_UCONTEXT_SP);
	w->fp = stack_word(context + ARCH_UCONTEXT_FP);
	w->fp_known = true;
	if (!pc || (sp & 7))
		return STEP_LOST;
	w->sp = sp;
	if (sp <= context || sp >= w->stack_end)
		walk_find_stack(w, slot);
	w->pc = pc + 1;
	return STEP_ON;
}

static enum step walk_step(struct walk *w, uint32_t rule, struct thread_slot *slot)
{
	switch (UNWIND_KIND(rule)) {
	case UNWIND_END:
		return STEP_END;
	case UNWIND_SIGNAL:
		return step_over_signal(w, slot);
	case UNWIND_UNSUPPORTED:
		return STEP_LOST;
	case UNWIND_NONE:
		return step_by_fp(w);
	default:
		return step_by_rule(w, rule);
	}
}

/* The rule for the frame. A signal trampoline begins at the return address: looked for one byte before it, it may not be found. */
static struct unwind_rule frame_rule(const struct walk *w)
{
	struct unwind_rule found = unwind_rule_find(&w->view, w->pc - 1), at;

	if (UNLIKELY(UNWIND_KIND(found.rule) == UNWIND_NONE && found.module)) {
		at = unwind_rule_find(&w->view, w->pc);
		if (UNWIND_KIND(at.rule) == UNWIND_SIGNAL)
			return at;
	}
	return found;
}

void unwind_walk(const struct unwind_start *start, struct thread_slot *slot, uint64_t *frames,
		 struct unwind_result *result)
{
	struct walk w = {
		.sp = start->sp,
		.fp = start->fp,
		.fp_known = true,
		.thread_pointer = start->thread_pointer,
	};
	enum step step = STEP_LOST;
	uint32_t count = 0;

	unwind_view_open(&w.view);
	walk_find_stack(&w, slot);
	if (walk_read(&w, w.sp, &w.pc))
		step = step_to(&w, w.sp + 8, w.pc);
	while (step == STEP_ON && count < DUMP_FRAMES_MAX) {
		struct unwind_rule found = frame_rule(&w);

		frames[count++] = DUMP_FRAME_ADDRESS(w.pc) | (uint64_t)found.module << 48;
		step = walk_step(&w, found.rule, slot);
	}
	result->count = count;
	result->fallback = w.fallback;
	result->flags = step == STEP_LOST ? DUMP_STACK_TRUNCATED : step == STEP_ON ? DUMP_STACK_DEEP : 0;
}
