/* SPDX-License-Identifier: MIT */
#include "touch/remote/borrow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "arch/address_bits.h"
#include "arch/registers.h"
#include "base/cleanup.h"
#include "process/clone_vm.h"
#include "process/live_thread.h"
#include "process/permission.h"
#include "prove/quiesce.h"
#include "process/task.h"
#include "touch/threads/let_go.h"
#include "touch/threads/tracer.h"
#include "host/watchdog.h"

#define STOP_NS 200000000ull     /* for one thread to stop: it may wait for a processor, … */
#define TURN_NS 10000000ull      /* … for so long more for each thread that runs, its own or another's */
#define LOOK_AT 64u              /* so many threads in one round */
#define RETRY_FIRST_NS 500000ull /* pause between two rounds over the threads, doubled each time up to … */
#define RETRY_LAST_NS 16000000ull
/* A thread that runs is elsewhere at each look, so in a pause it is looked at again: many looks find it at a safe point
 * that it is rarely at. One takes a tenth of this. A thread that sleeps would only be where it was. */
#define LOOK_AGAIN_NS 1000000ull /* for each thread that runs */
#define AREA_GAP_MIN (64ull << 20)

/*
 * By what a stop does to the call that it sleeps in, and the first thread after others: signals for the process go to
 * it unless it blocks them (complete_signal() of the kernel), and while it is borrowed they would be handled elsewhere.
 */
int borrow_rank(const struct thread_info *thread)
{
	static const signed char ranks[] = { [STOP_NONE] = 0, [STOP_TIME] = 4, [STOP_DOUBT] = 6, [STOP_LESS] = -1 };

	if (thread->state == 'D')
		return -1;
	return thread->sleeping ? ranks[thread->effect] + (ranks[thread->effect] >= 0 && thread->first)
	                        : 2 + thread->first;
}

bool borrow_restarts_badly(const struct thread_info *thread)
{
	return thread->sleeping && thread->effect == STOP_TIME;
}

/* Those that do not suit are last: their reason is told. */
static int by_rank(const void *a, const void *b)
{
	unsigned x = (unsigned)borrow_rank(a), y = (unsigned)borrow_rank(b);

	return x < y ? -1 : x > y;
}

/* An address for the work area: inside a large gap, away from what grows (heap, stacks, the mmap frontier). */
static int find_area(const struct target *target, uint64_t bytes, uint64_t *area, struct err *e)
{
	struct maps maps;
	uint64_t random = 0, best = 0, best_bytes = 0, end = 0x10000;

	int rc = live_thread_maps(target, &maps, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < maps.count; i++) {
		const struct mapping *m = &maps.list[i];
		uint64_t gap = m->start > end ? m->start - end : 0;
		if (gap > best_bytes && m->start < (1ull << ADDRESS_BITS) - 1) {
			best = end;
			best_bytes = gap;
		}
		end = m->end;
	}
	maps_free(&maps);
	if (best_bytes < bytes + AREA_GAP_MIN)
		return err_set(e, ENOMEM, "no room for a work area in the address space of the target");
	if (getrandom(&random, sizeof random, 0) != sizeof random)
		random = clock_monotonic_ns();
	uint64_t middle = best + best_bytes / 4;
	*area = (middle + random % (best_bytes / 2 - bytes)) & ~4095ull;
	return 0;
}

static bool look_for_cave(void *context, unsigned frame, uint64_t pc, uint64_t sp)
{
	const struct address_range *cave = context;

	(void)frame, (void)sp;
	return pc < cave->start || pc >= cave->end;
}

/*
 * Is the thread in the stub, in a call that the stub makes (then it is on the stack of the work area), or in a signal
 * handler above the stub's last steps (then a signal frame holds an address of the cave)?
 */
static bool runs_stub(const struct borrower *b, const struct stub_data *data, struct tracee *t)
{
	struct address_range cave = { b->cave.code, b->cave.code + remote_cave_bytes() };
	struct registers regs;
	struct stack_walk_end end;

	if (tracee_registers(t, &regs, ERR_IGNORED) < 0)
		return true;
	uint64_t pc = registers_pc(&regs), sp = registers_sp(&regs);
	if ((pc >= cave.start && pc < cave.end) || sp - data->area <= data->area_bytes)
		return true;
	stack_walk(b->points->walk, t, look_for_cave, &cave, &end);
	return !stack_walk_complete(&end) && stack_search_holds(b->memory, sp, &cave, 1);
}

struct stub_look {
	const struct borrower *b;
	const struct stub_data *data;
	struct err *e;
};

