/* SPDX-License-Identifier: MIT */
#include "borrow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>

#include "arch/registers.h"
#include "cleanup.h"
#include "sharers.h"
#include "quiesce.h"

#define STOP_NS 200000000ull      /* for one thread to stop: it may wait for a processor */
#define RETRY_FIRST_NS 500000ull  /* pause between two rounds over the threads, doubled each time up to … */
#define RETRY_LAST_NS 16000000ull
#define AREA_GAP_MIN (64ull << 20)

/* How well a thread suits: lower is better, negative not at all. */
int borrow_rank(const struct thread_info *thread)
{
	static const short restarted_badly[] = {
		/* return EINTR after any stop, with or without a handler: signal(7) */
		SYS_epoll_wait, SYS_epoll_pwait, 441 /* epoll_pwait2 */, SYS_semop, SYS_semtimedop, SYS_rt_sigtimedwait,
		SYS_io_getevents, 333 /* io_pgetevents */, SYS_msgrcv, SYS_msgsnd,
	};

	if (thread->state == 'D')
		return -1;
	for (unsigned i = 0; i < sizeof restarted_badly / sizeof restarted_badly[0]; i++)
		if (thread->syscall == restarted_badly[i])
			return 2;
	return thread->sleeping ? 0 : 1;
}

static int by_rank(const void *a, const void *b)
{
	return borrow_rank(a) - borrow_rank(b);
}

static void nap(uint64_t ns)
{
	struct timespec pause = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	nanosleep(&pause, NULL);
}

/* An address for the work area: inside a large gap, away from what grows (heap, stacks, the mmap frontier). */
static int find_area(const struct target *target, uint64_t bytes, uint64_t *area, struct err *e)
{
	struct maps maps;
	char path[64];
	uint64_t random = 0, best = 0, best_bytes = 0, end = 0x10000;

	snprintf(path, sizeof path, "/proc/%d/task/%d/maps", target->pid, target->tid);
	int rc = maps_read(&maps, path, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < maps.count; i++) {
		const struct mapping *m = &maps.list[i];
		uint64_t gap = m->start > end ? m->start - end : 0;
		if (gap > best_bytes && m->start < 0x7fffffffffffull) {
			best = end;
			best_bytes = gap;
		}
		end = m->end;
	}
	maps_free(&maps);
	if (best_bytes < bytes + AREA_GAP_MIN)
		return err_set(e, ENOMEM, "no room for a work area in the address space of the target");
	if (getrandom(&random, sizeof random, 0) != sizeof random)
		random = monotonic_ns();
	uint64_t middle = best + best_bytes / 4;
	*area = (middle + random % (best_bytes / 2 - bytes)) & ~4095ull;
	return 0;
}

static bool look_for_cave(void *context, unsigned frame, uint64_t pc, uint64_t sp)
{
	const struct quiesce_range *cave = context;

	(void)frame, (void)sp;
	return pc < cave->start || pc >= cave->end;
}

/*
 * Is the thread in the stub, in a call that the stub makes (then it is on the stack of the work area), or in a signal handler above the stub's last
 * steps (then a signal frame holds an address of the cave)?
 */
static bool runs_stub(const struct borrower *b, const struct stub_data *data, struct tracee *t)
{
	struct quiesce_range cave = { b->cave, b->cave + remote_cave_bytes() };
	struct user_regs_struct regs;
	struct stack_walk_end end;
	struct err ignored;

	if (tracee_registers(t, &regs, &ignored) < 0)
		return true;
	uint64_t pc = registers_pc(&regs), sp = registers_sp(&regs);
	if ((pc >= cave.start && pc < cave.end) || sp - data->area <= data->area_bytes)
		return true;
	stack_walk(b->points->walk, t, look_for_cave, &cave, &end);
	return !stack_walk_complete(&end) && quiesce_stack_holds(b->memory, sp, &cave, 1);
}

/*
 * A stub of a memattach that died may still stand in the cave, and its thread may still run it. Its data must not be overwritten before that
 * thread has left: -EBUSY.
 */
static int cave_is_free(const struct borrower *b, struct err *e)
{
	struct tracee t = { .longest_ns = b->longest_ns };
	enum tracee_stop stop;
	struct stub_data data;

	int rc = target_read(b->memory, remote_cave_data(b->cave), &data, sizeof data, e);
	if (rc < 0 || data.magic != STUB_MAGIC)
		return rc;
	rc = tracee_seize(&t, b->target->pid, (pid_t)data.tid, false, e);
	if (rc == -ESRCH || rc == -EPERM)
		return 0; /* that thread is gone (or its number belongs to another process) */
	if (rc < 0)
		return rc;
	rc = tracee_interrupt(&t, monotonic_ns() + STOP_NS, &stop, e);
	bool busy = rc == 0 && runs_stub(b, &data, &t);
	tracee_detach(&t);
	if (busy)
		return err_set(e, EBUSY, "thread %d still runs the last steps of an earlier memattach", (int)data.tid);
	return rc == -ESRCH ? 0 : rc;
}

