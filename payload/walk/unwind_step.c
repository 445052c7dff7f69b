/* SPDX-License-Identifier: MIT */
/* One step of a walk, see unwind_step.h. */
#include "walk/unwind_step.h"

#include "arch/machine.h"
#include "walk/java_walk.h"
#include "walk/recent_stack.h"

#define FRAME_BYTES_MAX (256ull << 10) /* on a stack that is not known */
#define SIGNAL_FRAMES_MAX 8            /* nothing else keeps a forged chain of signal frames from going round */

/* May so many bytes at address be read, without any rule? */
static bool walk_covers(const struct walk *w, uint64_t address, uint64_t bytes)
{
	return !(address & 7) && address >= w->at.sp && address < w->stack_end && bytes <= w->stack_end - address;
}

/* May the words of the present frame before `end` be read, which its rule names? Moves stack_end there if so. */
static bool walk_reach(struct walk *w, uint64_t end)
{
	const struct unwind_range *range;
	uint64_t sp = w->at.sp;

	if (end - sp <= w->stack_end - sp)
		return true;
	if (w->stack_known || w->fallback || w->java || (end & 7) || end - sp > FRAME_BYTES_MAX)
		return false;
	range = unwind_view_range(walk_view(w), sp - 8, UNWIND_RANGE_STACK);
	if (range && end > range->end)
		return false;
	walk_set_end(w, end - 8);
	w->stack_left = true;
	return true;
}

/* A word that the rule of the present frame names. */
static bool walk_read(struct walk *w, uint64_t address, uint64_t *value)
{
	if ((address & 7) || address < w->at.sp || !walk_reach(w, address + 8))
		return false;
	*value = step_word(address);
	return true;
}

#if ARCH_LINK_REGISTER
/* Code that a signal has interrupted before it saved its return address, or that calls nobody. */
static enum step step_by_link(struct walk *w, uint64_t words)
{
	if (!w->link || w->link_sp != w->at.sp)
		return STEP_LOST;
	w->at.sp += words * 8;
	w->at.room -= words;
	w->at.pc = arch_code_address(w->link);
	w->link = 0;
	return STEP_ON;
}

/* By a rule that says where the return address is saved. */
static enum step step_by_saved(struct walk *w, uint64_t found, uint32_t *fp_below)
{
	const uint32_t kind = UNWIND_FOUND_KIND(found), field = UNWIND_FOUND_FIELD(found);
	const bool by_sp = kind == UNWIND_PAIR_SP || kind == UNWIND_LINK_SP;
	const bool pair = kind == UNWIND_PAIR_SP || kind == UNWIND_PAIR_FP;
	const uint64_t cfa = (by_sp ? w->at.sp : w->at.fp) + UNWIND_FOUND_WORDS(found) * 8;
	const uint64_t words = (cfa - w->at.sp) / 8, low = (by_sp ? w->at.sp : w->at.fp) - w->at.sp;

	*fp_below = RECENT_UNCHECKED;
	if ((cfa & 7) || !walk_reach(w, cfa))
		return STEP_LOST;
	if (!pair && !field)
		return step_by_link(w, words);
	if (pair && field == UNWIND_FP_AT_FP)
		return low % 8 || low / 8 + 2 > words
		               ? STEP_LOST
		               : step_to_below(&w->at, words, step_word(w->at.sp + low), words * 8 - low - 8);
	if (field < (pair ? 2 : 1) || field > words || !words)
		return STEP_LOST;
	return pair ? step_to_below(&w->at, words, step_word(cfa - 8ull * field), 8ull * field - 8)
	            : step_to_below(&w->at, words, w->at.fp, 8ull * field);
}
#endif

/* By any rule that gives a CFA. */
static enum step step_by_rule(struct walk *w, uint64_t found, uint32_t *fp_below)
{
	uint64_t n = UNWIND_FOUND_WORDS(found) * 8, sp = w->at.sp, fp = w->at.fp, cfa, words;
	uint32_t field = UNWIND_FOUND_FIELD(found);

