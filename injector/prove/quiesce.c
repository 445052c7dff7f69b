/* SPDX-License-Identifier: MIT */
#include "prove/quiesce.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arch/registers.h"
#include "arch/thread_start.h"
#include "base/cleanup.h"
#include "process/proc_stat.h"
#include "process/clone_vm.h"
#include "base/grow.h"
#include "prove/stack_search.h"
#include "touch/threads/stop_all.h"
#include "touch/threads/tracer.h"
#include "touch/threads/visit_threads.h"
#include "host/watchdog.h"
#include "base/order.h"

#define PAUSE_NS 1000000
#define TURN_NS 10000000ull /* for each thread: its turn on a processor */

#define FIRST_FRAME_BYTES 64u       /* that a program's start code may have pushed before it calls, */
#define FIRST_FRAME_POPPED 16u      /* or popped */
#define START_STACK 28u             /* field of stat: the first thread's stack pointer at execve */
#define SWITCHES_MAX 4u             /* of stacks: signal handlers within each other */
#define FRAME_BYTES_MAX (64u << 10) /* farther outwards begins another stack */

struct examination {
	const struct quiesce *q;
	bool inside;
	uint64_t pc, sp; /* of the frame that was looked at last */
	/* Where the walk came to another stack: that of the code that a signal handler on its own stack interrupted. */
	struct {
		unsigned frame;
		uint64_t sp;
	} switches[SWITCHES_MAX];
	unsigned switch_count;
	bool switch_lost; /* there were more */
};

static void look_at_register(uint64_t value, void *context)
{
	struct examination *x = context;

	x->inside |= address_ranges_hold(&x->q->code, 1, value);
}

static void note_switch(struct examination *x, unsigned frame, uint64_t sp)
{
	bool switched = frame && (sp < x->sp || sp - x->sp > FRAME_BYTES_MAX);

	if (switched && x->switch_count < SWITCHES_MAX) {
		x->switches[x->switch_count].frame = frame;
		x->switches[x->switch_count++].sp = sp;
	} else if (switched) {
		x->switch_lost = true;
	}
	x->sp = sp;
}

static bool look_at_frame(void *context, unsigned frame, uint64_t pc, uint64_t sp)
{
	struct examination *x = context;

	note_switch(x, frame, sp);
	x->pc = pc;
	x->inside |= address_ranges_hold(&x->q->code, 1, pc) ||
	             address_ranges_hold(x->q->detours, x->q->detour_count, pc);
	return !x->inside;
}

static int note_stack(struct quiesce_stacks *stacks, pid_t tid, uint64_t sp, uint64_t tp, bool walked, struct err *e)
{
	if (!grow_list(stacks->list, stacks->count))
		return err_set(e, ENOMEM, "out of memory");
	stacks->list[stacks->count++] = (struct stack_position){ sp - STACK_RED_ZONE_BYTES, tp, walked, tid };
	return 0;
}

/*
 * Did the walk end where the thread began? That of a coroutine does not: its outermost frame returns to code that goes
 * on with another one, and the thread's own frames may be anywhere.
 */
static bool came_to_start(const struct examination *x)
{
	uint64_t start_stack;

	if (x->switch_lost)
		return false;
	if (thread_start_is(x->q->memory, x->pc))
		return true;
	return proc_stat_number(x->q->target->pid, START_STACK, &start_stack, ERR_IGNORED) == 0 && start_stack &&
	       x->sp + FIRST_FRAME_BYTES >= start_stack && x->sp <= start_stack + FIRST_FRAME_POPPED;
}

/* The thread's stack, and those that it comes back to. Where a frame was passed by a guess, the frames after it are not
 * believed. */
static int note_stacks(struct quiesce_stacks *stacks, const struct examination *x, const struct stack_walk_end *end,
                       pid_t tid, const struct registers *regs, struct err *e)
{
	const uint64_t tp = registers_tp(regs);
	const bool walked = stack_walk_complete(end) && came_to_start(x);
	int rc = note_stack(stacks, tid, registers_sp(regs), tp, walked, e);

	for (unsigned i = 0; i < x->switch_count && rc == 0; i++)
		if (!end->guessed || x->switches[i].frame <= end->guess_frame)
			rc = note_stack(stacks, tid, x->switches[i].sp, tp, walked, e);
	return rc;
}

static void look_at_stack(struct examination *x, uint64_t sp)
{
	x->inside |= stack_search_in_hook(x->q->memory, sp, &x->q->code, 1) ||
	             stack_search_in_hook(x->q->memory, sp, x->q->detours, x->q->detour_count);
}

static void examine(struct examination *x, struct tracee *t, const struct registers *regs, struct stack_walk_end *end)
{
	registers_each(regs, look_at_register, x);
	if (!x->inside)
		stack_walk(x->q->walk, t, look_at_frame, x, end);
	if (!x->inside && !stack_walk_complete(end))
		look_at_stack(x, registers_sp(regs));
}