/* One thread: 0 it is in the stub; -EBUSY, -ETIMEDOUT, -ESRCH not now; others are final. */
static int try_thread(const struct borrower *b, const struct thread_info *thread, bool suspend, struct remote *r,
		      struct tracee *t, struct err *e)
{
	enum tracee_stop stop;
	uint64_t area = 0;

	t->longest_ns = b->longest_ns;
	int rc = tracee_seize(t, b->target->pid, thread->tid, suspend, e);
	if (rc < 0)
		return rc;
	rc = find_area(b->target, SA_EXTRA + b->extra_bytes, &area, e);
	if (rc == 0)
		rc = tracee_interrupt(t, monotonic_ns() + STOP_NS, &stop, e);
	if (rc == 0)
		rc = safe_point_check(b->points, t, e);
	/* Not before: a refusal leaves the padding as it was. */
	bool written = rc == 0;
	if (rc == 0)
		rc = remote_prepare(r, b->memory, b->writer, b->cave, area, b->extra_bytes, e);
	if (rc == 0)
		rc = remote_enter(r, t, monotonic_ns() + b->call_ns, e);
	if (rc < 0 && r->inside) {
		remote_abandon(r);
	} else if (rc < 0) {
		struct err second;
		if (written && remote_erase(b->writer, b->cave, &second) < 0)
			err_prefix(e, "%s", second.text);
		tracee_detach(t);
	}
	return rc;
}

int borrow_enter(const struct borrower *b, struct remote *r, struct tracee *t, struct err *e)
{
	uint64_t deadline = monotonic_ns() + b->search_ns, pause = RETRY_FIRST_NS;
	struct err last = { .text = "no thread could be stopped" };

	for (;;) {
		AUTO_FREE struct thread_info *threads = NULL;
		size_t count = 0, usable = 0, free_of_filter = 0;

		int rc = target_threads(b->target, &threads, &count, e);
		if (rc < 0)
			return rc;
		if (!target_same_program(b->target))
			return err_set(e, ESRCH, "it has called execve: another program runs now");
		if (cave_is_free(b, &last) < 0 || sharers_check_thread_pointers(b->target, threads, count, &last) < 0)
			count = 0;
		qsort(threads, count, sizeof *threads, by_rank);
		for (size_t i = 0; i < count; i++)
			free_of_filter += !threads[i].filtered;
		for (size_t i = 0; i < count; i++) {
			if (borrow_rank(&threads[i]) < 0 || (threads[i].filtered && free_of_filter))
				continue;
			usable++;
			*r = (struct remote){ 0 };
			rc = try_thread(b, &threads[i], threads[i].filtered, r, t, &last);
			if (rc == 0)
				return 0;
			if (rc == -EPERM && threads[i].filtered) {
				return err_set(e, EPERM, "every thread has a seccomp filter, which could kill the process at a system call of ours; "
					       "memattach needs CAP_SYS_ADMIN to suspend the filter of one thread");
			}
			if (rc == -EPERM || rc == -EACCES) {
				*e = last;
				target_explain_permission(b->target, e);
				return rc;
			}
			if (rc != -EBUSY && rc != -ETIMEDOUT && rc != -ESRCH && rc != -EAGAIN) {
				*e = last;
				return rc;
			}
			if (monotonic_ns() >= deadline)
				break;
		}
		if (!usable && count)
			err_set(&last, EBUSY, "all its threads are in uninterruptible sleep");
		if (monotonic_ns() >= deadline)
			break;
		nap(pause);
		pause = pause * 2 < RETRY_LAST_NS ? pause * 2 : RETRY_LAST_NS;
	}
	return err_set(e, ETIMEDOUT, "no thread came to a safe point within %llu ms: %s; nothing was changed; "
		       "try again, or give --deadline more time",
		       (unsigned long long)(b->search_ns / 1000000u), last.text);
}

int borrow_wait_cave(const struct borrower *b, struct err *e)
{
	uint64_t deadline = monotonic_ns() + b->search_ns;

	for (int rc; (rc = cave_is_free(b, e)) < 0; nap(RETRY_FIRST_NS))
		if ((rc != -EBUSY && rc != -ETIMEDOUT) || monotonic_ns() >= deadline)
			return rc == -EBUSY ? -ETIMEDOUT : rc;
	return 0;
}

int borrow_erase_cave(const struct borrower *b, struct err *e)
{
	struct tracee t = { .longest_ns = b->longest_ns };

	int rc = borrow_wait_cave(b, e);
	if (rc < 0)
		return rc;
	rc = tracee_seize(&t, b->target->pid, b->target->tid, false, e);
	if (rc == 0)
		rc = remote_erase(b->writer, b->cave, e);
	tracee_detach(&t);
	return rc;
}