static int look_at_stub(void *context)
{
	const struct stub_look *look = context;
	const struct borrower *b = look->b;
	struct tracee t = { .longest_ns = b->longest_ns };
	const pid_t tid = (pid_t)look->data->tid;
	enum tracee_stop stop;

	int rc = tracee_seize(&t, b->target->pid, tid, false, look->e);
	if (rc == -ESRCH || rc == -EPERM)
		return 0; /* that thread is gone (or its number belongs to another process) */
	if (rc < 0)
		return rc;
	rc = tracee_interrupt(&t, clock_monotonic_ns() + STOP_NS, &stop, look->e);
	bool busy = rc == 0 && runs_stub(b, look->data, &t);
	tracee_detach(&t);
	if (busy)
		return err_set(look->e, EBUSY, "thread %d still runs the last steps of an earlier memattach", tid);
	return rc == -ESRCH ? 0 : rc;
}

/*
 * A stub of a memattach that died may still be in the cave, and its thread may still run it. Its data must not be
 * overwritten before that thread has left: -EBUSY.
 */
static int cave_is_free(const struct borrower *b, struct err *e)
{
	struct stub_data data;

	int rc = target_read(b->memory, remote_cave_data(b->cave.code), &data, sizeof data, e);
	if (rc < 0 || data.magic != STUB_MAGIC)
		return rc;
	struct stub_look look = { b, &data, e };
	return tracer_run(look_at_stub, &look);
}

static int try_stop(const struct borrower *b, const struct thread_info *thread, uint64_t area, uint64_t stop_ns,
                    struct remote *r, struct tracee *t, struct err *e)
{
	enum tracee_stop stop;

	t->longest_ns = b->longest_ns;
	int rc = tracee_seize(t, b->target->pid, thread->tid, thread->filtered, e);
	if (rc < 0)
		return rc;
	rc = tracee_interrupt(t, clock_monotonic_ns() + stop_ns, &stop, e);
	rc = rc ?: safe_point_check(b->points, t, e);
	rc = rc ?: remote_check_place(b->memory, &b->cave, e);
	/* Not before: a refusal leaves the padding as it was. */
	bool written = rc == 0;
	rc = rc ?: remote_prepare(r, b->memory, b->writer, &b->cave, area, b->extra_bytes, e);
	rc = rc ?: remote_enter(r, t, clock_monotonic_ns() + b->call_ns, e);
	if (rc < 0 && r->inside) {
		remote_abandon(r);
		rc = -EINPROGRESS;
	} else if (rc < 0) {
		struct err second;
		if (written && remote_erase(b->writer, &b->cave, &second) < 0)
			err_prefix(e, "%s", second.text);
		tracee_detach(t);
	}
	return rc;
}

struct search {
	const struct borrower *b;
	borrow_fn use;
	void *context;
	bool used; /* a thread was, and this is what came of it: */
	int result;
	struct err *e;
	uint64_t deadline_ns;
	uint64_t turns_ns; /* what a thread may have to wait for a processor */
	size_t looked;     /* at threads, from the first one on */
	size_t total;
	bool without_filter;      /* one has no seccomp filter */
	bool left;                /* a thread was left in the stub */
	unsigned running;         /* of those that were tried last */
	uint64_t patience_ns;     /* until then one that wants to run has to be seen running, or asleep */
	pid_t sensitive[LOOK_AT]; /* those that were met asleep in a call that a stop would harm: for them always */
	size_t sensitive_count;
};

static bool was_met_in_call(const struct search *s, pid_t tid)
{
	for (size_t i = 0; i < s->sensitive_count && i < LOOK_AT; i++)
		if (s->sensitive[i] == tid)
			return true;
	return false;
}

/* Immediately before it is stopped. -EBUSY: it must not be now. */
static int look_before_stop(struct search *s, struct thread_info *thread, struct err *e)
{
	const pid_t pid = s->b->target->pid;
	char name[BLOCKED_CALL_NAME];
	struct sleeper sleeper;

	const enum sleeper_found found =
		sleeper_await(&sleeper, pid, thread->tid, clock_monotonic_ns() + SLEEPER_AWAIT_NS);
	thread->sleeping = found == SLEEPER_FOUND || sleeper.may_stop;
	if (found == SLEEPER_FOUND && !was_met_in_call(s, thread->tid))
		s->sensitive[s->sensitive_count++ % LOOK_AT] = thread->tid;
	if (found == SLEEPER_FOUND)
		return err_set(e, EBUSY, "thread %d is in %s, which would return early, with a part of its work done",
		               thread->tid, blocked_call_name(&sleeper.call, name));
	if (found == SLEEPER_UNKNOWN && was_met_in_call(s, thread->tid))
		return -EBUSY; /* for the reason in e */
	if (found == SLEEPER_UNKNOWN && clock_monotonic_ns() < s->patience_ns)
		return err_set(e, EBUSY, "thread %d waits for a processor", thread->tid);
	return 0;
}

