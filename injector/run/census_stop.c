/* SPDX-License-Identifier: MIT */
#include "run/census_stop.h"

#include <stdlib.h>
#include <sys/syscall.h>

#include "arch/registers.h"
#include "base/grow.h"
#include "census/census_lost.h"
#include "host/clocks.h"
#include "host/watchdog.h"
#include "process/clone_vm.h"
#include "search/kernel_pointers.h"
#include "touch/threads/let_go.h"
#include "touch/threads/stop_all.h"
#include "touch/threads/tracer.h"

#define ATTEMPTS 20u
#define BUSY_ATTEMPTS 3u /* each of them is a whole stop */
#define PAUSE_NS 2000000
#define EXTENDED_BYTES 16384u

struct stopping {
	struct census *census;
	struct kernel_pointers kernel;
	const struct mapping *libc; /* the data that main_arena is in */
	uint64_t longest_ns;        /* that is allowed */
	struct reach_stop stop;
	int no_memory;
	struct err why;
};

static void add_word(uint64_t word, void *context)
{
	struct stopping *s = context;

	if (!grow_list(s->stop.words, s->stop.word_count))
		s->no_memory = 1;
	else
		s->stop.words[s->stop.word_count++] = word;
}

/* Those of vectors, too: compilers move two pointers at a time. */
static void add_extended(struct stopping *s, pid_t tid)
{
	uint64_t words[EXTENDED_BYTES / sizeof(uint64_t)];
	const size_t bytes = registers_read_extended(tid, words, sizeof words);

	for (size_t i = 0; i < bytes / sizeof *words; i++)
		if (words[i] >> 16)
			add_word(words[i], s);
}

/* Calls that malloc and free make. */
static bool is_call_of_malloc(int64_t number)
{
	return number == SYS_brk || number == SYS_mmap || number == SYS_munmap || number == SYS_mremap ||
	       number == SYS_mprotect || number == SYS_madvise;
}

/* With one thread only nothing tells but where it is. */
static bool may_be_in_malloc(const struct stopping *s, const struct registers *regs)
{
	const int64_t number = registers_syscall(regs);
	const struct mapping *m = maps_find(&s->census->maps, registers_pc(regs));

	return number >= 0 ? is_call_of_malloc(number) : m && s->libc && mapping_same_file(m, s->libc);
}

static int read_threads(struct stopping *s, const struct stop_all *all, struct err *e)
{
	struct registers regs;
	int rc = 0;

	for (size_t i = 0; i < all->count && rc == 0; i++) {
		struct tracee t = all->list[i];
		rc = tracee_registers(&t, &regs, e);
		if (rc == -ESRCH) /* it was killed */
			return err_set(e, EAGAIN, "a thread has ended");
		if (rc == 0 && may_be_in_malloc(s, &regs))
			return err_set(e, EAGAIN, "thread %d is in the C library", t.tid);
		if (rc < 0)
			break;
		if (!grow_list(s->stop.threads, s->stop.thread_count))
			return err_set(e, ENOMEM, "no memory for its threads");
		s->stop.threads[s->stop.thread_count++] =
			(struct reach_thread){ registers_sp(&regs), registers_tp(&regs) };
		registers_each(&regs, add_word, s);
		add_word(registers_tp(&regs), s);
		add_extended(s, t.tid);
	}
	return rc;
}

static int while_stopped(struct stopping *s, const struct stop_all *all, struct err *e)
{
	s->stop.word_count = s->stop.thread_count = 0;
	if (all->sleeper_count)
		return err_set(e, EAGAIN, "thread %d sleeps in a call that a stop would harm", all->sleepers[0].tid);
	if (all->excused) /* what it had in registers is in the kernel */
		return err_set(e, EAGAIN, "thread %d waits for its child of vfork", all->excused);
	int rc = read_threads(s, all, e);
	rc = rc ?: kernel_pointers_read(&s->kernel, &s->stop.words, &s->stop.word_count, e);
	if (rc == 0 && s->no_memory)
		rc = err_set(e, ENOMEM, "no memory for its registers");
	return rc == 0 ? census_lost_settle(s->census, &s->stop, all->since_ns + s->longest_ns, e) : rc;
}

static int attempt(void *context)
{
	struct stopping *s = context;
	struct err *e = &s->why;
	struct stop_all_sharers sharers = { 0 };
	struct stop_all all;

	int rc = clone_vm_find(s->census->target, &sharers.list, &sharers.count, e);
	rc = rc ?: stop_all(&all, s->census->target, &sharers, &s->census->lost.stopped_ns, e);
	if (rc == 0) {
		rc = while_stopped(s, &all, e);
		stop_all_end(&all, &s->census->lost.stopped_ns);
	}
	free(sharers.list);
	return rc;
}

static int try_moments(struct stopping *s, struct err *e)
{
	unsigned busy = 0;
	int rc = -EAGAIN;

	for (unsigned i = 0; i < ATTEMPTS && (rc == -EAGAIN || (rc == -EBUSY && busy < BUSY_ATTEMPTS)); i++) {
		if (watchdog_check(e) < 0)
			return -EINTR;
		if (i)
			clock_pause(PAUSE_NS);
		let_go_look();
		rc = tracer_run(attempt, s);
		busy += rc == -EBUSY;
	}
	if (rc < 0)
		*e = s->why;
	return rc;
}

/* No moment was had; what else is known may be told. */
static bool is_only_unknown(int rc)
{
	return rc == -EAGAIN || rc == -EBUSY || rc == -ETIME || rc == -ENOSYS || rc == -EPERM || rc == -EACCES ||
	       rc == -EFAULT; /* memory that only the process itself may read */
}

/* What the kernel has is read once more meanwhile: epoll may tell of a million descriptors. */
static bool takes_too_long(struct stopping *s)
{
	const uint64_t before = clock_monotonic_ns();

	(void)!kernel_pointers_read(&s->kernel, &s->stop.words, &s->stop.word_count, ERR_IGNORED);
	const uint64_t kernel_ns = clock_monotonic_ns() - before,
		       expected_ns = kernel_ns + census_lost_expected_ns(s->census);
	if (expected_ns <= s->longest_ns)
		return false;
	census_lost_is_unknown(s->census, "it would be stopped for %.0f ms, more than --max-stop",
	                       (double)expected_ns / 1e6);
	return true;
}

int census_stop(struct census *c, uint64_t longest_ns, struct err *e)
{
	struct stopping s = { .census = c, .longest_ns = longest_ns };

	if (c->lost.why[0])
		return 0;
	s.libc = maps_find(&c->maps, c->heap.glibc.glibc.main_arena);
	int rc = watchdog_start(c->target->pid, e);
	rc = rc ?: kernel_pointers_find(&s.kernel, c->target, e);
	if (rc == 0 && !takes_too_long(&s))
		rc = try_moments(&s, e);
	if (is_only_unknown(rc)) {
		census_lost_is_unknown(c, "%s", e->text);
		rc = 0;
	}
	rc = rc ?: census_lost_count(c, e);
	kernel_pointers_free(&s.kernel);
	free(s.stop.words);
	free(s.stop.threads);
	return rc;
}
