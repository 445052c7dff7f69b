/* SPDX-License-Identifier: MIT */
#include "symbol_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "clocks.h"
#include "close_all_but.h"
#include "dump_symbols.h"
#include "memory_room.h"
#include "privileges.h"
#include "whole_io.h"

#define LOOK_MS 100
#define GONE_MS 1000
#define FIRST_MOVED 32 /* descriptors of the child from here on, but for the first four */
#define FILES_TEXT (SYMBOL_FILES_MAX * 24u)

enum { NOT_EXECUTED = 127, NOT_DROPPED = 126, NO_DUMP = 125 };

/* ---- in the child ---- */

struct descriptors {
	int list[SYMBOL_FILES_MAX + 8]; /* ascending: each is moved to the lowest number that is free */
	size_t count;
};

/* Numbers that do not collide with the first four, and are inherited. 0: there is none. */
static int move(struct descriptors *d, int fd)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD, FIRST_MOVED);

	if (moved < 0)
		return 0;
	d->list[d->count++] = moved;
	return moved;
}

static void move_files(struct descriptors *d, const struct symbol_sources *s, char text[FILES_TEXT])
{
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < s->file_count; i++) {
		int fd = move(d, s->files[i].fd);
		if (fd)
			used += (size_t)snprintf(text + used, FILES_TEXT - used, "%s%u:%d", used ? "," : "",
			                         s->files[i].id, fd);
	}
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The first four descriptors are as the request says, all others but the moved ones are closed. */
static bool put_in_place(struct descriptors *d, int dump, int null, int result)
{
	if (dup2(dump, SYMBOL_REQUEST_DUMP) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
	    dup2(result, SYMBOL_REQUEST_RESULT) < 0)
		return false;
	close(dump);
	close(null);
	close(result);
	for (int fd = 0; fd <= SYMBOL_REQUEST_RESULT; fd++)
		d->list[d->count++] = fd;
	qsort(d->list, d->count, sizeof *d->list, by_number);
	close_all_but(d->list, d->count);
	return true;
}

static void default_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void be_child(const struct symbol_sources *s, const struct dump_file *file, int result,
                               uint64_t max_bytes)
{
	const struct privileges_limits limits = { .data_bytes = SYMBOL_DATA_BYTES,
		                                  .file_bytes = SYMBOL_RESULT_BYTES,
		                                  .cpu_seconds = 2 * SYMBOL_END_SECONDS };
	static char files[FILES_TEXT];
	struct descriptors d = { .count = 0 };
	char root[16], perf[16], seconds[16], bytes[24];
	/* A sanitizer would trace the process at its end. */
	char *environment[] = { (char[]){ "ASAN_OPTIONS=detect_leaks=0" }, NULL };
	char *arguments[] = { (char[]){ "memanalyze" },
		              (char[]){ SYMBOL_REQUEST_OPTION },
		              (char[]){ SYMBOL_REQUEST_VERSION },
		              root,
		              perf,
		              seconds,
		              bytes,
		              files,
		              NULL };

	default_signals();
	setpgid(0, 0); /* Ctrl-C is for memattach, which then ends it */
	int dump = move(&d, dump_file_reopen(file, O_RDONLY)), null = move(&d, open("/dev/null", O_RDWR));
	int program = move(&d, s->program), moved_result = move(&d, result);
	if (!dump || !null || !program || !moved_result)
		_exit(NO_DUMP);
	fcntl(program, F_SETFD, FD_CLOEXEC);
	snprintf(root, sizeof root, "%d", move(&d, s->root));
	snprintf(perf, sizeof perf, "%d", move(&d, symbol_sources_perf_map(s)));
	snprintf(seconds, sizeof seconds, "%u", SYMBOL_SECONDS);
	snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)max_bytes);
	move_files(&d, s, files);
	if (!put_in_place(&d, dump, null, moved_result))
		_exit(NO_DUMP);
	if (privileges_drop_to(s->uid, s->gid, &limits))
		_exit(NOT_DROPPED);
	syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH);
	_exit(NOT_EXECUTED);
}

/* ---- in memattach ---- */

static int make_result(struct err *e)
{
	AUTO_CLOSE int fd = memfd_create("memattach-symbols", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, SYMBOL_RESULT_BYTES) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return err_sys(e, "no memory for them");
	return steal_fd(&fd);
}

