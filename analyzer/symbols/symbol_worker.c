/* SPDX-License-Identifier: MIT */
#include "symbols/symbol_worker.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/child.h"
#include "symbols/symbol_reader.h"

void symbol_worker_init(struct symbol_worker *w, const struct jail_files *files)
{
	*w = (struct symbol_worker){ .fd = -1, .files = files };
}

static void end_process(struct symbol_worker *w)
{
	if (w->fd < 0)
		return;
	close(w->fd);
	w->fd = -1;
	child_end(w->pid);
}

void symbol_worker_done(struct symbol_worker *w)
{
	end_process(w);
	if (w->doing)
		munmap(w->doing, sizeof *w->doing);
	w->doing = NULL;
}

/* The other process: says whether it is in the jail, then answers. */
static _Noreturn void live(int fd, const struct jail_files *files, _Atomic unsigned *doing)
{
	struct wire hello = { 0 };
	struct err e = { 0 };
	unsetenv("DEBUGINFOD_URLS"); /* libdwfl would ask servers by itself */
	int r = jail_enter(fd, files, &e);

	wire_put_string(&hello, r ? e.text : NULL);
	if (wire_send(JAIL_DESCRIPTOR, &hello) && !r)
		symbol_reader_run(JAIL_DESCRIPTOR, doing);
	_exit(0);
}

static bool share_page(struct symbol_worker *w)
{
	if (w->doing)
		return true;
	void *page = mmap(NULL, sizeof *w->doing, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return false;
	w->doing = page;
	return true;
}

static int start(struct symbol_worker *w)
{
	const struct timeval silence = { .tv_sec = WORKER_SILENCE_SECONDS };
	struct wire hello = { 0 };
	int pair[2];

	if (!share_page(w) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_sys(&w->error, "no process to read symbols in");
	atomic_store_explicit(w->doing, 0, memory_order_relaxed);
	w->pid = child_start(SIGKILL);
	if (!w->pid)
		live(pair[1], w->files, w->doing);
	close(pair[1]);
	w->fd = pair[0];
	setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence); /* in the middle of an answer */
	if (w->pid < 0) {
		close(w->fd);
		w->fd = -1;
		return err_sys(&w->error, "no process to read symbols in");
	}
	bool heard = symbol_worker_answer(w, &hello);
	const char *refusal = heard ? wire_take_string(&hello) : "it ended at once";
	int r = refusal ? err_set(&w->error, ECHILD, "no process to read symbols in: %.400s", refusal) : 0;
	wire_done(&hello);
	if (r)
		end_process(w);
	return r;
}

bool symbol_worker_start(struct symbol_worker *w)
{
	if (w->fd >= 0)
		return true;
	if (w->error.text[0])
		return false;
	if (w->starts == WORKER_STARTS_MAX)
		return err_set(&w->error, ECHILD, "reading symbols has failed too often"), false;
	w->starts++;
	return !start(w);
}

static double cpu_seconds(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Its CPU time ends by itself, but it may wait for ever for a file system that somebody else serves. */
static bool wait_for_answer(const struct symbol_worker *w)
{
	struct pollfd poll_fd = { .fd = w->fd, .events = POLLIN };
	double before = -1;

	for (;;) {
		int n = poll(&poll_fd, 1, WORKER_SILENCE_SECONDS * 1000 / 2);
		if (n > 0)
			return true;
		double now = cpu_seconds(w->pid);
		if ((n < 0 && errno != EINTR) || (n == 0 && before >= 0 && now - before < 1))
			return false;
		before = n == 0 ? now : before;
	}
}

bool symbol_worker_ask(struct symbol_worker *w, const struct wire *question)
{
	if (w->fd >= 0 && wire_send(w->fd, question))
		return true;
	end_process(w);
	return false;
}

bool symbol_worker_answer(struct symbol_worker *w, struct wire *answer)
{
	if (w->fd >= 0 && wait_for_answer(w) && wire_receive(w->fd, answer))
		return true;
	end_process(w);
	return false;
}
