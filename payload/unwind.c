/* SPDX-License-Identifier: MIT */
/*
 * The walk of a stack.
 *
 * Nothing of the target's memory is trusted: a rule may be wrong for hand-written code, and a register may hold anything. So
 * every word is read inside [sp of the frame, end of the stack), the CFA grows with each frame, and a frame that does not fit ends
 * the walk: the stack is marked truncated, nothing is made up. Nor is the recent stack of the thread trusted (recent_stack.h).
 *
 * The common rules are followed in trail_quick() with everything in registers. What each frame waits for is: return address -> cache
 * entry -> its CFA -> the next return address, two loads and a few additions; all else is beside that.
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
#include "recent_stack.h"
#include "thread_slot.h"
#include "walked.h"

#define STACK_MAX_BYTES (64ull << 20)
#define UNKNOWN_BYTES (256ull << 10)
#define SIGNAL_FRAMES_MAX 8

/* A frame that the walk has arrived at. */
struct place {
	uint64_t pc;   /* the return address, or the interrupted instruction + 1 */
	uint64_t sp;
	uint64_t fp;   /* the frame pointer register, FP_UNKNOWN: lost */
	uint64_t room; /* words from sp to the end of the stack */
};

#define FP_UNKNOWN 1u /* like every odd value it leads nowhere */

struct walk {
	struct unwind_view view;
	struct place at;
	uint64_t salt;
	uint64_t stack_end;
	uint64_t thread_pointer;
	bool stack_known;
	uint32_t signal_frames;
	uint32_t fallback;
};

enum step { STEP_ON, STEP_END, STEP_LOST, STEP_SLOW, STEP_JOIN };

/* Reads the target's stack: words that no C object of ours covers. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static uint64_t stack_word(uint64_t address)
{
	return *(const volatile uint64_t *)address;
}

static bool walk_covers(const struct walk *w, uint64_t address, uint64_t bytes)
{
	return !(address & 7) && address >= w->at.sp && address < w->stack_end && bytes <= w->stack_end - address;
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

	if (slot && slot->stack_generation == w->view.generation && w->at.sp >= slot->stack_start &&
	    w->at.sp < slot->stack_end) {
		*end = slot->stack_end;
		return true;
	}
	range = unwind_range_find(&w->view, w->at.sp, UNWIND_RANGE_STACK);
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
	return w->at.sp < end && end - w->at.sp <= STACK_MAX_BYTES;
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
		w->stack_end = w->at.sp + UNKNOWN_BYTES;
	}
	w->at.room = (w->stack_end - w->at.sp) / 8;
}

/* The frame whose CFA, checked already, lies so many words above sp. */
static inline enum step step_to(struct place *at, uint64_t words, uint64_t fp)
{
	at->sp += words * 8;
	at->room -= words;
	at->fp = fp;
	at->pc = stack_word(at->sp - 8);
	return at->pc ? STEP_ON : STEP_END;
}

/* One comparison for both: the CFA grows, and the return address is within the stack. */
static inline bool words_fit(const struct place *at, uint64_t words)
{
	return words - 1 < at->room;
}

/* Any rule. *fp_below says where fp was read, as in struct recent_frame. */
static enum step step_by_rule(struct walk *w, uint64_t found, uint32_t *fp_below)
{
	uint64_t n = UNWIND_FOUND_WORDS(found) * 8, sp = w->at.sp, fp = w->at.fp, cfa, words;
	uint32_t field = UNWIND_FOUND_FIELD(found);

	*fp_below = 0;
	switch (UNWIND_FOUND_KIND(found)) {
	case UNWIND_RSP:
		cfa = sp + n;
		break;
	case UNWIND_AT_RSP:
	case UNWIND_AT_RSP_8:
		if (!walk_read(w, sp + n, &cfa))
			return STEP_LOST;
		cfa += UNWIND_FOUND_KIND(found) == UNWIND_AT_RSP_8 ? 8 : 0;
		*fp_below = RECENT_UNCHECKED;
		break;
	case UNWIND_RBP:
		cfa = fp + n;
		break;
	case UNWIND_AT_RBP:
		if (!walk_read(w, fp + n, &cfa))
			return STEP_LOST;
		*fp_below = RECENT_UNCHECKED;
		break;
	default:
		return STEP_LOST;
	}
	words = (cfa - sp) / 8;
	if ((cfa & 7) || !words_fit(&w->at, words))
		return STEP_LOST;
	if (field == UNWIND_RBP_AT_RBP) {
		*fp_below = RECENT_UNCHECKED;
		if (!walk_read(w, fp, &fp))
			fp = FP_UNKNOWN;
	} else if (field > words) { /* UNWIND_RBP_LOST perhaps */
		fp = FP_UNKNOWN;
	} else if (field != UNWIND_RBP_SAME) {
		fp = stack_word(cfa - 8ull * field);
		if (*fp_below == 0)
			*fp_below = 8 * field;
	}
	return step_to(&w->at, words, fp);
}

