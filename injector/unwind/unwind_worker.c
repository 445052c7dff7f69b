/* SPDX-License-Identifier: MIT */
#include "unwind/unwind_worker.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "host/clocks.h"
#include "host/watchdog.h"
#include "files/whole_io.h"
#include "sandbox/child.h"
#include "sandbox/rights.h"

#define THREADS_MAX 8u
#define STACK_BYTES (256u << 10)
#define LONGEST_NS 300000000000ull /* memory of the target that it waits for takes no CPU time */

/* What the child says about one job. */
struct outcome {
	_Atomic uint32_t
		done; /* all below is there: released last, because another thread may end the process at any moment */
	int32_t code; /* positive errno, 0: compiled */
	char text[120];
	uint64_t offset; /* of pc[count], then rule[count], in the file of results */
	uint32_t count;
	uint32_t fdes;
	uint32_t damaged;
	uint32_t by_section;
};

/* Shared with the child, which may write anything there. */
struct board {
	_Atomic uint64_t used; /* bytes of the file of results */
	_Atomic size_t next;   /* relaxed: jobs are independent, the end of the process publishes the results */
	struct outcome outcomes[];
};

struct worker {
	struct unwind_job *jobs;
	size_t count;
	int results; /* a memfd that can neither grow nor shrink */
	struct board *board;
	size_t board_bytes;
	pid_t child;
	unsigned threads;
};

/* ---- in the child ---- */

static int write_rows(const struct worker *w, const struct unwind_rows *rows, struct outcome *o)
{
	const uint64_t half = rows->count * sizeof(uint32_t);

	o->offset = atomic_fetch_add_explicit(&w->board->used, 2 * half, memory_order_relaxed);
	if (o->offset > UNWIND_WORKER_BYTES || 2 * half > UNWIND_WORKER_BYTES - o->offset)
		return -ENOSPC;
	return whole_io_pwrite(w->results, rows->pc, half, o->offset) &&
	                       whole_io_pwrite(w->results, rows->rule, half, o->offset + half)
	               ? 0
	               : -EIO;
}

static void compile(const struct worker *w, size_t i)
{
	struct unwind_job *job = &w->jobs[i];
	struct outcome *o = &w->board->outcomes[i];
	struct unwind_rows rows = { 0 };
	struct err e = { 0 };
	int rc = unwind_input_compile(&rows, &job->input, &e);

	if (rc == 0 && write_rows(w, &rows, o) < 0)
		rc = err_set(&e, ENOSPC, "its unwind table is too large");
	o->code = -rc;
	snprintf(o->text, sizeof o->text, "%.119s", e.text);
	o->count = rows.count;
	o->fdes = rows.fdes;
	o->damaged = rows.damaged;
	o->by_section = job->input.by_section;
	atomic_store_explicit(&o->done, 1, memory_order_release);
	unwind_rows_done(&rows);
}

static void *work(void *argument)
{
	const struct worker *w = argument;

	for (;;) {
		size_t i = atomic_fetch_add_explicit(&w->board->next, 1, memory_order_relaxed);
		if (i >= w->count)
			return NULL;
		compile(w, i);
	}
}