	*fp_below = 0;
	switch (UNWIND_FOUND_KIND(found)) {
	case UNWIND_SP: cfa = sp + n; break;
	case UNWIND_AT_SP:
	case UNWIND_AT_SP_8:
		if (!walk_read(w, sp + n, &cfa))
			return STEP_LOST;
		cfa += UNWIND_FOUND_KIND(found) == UNWIND_AT_SP_8 ? 8 : 0;
		*fp_below = RECENT_UNCHECKED;
		break;
	case UNWIND_FP: cfa = fp + n; break;
	case UNWIND_AT_FP:
		if (!walk_read(w, fp + n, &cfa))
			return STEP_LOST;
		*fp_below = RECENT_UNCHECKED;
		break;
	default: return STEP_LOST;
	}
	words = (cfa - sp) / 8;
	if ((cfa & 7) || !words || !walk_reach(w, cfa))
		return STEP_LOST;
	if (field == UNWIND_FP_AT_FP) {
		*fp_below = RECENT_UNCHECKED;
		if (!walk_read(w, fp, &fp))
			fp = FP_UNKNOWN;
	} else if (field > words) { /* UNWIND_FP_LOST perhaps */
		fp = FP_UNKNOWN;
	} else if (field != UNWIND_FP_SAME) {
		fp = step_word(cfa - 8ull * field);
		if (*fp_below == 0)
			*fp_below = 8 * field;
	}
	return step_to(&w->at, words, fp);
}

/*
 * No rule: the saved frame pointer and return address where -fno-omit-frame-pointer puts them, if they look right. Code
 * of a module without a frame pointer is the outermost: the psABI has a zero frame pointer mark the deepest frame
 * (3.4.1), and Debian's musl starts programs and threads so, without any unwind information.
 */
static enum step step_by_fp(struct walk *w, uint64_t found, uint32_t *fp_below)
{
	uint64_t fp = w->at.fp, pc;

	if (fp == 0 && (found & UNWIND_FOUND_MODULE_BITS))
		return STEP_END;
	if (!walk_covers(w, fp, 16))
		return STEP_LOST;
	pc = arch_code_address(step_word(fp + 8));
	if (pc && !unwind_view_range(walk_view(w), pc - 1, UNWIND_RANGE_EXEC))
		return STEP_LOST;
	w->fallback++;
	*fp_below = 16;
	return step_to(&w->at, (fp + 16 - w->at.sp) / 8, step_word(fp));
}

/* Java code: HotSpot's own description of it tells. */
static __attribute__((noinline)) enum step step_by_java(struct walk *w)
{
	struct java_step step;

	w->java_frame = w->at.pc;
	if (w->signal_frames || !java_walk_step(w->at.pc, w->at.sp, w->stack_end, w->at.fp, &step))
		return STEP_LOST;
	w->java = true;
	w->java_frame = step.frame;
	w->at.sp = step.sp;
	w->at.room = (w->stack_end - step.sp) / 8;
	w->at.fp = step_word(step.link);
	w->at.pc = arch_code_address(step_word(step.link + 8));
	return w->at.pc ? STEP_ON : STEP_END;
}

/* To the interrupted code, perhaps on another stack. */
static enum step step_over_signal(struct walk *w)
{
	uint64_t context = w->at.sp, pc, sp;

	if (++w->signal_frames > SIGNAL_FRAMES_MAX || !walk_reach(w, context + ARCH_UCONTEXT_BYTES))
		return STEP_LOST;
	pc = step_word(context + ARCH_UCONTEXT_PC);
	sp = step_word(context + ARCH_UCONTEXT_SP);
	w->at.fp = step_word(context + ARCH_UCONTEXT_FP);
#if ARCH_LINK_REGISTER
	w->link = step_word(context + ARCH_UCONTEXT_LINK);
	w->link_sp = sp;
#endif
	if (!pc || (sp & 7))
		return STEP_LOST;
	if (sp <= context || sp >= w->stack_end) {
		w->stack_end = sp;
		w->stack_known = false;
	}
	w->at.sp = sp;
	w->at.room = (w->stack_end - sp) / 8;
	w->at.pc = pc + 1;
	return STEP_ON;
}

enum step unwind_step(struct walk *w, uint64_t found, uint32_t *fp_below)
{
	switch (UNWIND_FOUND_KIND(found)) {
	case UNWIND_END: w->ends_by_rule = true; return STEP_END;
	case UNWIND_SIGNAL: return step_over_signal(w);
	case UNWIND_UNSUPPORTED: return STEP_LOST;
#if ARCH_LINK_REGISTER
	case UNWIND_PAIR_SP:
	case UNWIND_PAIR_FP:
	case UNWIND_LINK_SP:
	case UNWIND_LINK_FP: return step_by_saved(w, found, fp_below);
#endif
	case UNWIND_NONE:
		return UNLIKELY(java_walk_holds(w->at.pc - 1)) ? step_by_java(w) : step_by_fp(w, found, fp_below);
	default: return step_by_rule(w, found, fp_below);
	}
}