/* A round over the threads that were not yet seen outside. */
struct round {
	const struct quiesce *q;
	pid_t *outside; /* or ended: room for all of them */
	size_t outside_count, left;
	struct err why; /* the last one is left */
	int rc;
	struct err failure;
};

static int look_at_thread(struct round *r, struct tracee *t, struct err *e)
{
	struct examination x = { .q = r->q };
	struct stack_walk_end end = { 0 };
	struct registers regs;

	int rc = tracee_registers(t, &regs, e);
	if (rc < 0)
		return rc;
	examine(&x, t, &regs, &end);
	if (x.inside)
		return err_set(e, EBUSY, "thread %d is inside the payload", t->tid);
	if (r->q->stacks && r->rc == 0)
		r->rc = note_stacks(r->q->stacks, &x, &end, t->tid, &regs, &r->failure);
	return 0;
}

/*
 * From outside, of one that sleeps. Its registers are not seen. What they hold counts for nothing: between two
 * instructions of the payload it does not sleep, and what is alive in them below a hook would be found on the stack.
 */
static int look_at_sleeper(struct round *r, const struct sleeper *s, struct err *e)
{
	struct examination x = { .q = r->q };
	struct stack_walk_end end;

	stack_walk_asleep(r->q->walk, s->call.pc, s->call.sp, look_at_frame, &x, &end);
	if (!x.inside && !stack_walk_complete(&end))
		look_at_stack(&x, s->call.sp);
	if (!sleeper_sleeps(s))
		return err_set(e, EAGAIN, "thread %d has woken", s->tid);
	if (x.inside)
		return err_set(e, EBUSY, "thread %d is inside the payload", s->tid);
	if (r->q->stacks && r->rc == 0)
		r->rc = note_stack(r->q->stacks, s->tid, s->call.sp, 0, false, &r->failure);
	return 0;
}

static void note(struct round *r, pid_t tid, int rc, const struct err *why)
{
	if (rc == 0 || rc == -ESRCH) {
		r->outside[r->outside_count++] = tid;
	} else {
		r->why = *why;
		r->left++;
	}
}

static void visit(void *context, pid_t tid, struct tracee *t, int rc, const struct err *why)
{
	struct round *r = context;
	struct err e;

	if (rc == 0) {
		rc = look_at_thread(r, t, &e);
		why = &e;
	}
	note(r, tid, rc, why);
}

/* Those that sleep in calls that a stop would harm are seen from outside, or left; the others are kept in the list, to
 * be visited. */
static size_t look_from_outside(struct round *r, pid_t *tids, size_t count)
{
	const uint64_t deadline_ns = clock_monotonic_ns() + 10 * SLEEPER_AWAIT_NS;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct sleeper sleeper;
		struct err e;
		if (sleeper_await(&sleeper, r->q->target->pid, tids[i], deadline_ns) != SLEEPER_FOUND) {
			tids[kept++] = tids[i];
			continue;
		}
		note(r, tids[i], look_at_sleeper(r, &sleeper, &e), &e);
	}
	return kept;
}

/* Signals for the process are for its first thread (stop_all.h): that is visited while all others are stopped, too, if
 * they can be. The others are kept in the list. */
static size_t look_at_first(struct round *r, pid_t *tids, size_t count)
{
	const struct stop_all_sharers none = { 0 };
	const pid_t first = r->q->target->pid;
	struct stop_all all;
	size_t kept = 0;

	if (!count || tids[0] != first || stop_all(&all, r->q->target, &none, r->q->longest_ns, ERR_IGNORED) < 0)
		return count;
	bool is_there = false;
	for (size_t i = 0; i < all.count && !is_there; i++) {
		is_there = all.list[i].tid == first;
		if (is_there)
			visit(r, first, &all.list[i], 0, NULL);
	}
	stop_all_end(&all, r->q->longest_ns);
	for (size_t i = is_there; i < count; i++)
		tids[kept++] = tids[i];
	return kept;
}

struct seen {
	pid_t *list; /* sorted */
	size_t count;
};

ORDER_NUMBERS(by_number, pid_t);

static int note_seen(struct seen *s, const pid_t *tids, size_t count, struct err *e)
{
	if (count == 0)
		return 0;
	pid_t *list = realloc(s->list, (s->count + count) * sizeof *list);
	if (!list)
		return err_set(e, ENOMEM, "out of memory");
	memcpy(list + s->count, tids, count * sizeof *list);
	s->list = list;
	s->count += count;
	qsort(s->list, s->count, sizeof *s->list, by_number);
	return 0;
}

/* Threads that were not yet seen, in place. */
static size_t keep_fresh(const struct seen *s, pid_t *tids, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!s->count || !bsearch(&tids[i], s->list, s->count, sizeof *s->list, by_number))
			tids[kept++] = tids[i];
	return kept;
}