/*
 * No rule: the saved frame pointer and return address where -fno-omit-frame-pointer puts them, if they look right. Code of a module
 * without a frame pointer is the outermost: the psABI has a zero %rbp mark the deepest frame (3.4.1), and Debian's
 * musl starts programs and threads so, without any unwind information.
 */
static enum step step_by_fp(struct walk *w, uint64_t found, uint32_t *fp_below)
{
	uint64_t fp = w->at.fp, pc;

	if (fp == 0 && w->stack_known && (found & UNWIND_FOUND_MODULE_BITS))
		return STEP_END;
	if (!w->stack_known || !walk_covers(w, fp, 16))
		return STEP_LOST;
	pc = stack_word(fp + 8);
	if (pc && !unwind_range_find(&w->view, pc - 1, UNWIND_RANGE_EXEC))
		return STEP_LOST;
	w->fallback++;
	*fp_below = 16;
	return step_to(&w->at, (fp + 16 - w->at.sp) / 8, stack_word(fp));
}

static enum step step_over_signal(struct walk *w, struct thread_slot *slot)
{
	uint64_t context = w->at.sp, pc, sp;

	if (++w->signal_frames > SIGNAL_FRAMES_MAX || !walk_covers(w, context, ARCH_UCONTEXT_BYTES))
		return STEP_LOST;
	pc = stack_word(context + ARCH_UCONTEXT_PC);
	sp = stack_word(context + ARCH_UCONTEXT_SP);
	w->at.fp = stack_word(context + ARCH_UCONTEXT_FP);
	if (!pc || (sp & 7))
		return STEP_LOST;
	w->at.sp = sp;
	if (sp <= context || sp >= w->stack_end)
		walk_find_stack(w, slot);
	w->at.room = (w->stack_end - sp) / 8;
	w->at.pc = pc + 1;
	return STEP_ON;
}

static __attribute__((noinline)) enum step step_slow(struct walk *w, uint64_t found, struct thread_slot *slot,
						     uint32_t *fp_below)
{
	switch (UNWIND_FOUND_KIND(found)) {
	case UNWIND_END:
		return STEP_END;
	case UNWIND_SIGNAL:
		return step_over_signal(w, slot);
	case UNWIND_UNSUPPORTED:
		return STEP_LOST;
	case UNWIND_NONE:
		return step_by_fp(w, found, fp_below);
	default:
		return step_by_rule(w, found, fp_below);
	}
}

/*
 * The innermost frame of the recent stack from which on the present stack still holds all words that the outer frames were made of: a
 * walk that arrives at that frame, or at one further out, would go on as the recent one did. Looked for from the outermost frame
 * inwards, since stacks that follow each other differ in their inner frames: one branch is mispredicted, where it ends.
 */
static const struct recent_frame *recent_unchanged(const struct recent_stack *recent, const struct walk *w)
{
	const struct recent_frame *f = &recent->frames[DUMP_FRAMES_MAX - 1], *first = &recent->frames[recent->first];
	uint64_t start = w->at.sp, bytes = w->stack_end - start - 8; /* words may stand at start … start + bytes */

	if (w->stack_end - start < 8)
		return f;
	for (; f > first; f--) {
		uint64_t sp = f->sp, below = f->fp_below;

		if (sp - 8 - start > bytes || (stack_word(sp - 8) ^ f->frame) << 16)
			break;
		if (below && (sp - below - start > bytes || stack_word(sp - below) != f->fp))
			break;
	}
	return f;
}

/* Frames that were taken over but are not the outermost any more: as if they had been walked. */
static void recent_copy(struct recent_stack *recent, uint32_t i, uint32_t count, uint32_t to, uint32_t fp_below)
{
	for (uint32_t k = 0; k < count; k++) {
		recent->fresh[to + k] = recent->frames[i + k];
		recent->fresh[to + k].fallback -= i + k + 1 < DUMP_FRAMES_MAX ? recent->frames[i + k + 1].fallback : 0;
	}
	recent->fresh[to].fp_below = fp_below;
}

static const struct recent_frame recent_none = { .sp = UINT64_MAX };

