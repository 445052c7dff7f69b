/* SPDX-License-Identifier: MIT */
/*
 * The walk of a stack.
 *
 * The one thing that a walk must not do is to read memory that is not there. It can ask nobody, since a hook makes no
 * system call; what was mapped when memattach looked may be gone; and honest programs run on stacks of their own, next
 * to anything, with anything in %rbp. So a word is read only for one of three reasons:
 *
 * - It is on a known stack (known_stack.h): the main stack, or the one that the C library made for this thread. Those
 * are mapped from a stack pointer in use up to their end, whatever rules and registers say.
 * - It is in the page of a word that is there: the return address of the innermost frame, which the call has just
 * pushed, or any that was read before.
 * - A rule from the tables names it, and so does each frame inside of it. Then it is a word that the program itself
 * will read when it returns from that frame: the return address, or a saved register. That holds on any stack, and
 * where frames lead from one to another.
 *
 * So on another stack than the known ones, `stack_end` is the end of a page, and a rule that leads further moves it:
 * walk_reach(). Nothing else does. A step by frame pointer is a guess, in code without rules: it must lead to words
 * that are certain, and once one was made on such a stack no rule counts as a reason any more. A signal frame leads to
 * a stack pointer that need not point to memory at all (the program may be handling the overflow of a stack): nothing
 * is certain there until a rule has led from it.
 *
 * A rule may be wrong. On a known stack that leads to a wrong frame, and no further than the end. On another one it
 * could lead beyond: inline assembler that switches to another stack has that always, since the compiler goes on
 * counting from %rsp. memattach knows such code by its instructions, and compiles it to UNWIND_UNSUPPORTED. Besides, no
 * rule leads out of the range of the index that the stack was in.
 *
 * What a walk finds is never made up: the CFA grows with each frame, and a frame that does not fit ends the walk,
 * marked truncated. Nor is the recent stack of the thread trusted (recent_stack.h); there is one for known stacks only,
 * since its words are compared before any rule leads to them.
 *
 * The common rules are followed in trail_quick() with everything in registers. What each frame waits for is: return
 * address -> cache entry -> its CFA -> the next return address, two loads and a few additions; all else is beside that.
 *
 * A signal frame leads to the interrupted code, perhaps on another stack: a limited number of times, since nothing else
 * keeps a forged chain of signal frames from going round.
 */
#include "unwind.h"

#include "arch.h"
#include "known_stack.h"
#include "recent_stack.h"
#include "walked.h"

#define FRAME_BYTES_MAX (256ull << 10) /* on a stack that is not known */
#define SIGNAL_FRAMES_MAX 8

/* A frame that the walk has arrived at. */
struct place {
	uint64_t pc; /* the return address, or the interrupted instruction + 1 */
	uint64_t sp;
	uint64_t fp;   /* the frame pointer register, FP_UNKNOWN: lost */
	uint64_t room; /* words from sp to the end of the stack */
};

#define FP_UNKNOWN 1u /* like every odd value it leads nowhere */

