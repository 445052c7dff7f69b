/* SPDX-License-Identifier: MIT */
#include "outer_call.h"

#include "arch/java_frame.h"
#include "arch/machine.h"
#include "walk/known_stack.h"
#include "payload.h"
#include "session_block.h"
#include "thread_state.h"
#include "walk/unwind.h"
#include "walk/unwind_step.h"

#define INNER_BYTES (16u << 10) /* of stack that an allocator uses between an outer and an inner call */

/*
 * Does the stack still hold what the mark of an outer call remembers? Only what is certain to be on the stack that the
 * call is on is read; else the mark is believed.
 */
static bool mark_holds(const struct thread_state *thread, uint64_t sp, uint64_t tp)
{
	uint64_t end = (sp | (PAGE_BYTES - 1)) + 1;

	if (thread->outer_sp >= end)
		end = known_stack_end(sp, tp);
	return thread->outer_sp >= end || step_word(thread->outer_sp) == thread->outer_return;
}

/* Whether a walk from the call meets this code; one that is cut off, or guesses, tells nothing. */
static __attribute__((noinline)) bool may_be_below(const struct hook_call *call, uint64_t tp)
{
	const struct unwind_start start = { .sp = call->sp, .fp = call->fp, .thread_pointer = tp };
	uint64_t frames[DUMP_FRAMES_MAX];
	struct unwind_result walked;

	unwind_walk(&start, NULL, frames, &walked);
	for (uint32_t i = 0; i < walked.count; i++)
		if (JAVA_FRAME_NATIVE(frames[i]) - session.text_start < session.text_end - session.text_start)
			return true;
	return walked.flags & DUMP_STACK_TRUNCATED || walked.fallback;
}

bool outer_call_holds(const struct hook_call *call)
{
	uint64_t tp = arch_thread_pointer();
	struct thread_state *thread = thread_state_find(tp);

	if (!thread || thread->outer_sp - call->sp - 1 >= INNER_BYTES)
		return false;
	if (mark_holds(thread, call->sp, tp) && may_be_below(call, tp))
		return true;
	thread->outer_sp = 0;
	return false;
}

/* The state may be another thread's before or after, or new: then an inner call counts too. */
uint64_t outer_call_make(const struct hook_call *call)
{
	uint64_t tp = arch_thread_pointer(), result;
	struct thread_state *thread = thread_state_find(tp);

	if (thread) {
		thread->outer_return = step_word(call->sp);
		thread->outer_sp = call->sp;
	}
	result = outer_call_pass_on(call);
	thread = thread_state_find(tp);
	if (thread)
		thread->outer_sp = 0;
	return result;
}
