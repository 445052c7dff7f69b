/* SPDX-License-Identifier: MIT */
/*
 * The walk of a stack, from the sampled call outwards. unwind_step.h says how one caller is found and which memory may
 * be read. What a walk finds is never made up: where a step fails the walk ends, marked truncated.
 *
 * A walk has three modes. Without a recent stack (recent_stack.h; intervals above RECENT_RATE_MAX) it is always plain.
 * With one it records, and may join; the steps are in this order:
 *
 *             walk_open()         opens the index; with a recent stack recent_unchanged() compares the words that its
 *                 |               frames were made of with the stack as it is, and so finds `near`: the innermost of
 *                 |               those frames that a walk arriving there may take over
 *                 v
 *             trail_quick()  <->  trail_slow()        common rules; one frame of any other kind
 *     plain       |               each frame goes to the caller's array
 *     recording   |               each frame goes to the recent stack's list `fresh`, with what it was made of
 *                 v
 *     joining trail_join()        the walk has arrived at `near` or a frame further out: takes over this frame and
 *                 |               all outer ones, with their hash, and ends. trail_join_open(): the outermost frame
 *                 |               ended the recent walk for another reason than its rule, so it is tried once more
 *                 v
 *             trail_keep()        recording: puts fresh frames that were seen twice into the recent stack
 *
 * Joining only saves time: frames, hash, counts and flags are those that a plain walk finds. The words are compared on
 * a known stack only, between sp and its end, and whatever the recent stack says is checked to be there.
 *
 * trail_quick() has everything in registers. Each frame waits for return address -> cache entry -> CFA -> the next
 * return address: two loads and a few additions. A walk that joins avoids that chain, since the words that it compares
 * do not depend on each other; it executes more instructions and takes less time.
 */
#include "walk/unwind.h"

#include "walk/java_walk.h"
#include "walk/recent_stack.h"
#include "walk/unwind_step.h"
#include "walk/walked.h"

/* ---- which frames of the recent stack still hold ---- */

/* The innermost frame that may be joined if `word` is the first of the list that has changed. */
static const struct recent_frame *recent_before(const struct recent_stack *recent, const struct recent_word *word)
{
	return &recent->frames[word->frame <= recent->count ? word->frame : 0];
}

/*
 * Not 0 if the word has changed. Unlike step_word() not volatile, which would keep the address out of the instruction
 * that reads.
 */
__attribute__((no_sanitize("address", "thread", "undefined"))) static inline uint64_t word_differs(
	uint64_t end, int64_t at, const struct recent_word *word)
{
	return *(const uint64_t *)(end + 8 * (uint64_t)at) ^ word->value;
}

/* Is a word, at a negative offset from the end of the stack, at or above sp? `least` is the offset of sp. */
static inline bool word_fits(int64_t at, uint32_t least)
{
	return (uint32_t)at >= least;
}

/* Of a group: how many words come before the first that is below sp or has changed. */
static __attribute__((noinline)) uint32_t words_unchanged(const struct recent_word *word, uint64_t end, uint32_t least)
{
	uint32_t i = 0;

	while (i < RECENT_WORD_GROUP && word_fits(word[i].at, least) && !word_differs(end, word[i].at, &word[i]))
		i++;
	return i;
}

/*
 * The innermost frame of the recent stack that still holds: all words that the frames around it were made of are on the
 * present stack and unchanged, so a walk that arrives there would go on as the recent one did. The same is true of all
 * frames further out.
 *
 * The words are compared from the outermost frame inwards, four at a time: stacks that follow each other differ in
 * their inner frames, so only one branch is mispredicted, where the comparison ends. Offsets of words are negative: if
 * the bits that four of them share are not below `least`, none of the four is; else each is asked.
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

/* Are its counts in range? Nothing that it holds is trusted. */
static bool recent_usable(const struct recent_stack *recent)
{
	return recent->count - 1 < DUMP_FRAMES_MAX && recent->word_count <= RECENT_WORDS;
}

static void walk_use_generation(struct walk *w, uint32_t generation)
{
	w->generation = generation;
	w->salt = unwind_view_salt(generation);
}

static __attribute__((noinline)) void walk_open_index(struct walk *w)
{
	unwind_view_open(&w->view, w->index);
	w->view_open = true;
	walk_use_generation(w, w->view.generation);
}

/*
 * Finds the end of the stack, the index, and the innermost frame of the recent stack that may be joined; recent_none if
 * there is none. Only frames that were found with the present index and code heaps and on the same known stack may be
 * joined, since their words are compared before any rule leads to them.
 */
static inline const struct recent_frame *walk_open(struct walk *w, struct recent_stack *recent)
{
	walk_set_end(w, w->at.sp);
	w->index = unwind_view_offset();
	w->java_bytes = recent ? java_walk_bytes() : 0;
	if (!recent || recent->index != w->index || recent->java_bytes != w->java_bytes) {
		walk_open_index(w);
		if (recent) /* what it was found with never comes back */
			recent_stack_forget(recent);
		return &recent_none;
	}
	walk_use_generation(w, recent->generation);
	if (recent->stack_end != w->stack_end || !w->stack_known || !recent_usable(recent))
		return &recent_none;
	recent->frames[0].sp = UINT64_MAX;
	return recent_unchanged(recent, w->at.sp, w->stack_end);
}