struct walk {
	struct unwind_view view; /* of the index, once it has been opened: walk_view() */
	struct place at;
	uint64_t index; /* offset of the index that this walk keeps to, 0: none */
	uint64_t salt;
	uint64_t stack_end; /* what lies between sp and here may be read */
	uint64_t thread_pointer;
	uint32_t generation;
	uint32_t signal_frames;
	uint32_t fallback;
	bool view_open;
	bool stack_known;  /* stack_end is the end of a known stack: nothing leads further */
	bool stack_left;   /* stack_end is another one than at the beginning */
	bool ends_by_rule; /* the outermost frame has no caller, by its rule */
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

/* Most walks that have a recent stack need none. */
static const struct unwind_view *walk_view(struct walk *w)
{
	if (!w->view_open) {
		unwind_view_open(&w->view, w->index);
		w->view_open = true;
	}
	return &w->view;
}

static void walk_use_generation(struct walk *w, uint32_t generation)
{
	w->generation = generation;
	w->salt = unwind_salt(generation);
}

static uint64_t page_end(uint64_t address)
{
	return (address | (PAGE_BYTES - 1)) + 1;
}

/* The end of what is certain because the word before `end` is. */
static void walk_set_end(struct walk *w, uint64_t end)
{
	w->stack_end = known_stack_end(end - 8, w->thread_pointer);
	w->stack_known = w->stack_end != 0;
	if (!w->stack_known)
		w->stack_end = page_end(end - 8);
}

/* May the words of the present frame before `end` be read, which its rule names? */
static bool walk_reach(struct walk *w, uint64_t end)
{
	const struct unwind_range *range;
	uint64_t sp = w->at.sp;

	if (end - sp <= w->stack_end - sp)
		return true;
	if (w->stack_known || w->fallback || (end & 7) || end - sp > FRAME_BYTES_MAX)
		return false;
	range = unwind_range_find(walk_view(w), sp - 8, UNWIND_RANGE_STACK);
	if (range && end > range->end)
		return false;
	walk_set_end(w, end);
	w->stack_left = true;
	w->at.room = (w->stack_end - sp) / 8;
	return true;
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

/* A word that the rule of the present frame names. */
static bool walk_read(struct walk *w, uint64_t address, uint64_t *value)
{
	if ((address & 7) || address < w->at.sp || !walk_reach(w, address + 8))
		return false;
	*value = stack_word(address);
	return true;
}

/* Any rule. *fp_below says where fp was read, as in struct recent_frame. */
static enum step step_by_rule(struct walk *w, uint64_t found, uint32_t *fp_below)
{
	uint64_t n = UNWIND_FOUND_WORDS(found) * 8, sp = w->at.sp, fp = w->at.fp, cfa, words;
	uint32_t field = UNWIND_FOUND_FIELD(found);

	*fp_below = 0;
	switch (UNWIND_FOUND_KIND(found)) {
	case UNWIND_RSP: cfa = sp + n; break;
	case UNWIND_AT_RSP:
	case UNWIND_AT_RSP_8:
		if (!walk_read(w, sp + n, &cfa))
			return STEP_LOST;
		cfa += UNWIND_FOUND_KIND(found) == UNWIND_AT_RSP_8 ? 8 : 0;
		*fp_below = RECENT_UNCHECKED;
		break;
	case UNWIND_RBP: cfa = fp + n; break;
	case UNWIND_AT_RBP:
		if (!walk_read(w, fp + n, &cfa))
			return STEP_LOST;
		*fp_below = RECENT_UNCHECKED;
		break;
	default: return STEP_LOST;
	}
	words = (cfa - sp) / 8;
	if ((cfa & 7) || !words || !walk_reach(w, cfa))
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
 * No rule: the saved frame pointer and return address where -fno-omit-frame-pointer puts them, if they look right. Code
 * of a module without a frame pointer is the outermost: the psABI has a zero %rbp mark the deepest frame (3.4.1), and
 * Debian's musl starts programs and threads so, without any unwind information.
 */
static enum step step_by_fp(struct walk *w, uint64_t found, uint32_t *fp_below)
{
	uint64_t fp = w->at.fp, pc;

	if (fp == 0 && (found & UNWIND_FOUND_MODULE_BITS))
		return STEP_END;
	if (!walk_covers(w, fp, 16))
		return STEP_LOST;
	pc = stack_word(fp + 8);
	if (pc && !unwind_range_find(walk_view(w), pc - 1, UNWIND_RANGE_EXEC))
		return STEP_LOST;
	w->fallback++;
	*fp_below = 16;
	return step_to(&w->at, (fp + 16 - w->at.sp) / 8, stack_word(fp));
}

static enum step step_over_signal(struct walk *w)
{
	uint64_t context = w->at.sp, pc, sp;

	if (++w->signal_frames > SIGNAL_FRAMES_MAX || !walk_reach(w, context + ARCH_UCONTEXT_BYTES))
		return STEP_LOST;
	pc = stack_word(context + ARCH_UCONTEXT_PC);
	sp = stack_word(context + ARCH_UCONTEXT_SP);
	w->at.fp = stack_word(context + ARCH_UCONTEXT_FP);
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

static __attribute__((noinline)) enum step step_slow(struct walk *w, uint64_t found, uint32_t *fp_below)
{
	switch (UNWIND_FOUND_KIND(found)) {
	case UNWIND_END: w->ends_by_rule = true; return STEP_END;
	case UNWIND_SIGNAL: return step_over_signal(w);
	case UNWIND_UNSUPPORTED: return STEP_LOST;
	case UNWIND_NONE: return step_by_fp(w, found, fp_below);
	default: return step_by_rule(w, found, fp_below);
	}
}

/* The innermost frame that does not depend on a word of the list and those behind it. */
static const struct recent_frame *recent_before(const struct recent_stack *recent, const struct recent_word *word)
{
	return &recent->frames[word->frame <= recent->count ? word->frame : 0];
}

/* A difference is not 0. Unlike stack_word() not volatile, which would keep the address out of the instruction that
 * reads. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static inline uint64_t word_differs(
	uint64_t end, int64_t at, const struct recent_word *word)
{
	return *(const uint64_t *)(end + 8 * (uint64_t)at) ^ word->value;
}

static inline bool word_fits(int64_t at, uint32_t least)
{
	return (uint32_t)at >= least;
}

/* How many words there are before the first that is not on the stack, or not as it was. */
static __attribute__((noinline)) uint32_t words_unchanged(const struct recent_word *word, uint64_t end, uint32_t least)
{
	uint32_t i = 0;

	while (i < RECENT_WORD_GROUP && word_fits(word[i].at, least) && !word_differs(end, word[i].at, &word[i]))
		i++;
	return i;
}

/*
 * The innermost frame of the recent stack such that the present stack still holds all words that the frames around it
 * were made of: a walk that arrives at that frame, or at one further out, would go on as the recent one did. Looked for
 * from the outermost frame inwards, since stacks that follow each other differ in their inner frames: one branch is
 * mispredicted, where it ends. Offsets of words are negative, so if the bits that four of them share are not below the
 * least one, none of them is; else each is asked.
 */
static inline const struct recent_frame *recent_unchanged(const struct recent_stack *recent, uint64_t sp, uint64_t end)
{
	const struct recent_word *word = recent->words, *last = word + recent->word_count;
	uint64_t room = (end - sp) / 8;
	uint32_t least = room < INT32_MAX ? 0u - (uint32_t)room : 0u - INT32_MAX;

	if (!room)
		return &recent->frames[0];
	for (; word + RECENT_WORD_GROUP <= last; word += RECENT_WORD_GROUP) {
		int64_t a = word[0].at, b = word[1].at, c = word[2].at, d = word[3].at;
		uint64_t at_a, at_b, at_c, at_d;

		if (!word_fits(a & b & c & d, least) &&
		    !(word_fits(a, least) && word_fits(b, least) && word_fits(c, least) && word_fits(d, least)))
			return recent_before(recent, word + words_unchanged(word, end, least));
		at_a = word_differs(end, a, &word[0]);
		at_b = word_differs(end, b, &word[1]);
		at_c = word_differs(end, c, &word[2]);
		at_d = word_differs(end, d, &word[3]);
		if (at_a | at_b | at_c | at_d)
			return recent_before(recent, word + (at_a ? 0 : at_b ? 1 : at_c ? 2 : 3));
	}
	return recent_before(recent, word);
}

static const struct recent_frame recent_none = { .sp = UINT64_MAX };

static bool recent_usable(const struct recent_stack *recent)
{
	return recent->count - 1 < DUMP_FRAMES_MAX && recent->word_count <= RECENT_WORDS;
}

static __attribute__((noinline)) void walk_open_index(struct walk *w)
{
	unwind_view_open(&w->view, w->index);
	w->view_open = true;
	walk_use_generation(w, w->view.generation);
}

/* Finds the end of the stack, and the innermost frame of the recent one that may be met: that may be on a known stack
 * only, the same one. */
static inline const struct recent_frame *walk_open(struct walk *w, struct recent_stack *recent)
{
	w->index = unwind_index_now();
	w->stack_end = known_stack_end(w->at.sp, w->thread_pointer);
	w->stack_known = w->stack_end != 0;
	if (!w->stack_known)
		w->stack_end = page_end(w->at.sp);
	w->at.room = (w->stack_end - w->at.sp) / 8;
	if (!recent || recent->index != w->index) {
		walk_open_index(w);
		if (recent) /* for ever */
			recent_stack_forget(recent);
		return &recent_none;
	}
	walk_use_generation(w, recent->generation);
	if (recent->stack_end != w->stack_end || !w->stack_known || !recent_usable(recent))
		return &recent_none;
	recent->frames[0].sp = UINT64_MAX;
	return recent_unchanged(recent, w->at.sp, w->stack_end);
}

/* What a walk has collected. */
struct trail {
	uint64_t *frames;                /* where there is no recent stack */
	struct recent_stack *recent;     /* or NULL */
	struct fresh_frame *fresh;       /* its list for this walk */
	const struct recent_frame *near; /* innermost of the frames held there that may be met */
	uint64_t hash;                   /* of the `count` frames */
	uint32_t count;
	uint32_t held;     /* frames of the recent stack that were taken over */
	uint32_t fp_below; /* where the frame pointer of the present frame was read */
};

static inline void trail_add(struct trail *t, struct fresh_frame frame)
{
	if (t->recent)
		t->fresh[t->count++] = frame;
	else
		t->frames[t->count++] = frame.frame;
	t->hash = stack_hash_add(t->hash, frame.frame);
}

/* Frames 1 … held were taken over, but the outermost is no longer that: as if they had been walked. */
static void trail_copy(struct trail *t, uint32_t held)
{
	const struct recent_frame *f = &t->recent->frames[held];

	for (; held > 0; held--, f--) {
		struct fresh_frame fresh = { .sp = f->sp, .frame = f->frame, .fp = f->fp, .fp_below = t->fp_below };

		if (f->fallback != (held > 1 ? f[-1].fallback : 0u))
			fresh.fp_below |= FRESH_FALLBACK;
		trail_add(t, fresh);
		t->fp_below = f[-1].fp_below;
	}
}

/* The same as trail_join() where the outermost frame was that only because of what stands on the stack: tries a step
 * from it. */
static __attribute__((noinline)) enum step trail_join_open(struct trail *t, struct walk *w, uint32_t held)
{
	const struct recent_frame *met = &t->recent->frames[held], *last = &t->recent->frames[1];
	uint32_t before = w->fallback, more, below;
	enum step step;

	t->near = &recent_none;
	if (last->sp < w->at.sp || last->sp > w->stack_end)
		return STEP_ON; /* never written so */
	w->at = (struct place){
		.pc = DUMP_FRAME_ADDRESS(last->frame),
		.sp = last->sp,
		.fp = last->fp,
		.room = (w->stack_end - last->sp) / 8,
	};
	step = step_slow(w, unwind_frame_find(walk_view(w), w->salt, w->at.pc), &below);
	more = w->fallback - before;
	if (more != last->fallback)
		recent_stack_correct(t->recent, more - last->fallback);
	w->fallback = before + met->fallback;
	if (step == STEP_ON) { /* the stack goes on where it ended before */
		trail_copy(t, held);
		t->fp_below = below;
	} else {
		t->held = held;
	}
	return step;
}

/* The walk has come to a frame of the recent stack: takes it over with all outer ones. */
static inline enum step trail_join(struct trail *t, struct walk *w)
{
	uint32_t held = (uint32_t)(t->near - t->recent->frames);

	if (held > DUMP_FRAMES_MAX - t->count) { /* too many together, now and further out */
		t->near = &recent_none;
		return STEP_ON;
	}
	if (!t->recent->ends)
		return trail_join_open(t, w, held);
	w->ends_by_rule = true;
	w->fallback += t->near->fallback;
	t->held = held;
	return STEP_END;
}

/* One frame of any kind. */
static __attribute__((noinline)) enum step trail_slow(struct trail *t, struct walk *w)
{
	uint64_t found = unwind_frame_find(walk_view(w), w->salt, w->at.pc);
	uint64_t frame = DUMP_FRAME_ADDRESS(w->at.pc) | (found & UNWIND_FOUND_MODULE_BITS);
	struct fresh_frame fresh = { .sp = w->at.sp, .frame = frame, .fp = w->at.fp, .fp_below = t->fp_below };
	uint32_t fallback = w->fallback;
	enum step step = step_slow(w, found, &t->fp_below);

	if (w->fallback != fallback)
		fresh.fp_below |= FRESH_FALLBACK;
	trail_add(t, fresh);
	return step;
}

/*
 * Frames with cached rules CFA = rsp + n or rbp + n, until another one (STEP_SLOW), one of the recent stack
 * (STEP_JOIN), the end, or the limit (STEP_ON). No call leaves the loop, so that all stands in registers.
 */
static inline __attribute__((always_inline)) enum step trail_quick(struct trail *t, struct walk *w, bool recording)
{
	uint64_t sp = w->at.sp, fp = w->at.fp, pc = w->at.pc, salt = w->salt, end = w->stack_end, below = t->fp_below;
	uint64_t *out = t->frames, hash = t->hash;
	struct fresh_frame *fresh = t->fresh;
	const struct recent_frame *near = t->near;
	uint64_t near_sp = near->sp;
	enum step step = STEP_ON;
	uint32_t count = t->count;

	while (count < DUMP_FRAMES_MAX) {
		const struct unwind_cache_entry *entry = &unwind_cache[unwind_cache_index(pc)];
		uint64_t found = __atomic_load_n(&entry->found, __ATOMIC_RELAXED), next, frame;
		uint32_t shape = UNWIND_FOUND_SHAPE(found);

		if (recording && near_sp <= sp) {
			while (near->sp < sp)
				near--;
			near_sp = near->sp;
			if (near_sp == sp && near->fp == fp && DUMP_FRAME_ADDRESS(near->frame) == pc) {
				step = STEP_JOIN;
				break;
			}
		}
		step = STEP_SLOW;
		if ((__atomic_load_n(&entry->mixed, __ATOMIC_RELAXED) ^ found) != (pc ^ salt) * HASH_MULTIPLIER)
			break; /* always, if pc is 0 */
		next = UNWIND_FOUND_WORDS(found) * 8;
		if (shape - UNWIND_SHAPE(UNWIND_RSP, 0) <= UNWIND_RBP_MAX) {
			next += sp;
		} else if (shape - UNWIND_SHAPE(UNWIND_RBP, 0) <= UNWIND_RBP_MAX) {
			next += fp;
			if (next & 7)
				break;
		} else {
			break;
		}
		if (next <= sp || next > end)
			break;                                   /* the end of this walk, but not here */
		frame = pc | (found & UNWIND_FOUND_MODULE_BITS); /* what has a rule is an address in a module */
		hash = stack_hash_add(hash, frame);
		if (recording)
			fresh[count] = (struct fresh_frame){ .sp = sp, .frame = frame, .fp = fp, .fp_below = below };
		else
			out[count] = frame;
		count++;
		below = 8 * UNWIND_FOUND_FIELD(found);
		if (below) {
			fp = FP_UNKNOWN;
			if (below <= next - sp)
				fp = stack_word(next - below);
			else
				below = 0;
		}
		sp = next;
		pc = stack_word(next - 8);
		step = STEP_ON;
	}
	if (!pc)
		step = STEP_END;
	t->count = count;
	t->hash = hash;
	t->near = near;
	t->fp_below = (uint32_t)below;
	w->at = (struct place){ .pc = pc, .sp = sp, .fp = fp, .room = (end - sp) / 8 };
	return step;
}

static enum step trail_walk(struct trail *t, struct walk *w)
{
	enum step step = STEP_ON;

	while (step == STEP_ON && t->count < DUMP_FRAMES_MAX) {
		step = t->recent ? trail_quick(t, w, true) : trail_quick(t, w, false);
		if (step == STEP_JOIN)
			step = trail_join(t, w);
		else if (step == STEP_SLOW)
			step = trail_slow(t, w);
	}
	return step;
}

/* Leaves in *recent what of the stack is worth it. */
static void trail_keep(const struct trail *t, const struct walk *w, uint64_t sp, uint32_t flags)
{
	uint32_t fp_below = t->held ? t->fp_below : 0, kept;
	struct recent_stack *recent = t->recent;

	if (!t->count) {
		recent->last_count = 0;
		return;
	}
	kept = recent_stack_look(recent, t->count, t->held);
	if (!kept || fp_below == RECENT_UNCHECKED || w->signal_frames || !w->stack_known || w->stack_left ||
	    (flags & DUMP_STACK_DEEP) || w->stack_end - sp > RECENT_BYTES_MAX)
		return;
	recent_stack_forget(recent);
	recent->index = w->index;
	recent->generation = w->generation;
	recent->stack_end = w->stack_end;
	recent->ends = w->ends_by_rule;
	recent_stack_keep(recent, kept, t->held, fp_below);
}

void unwind_walk(const struct unwind_start *start, struct recent_stack *recent, uint64_t *frames,
                 struct unwind_result *result)
{
	struct walk w; /* each member is set, here and of the trail: a clearing of all costs as much as four frames */
	enum step step = STEP_LOST;
	struct trail t;
	uint64_t hash;

	w.at.sp = start->sp;
	w.at.fp = start->fp;
	w.at.pc = 0;
	w.thread_pointer = start->thread_pointer;
	w.signal_frames = w.fallback = 0;
	w.view_open = w.stack_left = w.ends_by_rule = false;
	t.frames = frames;
	t.recent = recent;
	t.fresh = recent ? recent_stack_list(recent) : 0;
	t.hash = 0;
	t.count = t.held = t.fp_below = 0;
	t.near = walk_open(&w, recent);
	if (!(start->sp & 7) && words_fit(&w.at, 1))
		step = step_to(&w.at, 1, w.at.fp);
	if (step == STEP_ON)
		step = trail_walk(&t, &w);
	hash = t.hash;
	if (t.held)
		hash = hash * recent->frames[t.held].power + recent->frames[t.held].hash;
	result->count = t.count + t.held;
	result->held = t.held;
	result->fallback = w.fallback;
	result->flags = step == STEP_LOST ? DUMP_STACK_TRUNCATED : step == STEP_ON ? DUMP_STACK_DEEP : 0;
	result->hash = stack_hash_end(hash, result->count, result->flags);
	if (recent)
		trail_keep(&t, &w, start->sp, result->flags);
	else
		walked_keep(frames, t.count, w.at.sp - start->sp);
}

void unwind_frames_complete(const struct recent_stack *recent, const struct unwind_result *result, uint64_t *frames)
{
	uint32_t count = result->count - result->held;

	if (!recent)
		return;
	for (uint32_t i = 0; i < count; i++)
		frames[i] = recent->fresh[recent->last % 2][i].frame;
	for (uint32_t i = 0; i < result->held; i++)
		frames[count + i] = recent->frames[result->held - i].frame;
}