static const struct recent_frame *recent_open(struct recent_stack *recent, const struct walk *w)
{
	if (!recent || !recent->used)
		return &recent_none;
	recent->frames[DUMP_FRAMES_MAX].sp = UINT64_MAX;
	if (recent->generation != w->view.generation || recent->stack_end != w->stack_end || !w->stack_known ||
	    recent->first >= DUMP_FRAMES_MAX)
		return &recent_none;
	return recent_unchanged(recent, w);
}

static void recent_close(struct recent_stack *recent, const struct walk *w, uint32_t count, uint32_t from, uint32_t flags)
{
	recent_stack_forget(recent);
	if (w->signal_frames || !w->stack_known || (flags & DUMP_STACK_DEEP))
		return;
	recent->generation = w->view.generation;
	recent->stack_end = w->stack_end;
	recent_stack_keep(recent, count, from);
}

/* What a walk has collected. */
struct trail {
	uint64_t *frames;
	struct recent_stack *recent;      /* or NULL */
	const struct recent_frame *near;  /* innermost of its frames that may be met */
	uint32_t count;
	uint32_t from;     /* first frame of the recent stack that was taken over, DUMP_FRAMES_MAX: none */
	uint32_t fp_below; /* where the frame pointer of the present frame was read */
};

/* The walk has come to a frame of the recent stack: takes it over with all outer ones, and tries a step from the last of them. */
static __attribute__((noinline)) enum step trail_join(struct trail *t, struct walk *w, struct thread_slot *slot)
{
	uint32_t i = (uint32_t)(t->near - t->recent->frames), held = DUMP_FRAMES_MAX - i;
	const struct recent_frame *last = &t->recent->frames[DUMP_FRAMES_MAX - 1];
	uint32_t arrived = t->fp_below, fallback = w->fallback;
	enum step step;

	w->at = (struct place){
		.pc = DUMP_FRAME_ADDRESS(last->frame), .sp = last->sp, .fp = last->fp, .room = (w->stack_end - last->sp) / 8,
	};
	step = step_slow(w, unwind_frame_find(&w->view, w->salt, w->at.pc), slot, &t->fp_below);
	if (step != STEP_ON) {
		t->recent->frames[i].fp_below = arrived;
		t->from = i;
		w->fallback = fallback + t->recent->frames[i].fallback;
		return step;
	}
	/* The stack goes on where it ended before. */
	t->near = last + 1;
	for (uint32_t k = 0; k < held; k++)
		t->frames[t->count + k] = t->recent->frames[i + k].frame;
	recent_copy(t->recent, i, held, t->count, arrived);
	t->recent->fresh[t->count + held - 1].fallback = w->fallback - fallback;
	w->fallback += t->recent->frames[i].fallback - last->fallback;
	t->count += held;
	return step;
}

/* One frame of any kind. */
static __attribute__((noinline)) enum step trail_slow(struct trail *t, struct walk *w, struct thread_slot *slot)
{
	uint64_t found = unwind_frame_find(&w->view, w->salt, w->at.pc);
	uint64_t frame = DUMP_FRAME_ADDRESS(w->at.pc) | (found & UNWIND_FOUND_MODULE_BITS);
	struct recent_frame fresh = { .sp = w->at.sp, .frame = frame, .fp = w->at.fp, .fp_below = t->fp_below };
	uint32_t fallback = w->fallback;
	enum step step = step_slow(w, found, slot, &t->fp_below);

	fresh.fallback = w->fallback - fallback;
	if (t->recent)
		t->recent->fresh[t->count] = fresh;
	t->frames[t->count++] = frame;
	return step;
}

/*
 * Frames with cached rules CFA = rsp + n or rbp + n, until another one (STEP_SLOW), one of the recent stack (STEP_JOIN), the end,
 * or the limit (STEP_ON). No call leaves the loop, so that all stands in registers.
 */
