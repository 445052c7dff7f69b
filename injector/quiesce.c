/* SPDX-License-Identifier: MIT */
#include "quiesce.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arch/registers.h"
#include "cleanup.h"
#include "control.h"
#include "grow.h"
#include "sharers.h"

#define STOP_NS 500000000ull
#define PAUSE_NS 1000000
#define GATE_PATIENCE_NS 500000000ull /* for a thread that holds the address of a gate */
#define LIVE_STACK_BYTES (256u << 10) /* scanned above the stack pointer where the walk failed */
#define RED_ZONE_BYTES 128u

struct examination {
	const struct quiesce *q;
	bool inside;
	bool holds_gate;
};

static bool in_any(const struct quiesce_range *ranges, unsigned range_count, uint64_t value)
{
	for (unsigned i = 0; i < range_count; i++)
		if (value >= ranges[i].start && value < ranges[i].end)
			return true;
	return false;
}

static bool in_range(const struct quiesce_range *range, uint64_t value)
{
	return in_any(range, 1, value);
}

static void look_at_register(uint64_t value, void *context)
{
	struct examination *x = context;

	x->inside |= in_range(&x->q->code, value);
	x->holds_gate |= in_range(&x->q->gates, value);
}

static bool look_at_frame(void *context, unsigned frame, uint64_t pc, uint64_t sp)
{
	struct examination *x = context;

	(void)frame, (void)sp;
	x->inside |= in_range(&x->q->code, pc) || in_range(&x->q->gates, pc);
	return !x->inside;
}

/* Visits as much of the stack as is mapped above the stack pointer, word by word; true ends it. */
static bool any_word(const struct target_memory *memory, uint64_t sp, bool (*visit)(uint64_t at, uint64_t word, void *context),
		     void *context)
{
	uint64_t page[512];
	struct err ignored;
	uint64_t at = (sp - RED_ZONE_BYTES) & ~7ull;

	for (uint64_t end = at + LIVE_STACK_BYTES; at < end;) {
		size_t bytes = 4096 - at % 4096;
		if (target_read(memory, at, page, bytes, &ignored) < 0)
			break;
		for (size_t i = 0; i < bytes / sizeof page[0]; i++)
			if (visit(at + i * sizeof page[0], page[i], context))
				return true;
		at += bytes;
	}
	return false;
}

struct wanted {
	const struct quiesce_range *ranges;
	unsigned count;
};

static bool is_wanted(uint64_t at, uint64_t word, void *context)
{
	const struct wanted *w = context;

	(void)at;
	return in_any(w->ranges, w->count, word);
}

bool quiesce_stack_holds(const struct target_memory *memory, uint64_t sp, const struct quiesce_range *ranges, unsigned range_count)
{
	struct wanted wanted = { ranges, range_count };

	return any_word(memory, sp, is_wanted, &wanted);
}

struct hook_search {
	const struct quiesce_range *code;
	uint64_t before[2]; /* the two words below */
};

static bool is_hook(uint64_t at, uint64_t word, void *context)
{
	struct hook_search *h = context;
	bool found = word == (HOOK_LIVE_MAGIC ^ at) ||
		     (in_range(h->code, h->before[1]) && registers_follow_pc(h->before[0], word));

	h->before[1] = h->before[0];
	h->before[0] = word;
	return found;
}

bool quiesce_stack_in_hook(const struct target_memory *memory, uint64_t sp, const struct quiesce_range *code)
{
	struct hook_search search = { .code = code };

	return any_word(memory, sp, is_hook, &search);
}

static int note_stack(struct quiesce_stacks *stacks, const struct user_regs_struct *regs, struct err *e)
{
	if (!grow_list(stacks->list, stacks->count))
		return err_set(e, ENOMEM, "out of memory");
	stacks->list[stacks->count++] = (struct escape_stack){ registers_sp(regs) - RED_ZONE_BYTES, registers_tp(regs) };
	return 0;
}

static void look_at_stack(struct examination *x, uint64_t sp)
{
	x->inside |= quiesce_stack_in_hook(x->q->memory, sp, &x->q->code);
	x->holds_gate |= quiesce_stack_holds(x->q->memory, sp, &x->q->gates, 1);
}