/* The first thread works too, so it goes on if no other can be created. */
static void run_threads(struct worker *w)
{
	pthread_t threads[THREADS_MAX];
	pthread_attr_t attributes;
	unsigned started = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	while (started + 1 < w->threads && started + 1 < w->count &&
	       !pthread_create(&threads[started], &attributes, work, w))
		started++;
	work(w);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

static _Noreturn void be_child(struct worker *w)
{
	int *keep = calloc(w->count + 2, sizeof *keep);
	struct target_memory memory = *w->jobs[0].file.tm;
	size_t kept = 0;

	if (!keep)
		_exit(1);
	keep[kept++] = w->results;
	if (memory.mem_fd >= 0)
		keep[kept++] = memory.mem_fd;
	memory.budget = NULL; /* it is not for several threads, and this process has limits of its own */
	for (size_t i = 0; i < w->count; i++) {
		w->jobs[i].file.tm = &memory;
		if (w->jobs[i].file.fd >= 0)
			keep[kept++] = w->jobs[i].file.fd;
	}
	rights_drop_to_compute(keep, kept, UNWIND_WORKER_BYTES, UNWIND_WORKER_SECONDS);
	run_threads(w);
	_exit(0);
}

/* ---- in memattach ---- */

static int prepare(struct worker *w, struct err *e)
{
	AUTO_CLOSE int fd = memfd_create("memattach-rows", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	w->board_bytes = sizeof *w->board + w->count * sizeof w->board->outcomes[0];
	if (fd < 0 || ftruncate(fd, (off_t)UNWIND_WORKER_BYTES) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return err_sys(e, "cannot prepare the memory file of rows");
	w->board = mmap(NULL, w->board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w->board == MAP_FAILED) {
		w->board = NULL;
		return err_sys(e, "cannot share memory with a child");
	}
	long cpus = sysconf(_SC_NPROCESSORS_ONLN); /* asked here: the child opens no files */
	w->threads = cpus < 1 ? 1 : cpus > (long)THREADS_MAX ? THREADS_MAX : (unsigned)cpus;
	w->results = cleanup_steal_fd(&fd);
	return 0;
}

static bool may_go_on(void *context)
{
	const uint64_t *deadline_ns = context;

	return !watchdog_asked() && clock_monotonic_ns() < *deadline_ns;
}

static int wait_for_child(const struct worker *w, struct err *e)
{
	uint64_t deadline_ns = clock_monotonic_ns() + LONGEST_NS;
	int status = child_await(w->child, may_go_on, &deadline_ns, NULL);

	if (status < 0)
		return err_set(e, ETIMEDOUT, "the process that compiled its unwind table does not end");
	if (WIFSIGNALED(status))
		return err_set(e, ECANCELED, "the process that compiled its unwind table was ended by signal %d",
		               WTERMSIG(status));
	return WEXITSTATUS(status)
	               ? err_set(e, ECANCELED, "the process that compiled its unwind table ended with status %d",
	                         WEXITSTATUS(status))
	               : 0;
}

static uint32_t *read_words(const struct worker *w, uint64_t offset, uint32_t count)
{
	AUTO_FREE uint32_t *words = reallocarray(NULL, count, sizeof *words);

	return words && whole_io_pread(w->results, words, count * sizeof *words, offset) ? cleanup_steal_pointer(&words)
	                                                                                 : NULL;
}

/* What the child has written about one job: copied, then checked; it may still be there (child.h). *e is why it ended,
 * if not by itself. */
static int take_outcome(const struct worker *w, size_t i, struct err *e)
{
	struct unwind_job *job = &w->jobs[i];
	struct outcome o = w->board->outcomes[i];
	const struct elf_module *m = job->file.module;

	if (!o.done)
		return e->code ? -e->code : err_set(e, ECANCELED, "its unwind table was not compiled");
	if (o.code) {
		o.text[sizeof o.text - 1] = 0;
		return err_set(e, o.code > 0 && o.code < 4096 ? o.code : EPROTO, "%s", o.text);
	}
	job->input.by_section = o.by_section;
	if (o.count == 0)
		return 0;
	if (o.offset > UNWIND_WORKER_BYTES || o.count > (UNWIND_WORKER_BYTES - o.offset) / (2 * sizeof(uint32_t)))
		return err_set(e, EPROTO, "its unwind table makes no sense");
	struct unwind_rows rows = { .count = o.count, .capacity = o.count, .fdes = o.fdes, .damaged = o.damaged };
	rows.pc = read_words(w, o.offset, o.count);
	rows.rule = read_words(w, o.offset + o.count * sizeof(uint32_t), o.count);
	if (!rows.pc || !rows.rule || !unwind_rows_sound(&rows, m->exec_end - m->exec_start)) {
		unwind_rows_done(&rows);
		return err_set(e, EPROTO, "its unwind table makes no sense");
	}
	job->rows = rows;
	return 0;
}

static int run(struct worker *w, struct err *e)
{
	int rc = prepare(w, e);

	if (rc < 0)
		return rc;
	w->child = child_start(SIGKILL);
	if (w->child < 0)
		return err_sys(e, "cannot start a process that compiles unwind tables");
	if (w->child == 0)
		be_child(w);
	return wait_for_child(w, e);
}

void unwind_worker_run(struct unwind_job *jobs, size_t count)
{
	struct worker w = { .jobs = jobs, .count = count, .results = -1 };
	struct err e = { 0 };
	int rc = run(&w, &e);

	for (size_t i = 0; i < count; i++) {
		jobs[i].error = e;
		jobs[i].result = w.child > 0 ? take_outcome(&w, i, &jobs[i].error) : rc;
	}
	if (w.board)
		munmap(w.board, w.board_bytes);
	if (w.results >= 0)
		close(w.results);
}