static inline __attribute__((always_inline)) enum step trail_quick(struct trail *t, struct walk *w, bool recording)
{
	uint64_t sp = w->at.sp, fp = w->at.fp, pc = w->at.pc, salt = w->salt, below = t->fp_below;
	uint64_t *out = t->frames + t->count, *end = t->frames + DUMP_FRAMES_MAX;
	struct recent_frame *fresh = recording ? &t->recent->fresh[t->count] : 0;
	const struct recent_frame *near = t->near;
	enum step step = STEP_ON;

	while (out < end) {
		const struct unwind_cache_entry *entry = &unwind_cache[unwind_cache_index(pc)];
		uint64_t found = __atomic_load_n(&entry->found, __ATOMIC_RELAXED), next;
		uint32_t shape = UNWIND_FOUND_SHAPE(found), field = UNWIND_FOUND_FIELD(found);

		if (recording) {
			while (near->sp < sp)
				near++;
			if (near->sp == sp && near->fp == fp && DUMP_FRAME_ADDRESS(near->frame) == pc &&
			    out - t->frames <= near - t->recent->frames) {
				step = STEP_JOIN;
				break;
			}
		}
		step = STEP_SLOW;
		if ((__atomic_load_n(&entry->mixed, __ATOMIC_RELAXED) ^ found) != (pc ^ salt) * HASH_MULTIPLIER)
			break;
		next = UNWIND_FOUND_WORDS(found) * 8;
		if (shape == UNWIND_SHAPE(UNWIND_RSP, UNWIND_RBP_SAME)) {
			next += sp;
		} else {
			uint32_t kind = UNWIND_FOUND_KIND(found);

			if ((kind != UNWIND_RSP && kind != UNWIND_RBP) || field > UNWIND_RBP_MAX)
				break;
			next += kind == UNWIND_RSP ? sp : fp;
			if (next & 7)
				break;
		}
		if (next <= sp || next > w->stack_end)
			break; /* the end of this walk, but not here */
		*out++ = DUMP_FRAME_ADDRESS(pc) | (found & UNWIND_FOUND_MODULE_BITS);
		if (recording)
			*fresh++ = (struct recent_frame){ .sp = sp, .frame = out[-1], .fp = fp, .fp_below = (uint32_t)below };
		below = 8 * field;
		if (field) {
			fp = FP_UNKNOWN;
			if (below <= next - sp)
				fp = stack_word(next - below);
			else
				below = 0;
		}
		sp = next;
		pc = stack_word(next - 8);
		step = STEP_END;
		if (!pc)
			break;
		step = STEP_ON;
	}
	t->count = (uint32_t)(out - t->frames);
	t->near = near;
	t->fp_below = (uint32_t)below;
	w->at = (struct place){ .pc = pc, .sp = sp, .fp = fp, .room = (w->stack_end - sp) / 8 };
	return step;
}

static enum step trail_walk(struct trail *t, struct walk *w, struct thread_slot *slot)
{
	enum step step = STEP_ON;

	while (step == STEP_ON && t->count < DUMP_FRAMES_MAX) {
		step = t->recent ? trail_quick(t, w, true) : trail_quick(t, w, false);
		if (step == STEP_JOIN)
			step = trail_join(t, w, slot);
		else if (step == STEP_SLOW)
			step = trail_slow(t, w, slot);
	}
	return step;
}

static uint64_t trail_hash(const struct trail *t)
{
	uint64_t hash = t->from < DUMP_FRAMES_MAX ? t->recent->frames[t->from].hash : 0;

	return stack_hash_frames(hash, t->frames, t->count);
}

void unwind_walk(const struct unwind_start *start, struct thread_slot *slot, struct recent_stack *recent, uint64_t *frames,
		 struct unwind_result *result)
{
	struct walk w; /* each member is set: a clearing of all of it costs as much as four frames */
	struct trail t = { .frames = frames, .recent = recent, .from = DUMP_FRAMES_MAX };
	enum step step = STEP_LOST;

	w.at.sp = start->sp;
	w.at.fp = start->fp;
	w.at.pc = 0;
	w.thread_pointer = start->thread_pointer;
	w.signal_frames = w.fallback = 0;
	unwind_view_open(&w.view);
	w.salt = unwind_salt(&w.view);
	walk_find_stack(&w, slot);
	if (!(start->sp & 7) && words_fit(&w.at, 1))
		step = step_to(&w.at, 1, w.at.fp);
	t.near = recent_open(recent, &w);
	if (step == STEP_ON)
		step = trail_walk(&t, &w, slot);
	result->recent = DUMP_FRAMES_MAX - t.from;
	result->count = t.count + result->recent;
	result->fallback = w.fallback;
	result->flags = step == STEP_LOST ? DUMP_STACK_TRUNCATED : step == STEP_ON ? DUMP_STACK_DEEP : 0;
	result->hash = stack_hash_end(trail_hash(&t), result->count, result->flags);
	if (!recent)
		walked_keep(t.frames, t.count, w.at.sp - start->sp);
	else
		recent_close(recent, &w, t.count, t.from, result->flags);
}

void unwind_frames_complete(const struct recent_stack *recent, const struct unwind_result *result, uint64_t *frames)
{
	uint32_t from = DUMP_FRAMES_MAX - result->recent;

	for (uint32_t i = 0; i < result->recent; i++)
		frames[result->count - result->recent + i] = recent->frames[from + i].frame;
}