/* Of threads that were not seen before: how many may have been there when the search began? Those that were born later
 * began outside. */
static size_t count_old(const struct quiesce *q, const pid_t *tids, size_t count, uint64_t since_ticks)
{
	size_t old = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t born = thread_birth_ticks(q->target->pid, tids[i]);
		old += born != UINT64_MAX && born <= since_ticks;
	}
	return old;
}

static uint64_t now_ticks(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);
	return (uint64_t)now.tv_sec * hertz + (uint64_t)now.tv_nsec * hertz / 1000000000u;
}

/* All rounds, and the present one. */
struct rounds {
	const struct quiesce *q;
	uint64_t deadline_ns;
	uint64_t since_ticks; /* 0 in the first one, in which all are examined */
	struct seen seen;
	size_t left;  /* how many could not be cleared, the last one with its reason in e */
	size_t fresh; /* that were not seen before, and were there at since_ticks */
	struct err *e;
};

static int examine_round(void *context)
{
	struct rounds *all = context;
	const struct quiesce *q = all->q;
	struct seen *seen = &all->seen;
	struct err *e = all->e;
	AUTO_FREE pid_t *tids = NULL;
	size_t count = 0;

	int rc = target_tids(q->target, &tids, &count, e);
	if (rc < 0)
		return rc;
	count = keep_fresh(seen, tids, count);
	all->fresh = all->since_ticks ? count_old(q, tids, count, all->since_ticks) : count;
	AUTO_FREE pid_t *outside = calloc(count + 1, sizeof *outside);
	if (!outside)
		return err_set(e, ENOMEM, "out of memory");
	struct round r = { .q = q, .outside = outside };
	const bool has_others = count > 1;
	count = look_from_outside(&r, tids, count);
	if (!all->since_ticks && has_others)
		count = look_at_first(&r, tids, count);
	const struct thread_visits thread_visits = { q->target->pid, tids,  count, all->deadline_ns,
		                                     q->longest_ns,  visit, &r };
	rc = visit_threads(&thread_visits, e);
	if (rc == 0 && r.rc < 0) {
		*e = r.failure;
		rc = r.rc;
	}
	rc = rc ?: note_seen(seen, outside, r.outside_count, e);
	all->left = r.left;
	if (rc == 0 && r.left)
		*e = r.why;
	return rc;
}

/*
 * A child of vfork that was there when the last GOT entry was restored may be in the payload, and is no thread: it is
 * waited for. One that is born later starts outside.
 */
static int wait_for_sharers(const struct quiesce *q, uint64_t deadline_ns, struct err *e)
{
	AUTO_FREE pid_t *others = NULL;
	size_t count = 0;

	int rc = clone_vm_find(q->target, &others, &count, e);
	for (size_t i = 0; i < count && rc == 0; i++)
		for (; rc == 0 && clone_vm_is_one(q->target, others[i]); clock_pause(PAUSE_NS))
			if (clock_monotonic_ns() >= deadline_ns || watchdog_asked_twice())
				rc = err_set(e, EBUSY,
				             "process %d, a child of vfork or clone, still runs in its memory",
				             others[i]);
	return rc;
}

/* A thread among many that run, of this program or of others, waits long for its turn. No thread is stopped meanwhile.
 */
static int add_turns(const struct quiesce *q, uint64_t *deadline_ns, struct err *e)
{
	AUTO_FREE pid_t *tids = NULL;
	size_t count = 0;
	unsigned long others = thread_runnable_count();

	int rc = target_tids(q->target, &tids, &count, e);
	*deadline_ns += (count > others ? count : others) * TURN_NS;
	return rc;
}

int quiesce_wait(const struct quiesce *q, uint64_t deadline_ns, struct err *e)
{
	struct rounds all = { .q = q, .e = e };

	int rc = add_turns(q, &deadline_ns, e);
	rc = rc ?: wait_for_sharers(q, deadline_ns, e);
	if (rc < 0)
		return rc;
	/*
	 * Until a round finds nobody new: the list of threads may miss one while others end. Threads that a program
	 * makes all the time, and that were born since, do not count.
	 */
	all.deadline_ns = deadline_ns;
	for (uint64_t began_ticks = now_ticks();; all.since_ticks = began_ticks + 1) {
		rc = tracer_run(examine_round, &all);
		if (rc < 0 || (all.left == 0 && all.fresh == 0))
			break;
		if (all.left && clock_monotonic_ns() >= deadline_ns) {
			rc = -EBUSY;
			break;
		}
		if (watchdog_asked_twice()) {
			rc = err_set(e, EINTR, "interrupted twice before all threads were seen outside of the payload");
			break;
		}
		if (all.left)
			clock_pause(PAUSE_NS);
	}
	free(all.seen.list);
	return rc;
}