/* ---- the walk ---- */

/* What a walk has collected. */
struct trail {
	uint64_t *frames;                /* plain: the caller's array */
	struct recent_stack *recent;     /* NULL: plain */
	struct fresh_frame *fresh;       /* recording: its list for this walk */
	const struct recent_frame *near; /* innermost of its frames that may be joined, at or outside of sp */
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

/* Adds frames held … 1 of the recent stack to those that were walked, as if they had been walked too. */
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

/*
 * Joins where the outermost frame of the recent stack was that only because of what the stack held (its rule led
 * nowhere, or there was no rule): tries the step from that frame again. If it leads on, the frames taken over count as
 * walked, and the walk goes on from there.
 */
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
	step = unwind_step(w, unwind_view_find(walk_view(w), w->salt, w->at.pc), &below);
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

/* The walk has arrived at the frame `near` of the recent stack: takes it over with all outer ones. */
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

/* Adds the present frame, and goes to its caller by whatever rule it has. */
static __attribute__((noinline)) enum step trail_slow(struct trail *t, struct walk *w)
{
	/* Java code is in no module, which a search of all of them would find out for each frame. */
	const bool java = java_walk_holds(w->at.pc - 1);
	uint64_t found = UNLIKELY(java) ? UNWIND_NONE : unwind_view_find(walk_view(w), w->salt, w->at.pc);
	uint64_t frame = DUMP_FRAME_ADDRESS(w->at.pc) | (found & UNWIND_FOUND_MODULE_BITS);
	struct fresh_frame fresh = { .sp = w->at.sp, .frame = frame, .fp = w->at.fp, .fp_below = t->fp_below };
	uint32_t fallback = w->fallback;
	enum step step = unwind_step(w, found, &t->fp_below);

	if (UNLIKELY(java))
		fresh.frame = w->java_frame;
	if (w->fallback != fallback)
		fresh.fp_below |= FRESH_FALLBACK;
	trail_add(t, fresh);
	return step;
}

/*
 * Adds frames as long as their rule is in the cache and is CFA = sp + n or fp + n. Ends with STEP_SLOW at a frame
 * that has another one, STEP_JOIN at a frame of the recent stack, STEP_END, or STEP_ON at the limit of frames. No call
 * leaves the loop, so everything stays in registers. `recording` is a constant: there are two copies of the loop.
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
		const struct unwind_cache_entry *entry = &unwind_cache[unwind_cache_entry_index(pc)];
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
		if (shape - UNWIND_SHAPE(ARCH_RULE_SP, ARCH_RULE_FIELD_LEAST) <=
		    UNWIND_FP_MAX - ARCH_RULE_FIELD_LEAST) {
			next += sp;
		} else if (shape - UNWIND_SHAPE(ARCH_RULE_FP, ARCH_RULE_FIELD_LEAST) <=
		           UNWIND_FP_MAX - ARCH_RULE_FIELD_LEAST) {
			next += fp;
			if (next & 7)
				break;
		} else {
			break;
		}
		if (next <= sp || next > end || (ARCH_LINK_REGISTER && 8 * UNWIND_FOUND_FIELD(found) > next - sp))
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
				fp = step_word(next - below);
			else
				below = 0;
		}
		sp = next;
		pc = arch_code_address(step_word(next - ARCH_RETURN_BELOW(below)));
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

/* To the end of the walk. STEP_ON: there are more frames than the limit. */
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

/*
 * Recording: notes the fresh frames, and puts those that were seen twice into the recent stack. Not if the frames
 * depend on more than the words that can be compared later: a CFA that was read from memory, a signal frame, Java code,
 * another stack, a stack without its outermost frame.
 */
static void trail_keep(const struct trail *t, const struct walk *w, uint64_t sp, uint32_t flags)
{
	uint32_t fp_below = t->held ? t->fp_below : 0, kept;
	struct recent_stack *recent = t->recent;

	if (!t->count) {
		recent->last_count = 0;
		return;
	}
	kept = recent_stack_look(recent, t->count, t->held);
	if (!kept || fp_below == RECENT_UNCHECKED || w->signal_frames || w->java || !w->stack_known || w->stack_left ||
	    (flags & DUMP_STACK_DEEP) || w->stack_end - sp > RECENT_BYTES_MAX)
		return;
	recent_stack_forget(recent);
	recent->index = w->index;
	recent->java_bytes = w->java_bytes;
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
	w.view_open = w.stack_left = w.ends_by_rule = w.java = false;
#if ARCH_LINK_REGISTER
	w.link = w.link_sp = 0;
#endif
	t.frames = frames;
	t.recent = recent;
	t.fresh = recent ? recent_stack_list(recent) : 0;
	t.hash = 0;
	t.count = t.held = t.fp_below = 0;
	t.near = walk_open(&w, recent);
	if (!(start->sp & 7) && place_fits(&w.at, 1))
		step = step_to(&w.at, 1, w.at.fp);
	if (step == STEP_ON)
		step = trail_walk(&t, &w);
	hash = t.hash;
	if (t.held)
		hash = hash * recent->frames[t.held].power + recent->frames[t.held].hash;
	result->count = t.count + t.held;
	result->held = t.held;
	result->fallback = w.fallback;
	result->signal_frames = w.signal_frames;
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