/* A clone with CLONE_VM may run on the thread pointer of a thread: none may be borrowed. */
static int check_strangers(const struct search *s, const struct thread_info *threads, size_t count, struct err *e)
{
	const struct target *target = s->b->target;
	AUTO_FREE struct thread_info *all = NULL;
	size_t all_count;

	int rc = clone_vm_check_thread_pointers(target, threads, count, e);
	if (rc == 0 || count == s->total)
		return rc;
	/* What it has found may be the children of threads that were not looked at. */
	rc = target_threads(target, &all, &all_count, e);
	return rc == 0 ? clone_vm_check_thread_pointers(target, all, all_count, e) : rc;
}

/* The next threads to be tried. *busy: with none of them it can be now, e says why. */
static int look_for_threads(struct search *s, struct thread_info **threads, size_t *count, bool *busy, struct err *e)
{
	size_t running = 0;

	int rc = target_some_threads(s->b->target, s->looked, LOOK_AT, threads, count, &s->total, e);
	if (rc < 0)
		return rc;
	if (!target_same_program(s->b->target))
		return err_set(e, ESRCH, "it has called execve: another program runs now");
	for (size_t i = 0; i < *count; i++) {
		running += (*threads)[i].state == 'R';
		s->without_filter |= !(*threads)[i].filtered;
	}
	if (s->looked == 0 && *count) {
		unsigned long here = running * s->total / *count, everywhere = running ? thread_runnable_count() : 0;
		s->turns_ns = (here > everywhere ? here : everywhere) * TURN_NS;
		s->deadline_ns += s->turns_ns;
	}
	s->looked += LOOK_AT;
	*busy = cave_is_free(s->b, e) < 0 || check_strangers(s, *threads, *count, e) < 0;
	qsort(*threads, *count, sizeof **threads, by_rank);
	return 0;
}

/* A thread with a filter only if there is no other: that is known when all have been looked at. */
static bool may_borrow(const struct search *s, const struct thread_info *thread)
{
	return thread->state != 'D' && (!thread->filtered || (!s->without_filter && s->looked >= s->total));
}

/* memattach was asked to end. */
static bool is_unwanted(const struct borrower *b)
{
	return b->patient ? watchdog_asked_twice() : watchdog_asked() != 0;
}

static bool is_over(const struct search *s)
{
	return clock_monotonic_ns() >= s->deadline_ns;
}

/* EPERM for a thread with a filter, and all have one. */
static int tell_filter(const struct target *target, struct err *e)
{
	struct permission p;

	permission_read(&p, target->pid);
	const char *why = permission_to_suspend_filter(&p.self);
	return err_set(e, EPERM,
	               "every thread has a seccomp filter, which could kill the process at a system call of ours; %s",
	               why ? why : "the kernel does not let memattach suspend the filter of one thread");
}

struct
try {
	struct search *s;
	struct thread_info *thread;
	struct err *e;
};

/*
 * One thread: 0 it was used; -EBUSY, -ETIMEDOUT, -ESRCH not now; -EINPROGRESS it has been left in the stub, which
 * is not free until it has finished; others are final.
 */
static int try_thread(void *context)
{
	const struct try *try = context;
	struct search *s = try->s;
	const struct borrower *b = s->b;
	struct remote r = { 0 };
	struct tracee t = { 0 };
	uint64_t area = 0;

	int rc = find_area(b->target, WORK_AT(extra) + b->extra_bytes, &area, try->e);
	rc = rc ?: look_before_stop(s, try->thread, try->e);
	rc = rc ?: try_stop(b, try->thread, area, STOP_NS + s->turns_ns, &r, &t, try->e);
	if (rc < 0)
		return rc;
	s->used = true;
	s->result = s->use(s->context, &r, &t, s->e);
	return 0;
}

/*
 * 0: one was used. -EAGAIN: none of them now, last says why. Others are final. *usable: how many were tried.
 * again: not those that slept.
 */
static int try_threads(struct search *s, struct thread_info *threads, size_t count, bool again, size_t *usable,
                       struct err *last)
{
	const struct borrower *b = s->b;

