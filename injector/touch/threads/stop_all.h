/* SPDX-License-Identifier: MIT */
/*
 * All threads of a target stopped at one moment, for as long as it takes to change a few bytes of code.
 *
 * All that are known but the first one are asked at once and stop in parallel; then the list of threads is read again,
 * until it has no new one: a stopped thread makes none. A thread that does not stop (it sleeps uninterruptibly, as the
 * parent of a vfork child does) ends the attempt: the others are resumed, and nothing may be changed. But processes
 * that share the memory can be stopped, too; then the parent of one that vfork has made sleeps as long as that is
 * stopped.
 *
 * Nor is a thread stopped that sleeps in a call that a stop would harm (blocked_call.h). It stays asleep, unseized; who
 * wakes before all others have stopped is waited for to sleep again, or stopped when it runs on. Who wakes later runs
 * while the change is made. So each write must leave what is right to run, and be one that the processor makes at once;
 * a jump of five bytes may not be, and the argument is time: the wait for a processor and the way out of the kernel
 * take longer than the write after the last look (stop_all_asleep).
 *
 * The others are seized before one is asked: to seize takes longer, and what tells of the end of a thread meanwhile
 * (reap.h) also hears of each stop.
 *
 * Signals for the process are handled by its first thread unless it blocks them (complete_signal() of the kernel), and
 * programs may count on that. While it is traced, each that it takes stops it, and the next ones are for others, if one
 * runs. So it is seized when all others have stopped. Of those that come while all are stopped the kernel only keeps
 * account, and whoever runs first takes them. So that thread is resumed and gets its turn on a processor before the
 * others (let_go_first; tracer.h has the rest).
 *
 * A thread that waits for its turn on a processor comes to its stop with that turn; so the stop of the others is as
 * long as the last one needs. STOP_ALL_NS is the limit, a little more where there are many threads.
 */
#pragma once

#include "process/target.h"
#include "touch/threads/tracee.h"

#define STOP_ALL_NS 100000000ull
#define STOP_ALL_THREAD_NS 100000ull

struct stop_all {
	struct tracee *list;
	size_t count;
	struct sleeper *sleepers; /* not stopped: a stop would harm the calls that they sleep in */
	size_t sleeper_count;
	pid_t first;    /* of the process */
	bool first_too; /* all others have stopped */
	uint64_t began_ns;
	uint64_t since_ns; /* when the first was asked; 0: none yet */
	pid_t excused;     /* a thread that waits for its child of vfork, which is stopped; 0: none */
	pid_t spared;      /* a thread that is not asked; 0: none */
	bool sleepers_too; /* those are stopped as well */
};

/* Processes in the target's memory that are not its threads (clone_vm.h), to be stopped with them. */
struct stop_all_sharers {
	pid_t *list;
	size_t count;
};

/* 0: all that the target has are stopped, or asleep. -EAGAIN: one did not come to its stop in time, the text names it;
 * all run again, and *longest_ns, if longer, becomes how long that took. -ESRCH, -EPERM. */
int stop_all(struct stop_all *s, const struct target *target, const struct stop_all_sharers *sharers,
             uint64_t *longest_ns, struct err *e) WARN_UNUSED;
/* All but one, which this process traces already. There may be no other. sleepers_too: none may wake, whatever call a
 * stop harms: the one is in the loader. */
int stop_all_others(struct stop_all *s, const struct target *target, pid_t spared, bool sleepers_too,
                    uint64_t *longest_ns, struct err *e) WARN_UNUSED;
/* Do the sleepers still sleep? -EAGAIN: one has woken. */
int stop_all_asleep(const struct stop_all *s, struct err *e) WARN_UNUSED;
/* Resumes them, that one first. *longest_ns, if longer, becomes how long they were stopped. */
void stop_all_end(struct stop_all *s, uint64_t *longest_ns);