/* 0 outside, -EBUSY inside, -EAGAIN holds the address of a gate, -ESRCH gone, -ETIMEDOUT does not stop. */
static int examine(const struct quiesce *q, pid_t tid, struct err *e)
{
	struct tracee t = { .longest_ns = q->longest_ns };
	struct examination x = { .q = q };
	struct user_regs_struct regs;
	struct stack_walk_end end = { 0 };
	enum tracee_stop stop;

	int rc = tracee_seize(&t, q->target->pid, tid, false, e);
	if (rc < 0)
		return rc;
	rc = tracee_interrupt(&t, monotonic_ns() + STOP_NS, &stop, e);
	if (rc == 0)
		rc = tracee_registers(&t, &regs, e);
	if (rc == 0) {
		registers_each(&regs, look_at_register, &x);
		if (!x.inside)
			stack_walk(q->walk, &t, look_at_frame, &x, &end);
		if (!x.inside && !stack_walk_complete(&end))
			look_at_stack(&x, registers_sp(&regs));
	}
	tracee_detach(&t);
	if (rc == 0 && !x.inside && q->stacks)
		rc = note_stack(q->stacks, &regs, e);
	if (rc == 0 && x.inside)
		rc = err_set(e, EBUSY, "thread %d is inside the payload", tid);
	else if (rc == 0 && x.holds_gate)
		rc = err_set(e, EAGAIN, "thread %d holds the address of a gate", tid);
	return rc;
}

struct seen {
	pid_t *list;
	size_t count;
};

static bool was_seen(const struct seen *s, pid_t tid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i] == tid)
			return true;
	return false;
}

static int note_seen(struct seen *s, pid_t tid, struct err *e)
{
	if (!grow_list(s->list, s->count))
		return err_set(e, ENOMEM, "out of memory");
	s->list[s->count++] = tid;
	return 0;
}

/* One round over the threads that were not yet seen outside. *left: how many could not be cleared. */
static int examine_round(const struct quiesce *q, bool gates_may_stay, struct seen *seen, size_t *left, size_t *fresh, struct err *e)
{
	AUTO_FREE struct thread_info *threads = NULL;
	size_t count;
	struct err why;

	*left = *fresh = 0;
	int rc = target_threads(q->target, &threads, &count, e);
	for (size_t i = 0; i < count && rc == 0; i++) {
		if (was_seen(seen, threads[i].tid))
			continue;
		++*fresh;
		int outside = examine(q, threads[i].tid, &why);
		if (outside == -EAGAIN && gates_may_stay) {
			*q->gates_held = true;
			outside = 0;
		}
		if (outside == 0) {
			rc = note_seen(seen, threads[i].tid, e);
		} else if (outside != -ESRCH) {
			*e = why;
			++*left;
		}
	}
	return rc;
}

/*
 * A child of vfork that was there when the last slot was restored may be in the payload, and is no thread: it is waited for. One that is born later
 * starts outside.
 */
static int wait_for_sharers(const struct quiesce *q, uint64_t deadline_ns, struct err *e)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	AUTO_FREE pid_t *sharers = NULL;
	size_t count = 0;

	int rc = sharers_find(q->target, &sharers, &count, e);
	for (size_t i = 0; i < count && rc == 0; i++)
		for (; rc == 0 && sharers_is_one(q->target, sharers[i]); nanosleep(&pause, NULL))
			if (monotonic_ns() >= deadline_ns)
				rc = err_set(e, EBUSY, "process %d, a child of vfork or clone, still runs in its memory", sharers[i]);
	return rc;
}

int quiesce_wait(const struct quiesce *q, uint64_t deadline_ns, struct err *e)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t patience_ns = monotonic_ns() + GATE_PATIENCE_NS;
	struct seen seen = { 0 };
	size_t left, fresh;

	int rc = wait_for_sharers(q, deadline_ns, e);
	if (rc < 0)
		return rc;
	/* Until a round finds nobody new: threads born during a round are examined in the next. */
	for (;;) {
		rc = examine_round(q, monotonic_ns() >= patience_ns, &seen, &left, &fresh, e);
		if (rc < 0 || (left == 0 && fresh == 0))
			break;
		if (left && monotonic_ns() >= deadline_ns) {
			rc = -EBUSY;
			break;
		}
		if (left)
			nanosleep(&pause, NULL);
	}
	free(seen.list);
	return rc;
}