static double part_done(int result)
{
	struct symbol_result r;

	if (!pread_all(result, &r, sizeof r, 0) || !r.total || r.done > r.total)
		return 0;
	return (double)r.done / (double)r.total;
}

static bool ends_within(int pidfd, int ms)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	return poll(&end, 1, ms) > 0;
}

static int explain(int status, struct err *e)
{
	if (WIFSIGNALED(status))
		return err_set(e, ECANCELED, "memanalyze, which looks for them, was ended by signal %d",
		               WTERMSIG(status));
	switch (WEXITSTATUS(status)) {
	case 0: return 0;
	case SYMBOL_REQUEST_UNKNOWN: return err_set(e, EPROTO, "the memanalyze beside memattach is of another version");
	case NOT_EXECUTED: return err_set(e, ENOEXEC, "the memanalyze beside memattach cannot be executed");
	case NOT_DROPPED: return err_set(e, EPERM, "the privileges for reading its files could not be given up");
	case NO_DUMP: return err_set(e, EIO, "the dump could not be opened again");
	default:
		return err_set(e, EPROTO, "memanalyze, which looks for them, ended with status %d",
		               WEXITSTATUS(status));
	}
}

/* One that hangs in the kernel, on a file system that stands still, is left to it: it dies when it comes back. */
static void end_child(pid_t child, int pidfd)
{
	kill(child, SIGKILL);
	ends_within(pidfd, GONE_MS);
	waitpid(child, NULL, WNOHANG);
}

/* Without a pidfd (Linux before 5.3) it is looked for ten times a second. */
static int await(pid_t child, int result, bool (*waiting)(void *context, double done), void *context, struct err *e)
{
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	uint64_t deadline_ns = monotonic_ns() + SYMBOL_END_SECONDS * 1000000000ull;
	int status;

	for (;;) {
		ends_within(pidfd, LOOK_MS);
		pid_t ended = waitpid(child, &status, WNOHANG);
		if (ended == child)
			return explain(status, e);
		if (ended < 0 && errno != EINTR)
			return err_sys(e, "memanalyze, which looks for them, is gone");
		bool goes_on = waiting(context, part_done(result));
		if (goes_on && monotonic_ns() <= deadline_ns)
			continue;
		end_child(child, pidfd);
		return goes_on ? err_set(e, ETIMEDOUT, "to look for them took longer than %u s", SYMBOL_END_SECONDS)
		               : err_set(e, EINTR, "looking for them was given up");
	}
}

static int take_result(int result, uint64_t max_bytes, struct dump_symbols **symbols, struct err *e)
{
	struct dump_symbols head;

	if (!pread_all(result, &head, sizeof head, SYMBOL_RESULT_AT) || head.bytes < sizeof head ||
	    head.bytes > max_bytes || head.bytes > DUMP_SYMBOLS_BYTES_MAX)
		return err_set(e, EPROTO, "what memanalyze has found makes no sense");
	AUTO_FREE struct dump_symbols *s = malloc(head.bytes);
	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	if (!pread_all(result, s, head.bytes, SYMBOL_RESULT_AT) || s->bytes != head.bytes ||
	    !dump_symbols_are_sound(s, head.bytes))
		return err_set(e, EPROTO, "what memanalyze has found makes no sense");
	*symbols = steal_pointer(&s);
	return 0;
}

int symbol_child_run(const struct symbol_sources *s, const struct dump_file *file, uint64_t max_bytes,
                     bool (*waiting)(void *context, double done), void *context, struct dump_symbols **symbols,
                     struct err *e)
{
	AUTO_CLOSE int result = make_result(e);

	if (result < 0)
		return result;
	if (s->program < 0)
		return err_set(e, ENOENT, "there is no memanalyze beside memattach");
	int room = memory_room_check(SYMBOL_ROOM_BYTES, e);
	if (room < 0)
		return room;
	pid_t child = fork();
	if (child == 0)
		be_child(s, file, result, max_bytes);
	if (child < 0)
		return err_sys(e, "no process can be made that looks for them");
	int rc = await(child, result, waiting, context, e);
	return rc < 0 ? rc : take_result(result, max_bytes, symbols, e);
}