	s->running = 0;
	for (size_t i = 0; i < count; i++) {
		struct thread_info *thread = &threads[i];
		if (!may_borrow(s, thread) || (again && thread->sleeping))
			continue;
		++*usable;
		struct try try = { s, thread, last };
		int rc = tracer_run(try_thread, &try);
		s->running += !thread->sleeping;
		if (rc == 0)
			return 0;
		if (rc == -EINPROGRESS) {
			s->left = true;
			break; /* what it needs must not be written over: cave_is_free decides */
		}
		if (rc == -EPERM && thread->filtered)
			return tell_filter(b->target, s->e);
		if (rc == -EBUSY || rc == -ETIMEDOUT || rc == -ESRCH || rc == -EAGAIN) {
			if (is_over(s) || is_unwanted(b))
				break;
			continue;
		}
		*s->e = *last;
		if (rc == -EPERM || rc == -EACCES)
			target_explain_permission(b->target, s->e);
		return rc;
	}
	return -EAGAIN;
}

/* The pause between two rounds; as try_threads. */
static int pause_and_look(struct search *s, struct thread_info *threads, size_t count, uint64_t pause_ns,
                          struct err *last)
{
	const uint64_t end = clock_monotonic_ns() + pause_ns;
	size_t usable = 0;
	int rc = -EAGAIN;

	for (uint64_t now; rc == -EAGAIN && (now = clock_monotonic_ns()) < end;) {
		uint64_t soon = s->running * LOOK_AGAIN_NS;
		bool look = soon && soon < end - now && !s->left;
		let_go_pause(look ? soon : end - now);
		if (look && (is_over(s) || is_unwanted(s->b)))
			break;
		if (look)
			rc = try_threads(s, threads, count, true, &usable, last);
	}
	return rc;
}

int borrow_thread(const struct borrower *b, borrow_fn use, void *context, struct err *e)
{
	const uint64_t began_ns = clock_monotonic_ns();
	struct search s = { .b = b,
		            .use = use,
		            .context = context,
		            .e = e,
		            .deadline_ns = began_ns + b->search_ns,
		            .patience_ns = began_ns + b->search_ns / 2 };
	uint64_t pause = RETRY_FIRST_NS;
	struct err last = { .text = "no thread could be stopped" };

	for (;;) {
		AUTO_FREE struct thread_info *threads = NULL;
		size_t count = 0, usable = 0;
		bool busy = false;

		let_go_look();
		int rc = look_for_threads(&s, &threads, &count, &busy, e);
		if (rc < 0)
			return rc;
		if (busy)
			last = *e;
		else
			rc = try_threads(&s, threads, count, false, &usable, &last);
		if (!busy && rc != -EAGAIN)
			return s.used ? s.result : rc;
		if (!busy && !usable && count && s.looked >= s.total)
			err_set(&last, EBUSY, "all its threads are in uninterruptible sleep");
		if (is_over(&s))
			break;
		if (is_unwanted(b))
			return err_set(e, EINTR, "interrupted; %s",
			               s.left ? "what was begun ends by itself when that thread goes on"
			                      : "nothing was changed");
		if (!busy && !usable && s.looked < s.total)
			continue;
		if (busy)
			s.running = 0; /* none may be looked at */
		rc = pause_and_look(&s, threads, count, pause, &last);
		if (rc != -EAGAIN)
			return s.used ? s.result : rc;
		pause = pause * 2 < RETRY_LAST_NS ? pause * 2 : RETRY_LAST_NS;
	}
	return err_set(e, ETIMEDOUT,
	               "no thread came to a safe point within %llu ms: %s; %s; "
	               "try again, or give --deadline more time",
	               (unsigned long long)((b->search_ns + s.turns_ns) / 1000000u), last.text,
	               s.left ? "what was begun ends by itself when that thread goes on" : "nothing was changed");
}

int borrow_wait_cave(const struct borrower *b, struct err *e)
{
	uint64_t deadline = clock_monotonic_ns() + b->search_ns;

	for (int rc; (rc = cave_is_free(b, e)) < 0; let_go_pause(RETRY_FIRST_NS))
		if ((rc != -EBUSY && rc != -ETIMEDOUT) || clock_monotonic_ns() >= deadline || is_unwanted(b))
			return rc == -EBUSY ? -ETIMEDOUT : rc;
	return 0;
}

struct erasure {
	const struct borrower *b;
	struct err *e;
};

static int erase_cave(void *context)
{
	const struct erasure *x = context;
	const struct borrower *b = x->b;
	struct tracee t = { .longest_ns = b->longest_ns };
	int rc;

	do
		rc = tracee_seize(&t, b->target->pid, task_alive(b->target->pid), false, x->e);
	while (rc == -ESRCH && target_alive(b->target));
	rc = rc ?: remote_erase(b->writer, &b->cave, x->e);
	tracee_detach(&t);
	return rc;
}

int borrow_erase_cave(const struct borrower *b, struct err *e)
{
	struct erasure x = { b, e };

	int rc = borrow_wait_cave(b, e);
	return rc < 0 ? rc : tracer_run(erase_cave, &x);
}
