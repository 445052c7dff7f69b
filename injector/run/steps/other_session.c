/* SPDX-License-Identifier: MIT */
#include "run/steps/other_session.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run/steps/detach.h"
#include "run/steps/inspect.h"
#include "session/payload_place.h"
#include "session/session_lock.h"
#include "touch/patches/target_dump.h"
#include "host/watchdog.h"

#define WAIT_NS 300000000000ull /* it may look for a safe point, and then write a large dump */
/* A holder that nobody sees: a killed memattach that has not had its last turn on a processor yet, or one in another
 * PID namespace. */
#define UNSEEN_NS 10000000000ull
#define SAID_AFTER_NS 3000000000ull
#define AGAIN_MS 50
#define AGAIN_NS (AGAIN_MS * 1000000)

bool other_session_is_inherited(const struct session *s)
{
	return target_dump_is_of_another(&(struct target_dump){ &s->payload.block, &s->view.maps, &s->memory },
	                                 s->target.start_ticks);
}

int other_session_make_way(struct session *s, struct err *e)
{
	if (!s->payload.base)
		return 0;
	session_say(s,
	            other_session_is_inherited(s) ? "taking out what %d inherited from the process that it was forked "
	                                            "from, which was profiled then"
	                                          : "taking out what a memattach that died left in %d",
	            s->target.pid);
	int rc = inspect_choose(s, e);
	rc = rc ?: detach_session(s, e);
	s->maps_payload = s->options.loader == LOADER_OWN; /* the other one may have been mapped */
	rc = rc ?: inspect_session_again(s, e);
	if (rc == 0) {
		unwind_tables_close(&s->recording.tables); /* those of the session may have to be smaller */
		rc = payload_place_find(s, e);
	}
	s->outcome.detach_longest_ns = 0;
	return rc;
}

/* Two kinds of memattach have something to do with a process, each with its lock. */
struct kind {
	pid_t (*holder)(const struct target *t);
	bool (*is_memattach)(const struct target *t, pid_t holder);
};

static const struct kind in_session = { session_lock_holder, session_lock_is_memattach },
			 waiting = { session_lock_announced, session_lock_is_announced_by_memattach };

/*
 * A process that is no memattach with the lock, at the moment of the signal, gets none. The signal says by SI_QUEUE
 * that no user sent it: a memattach that is at its end already has nothing more to do then, and must not give up its
 * last copy (session_file.c).
 */
static int tell_to_end(const struct session *s, const struct kind *kind, pid_t holder, int pidfd, struct err *e)
{
	char who[SESSION_LOCK_TEXT];
	siginfo_t info = { .si_signo = SIGTERM, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_uid = getuid();
	if (kind->holder(&s->target) != holder)
		return 0; /* it has just ended */
	session_lock_describe(holder, who);
	const bool known = kind->is_memattach(&s->target, holder);
	if (!known && (session_lock_is_ending(holder) || kind->holder(&s->target) != holder))
		return 0; /* it ends now */
	if (!known)
		return err_set(e, EBUSY,
		               "%s has the lock of the process, and cannot be shown to be a memattach: end it yourself",
		               who);
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, &info, 0) < 0)
		return err_sys(e, "cannot tell memattach, PID %d, to end", holder);
	return 0;
}

static void told_to_end(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code == SI_QUEUE)
		return;
	signal(number, SIG_DFL);
	raise(number);
}

void other_session_outlive_detach(void)
{
	const struct sigaction action = { .sa_sigaction = told_to_end, .sa_flags = SA_SIGINFO | SA_RESTART };

	sigaction(SIGTERM, &action, NULL);
}

/* Until it has ended, or somebody else has the lock. */
static int await_end(const struct session *s, const struct kind *kind, pid_t holder, int pidfd, uint64_t deadline_ns,
                     struct err *e)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	uint64_t said_ns = clock_monotonic_ns() + SAID_AFTER_NS;
	char who[SESSION_LOCK_TEXT];
	int rc = 0;

	session_lock_describe(holder, who);
	while (rc == 0 && kind->holder(&s->target) == holder && poll(&end, 1, AGAIN_MS) <= 0) {
		uint64_t now = clock_monotonic_ns();
		rc = watchdog_check(e);
		if (rc == 0 && now >= deadline_ns)
			rc = err_set(e, ETIMEDOUT, "memattach, %s, did not end within %llu s", who,
			             WAIT_NS / 1000000000u);
		if (now >= said_ns) {
			session_say(s, "waiting for memattach, %s, which detaches or writes its dump", who);
			said_ns = UINT64_MAX;
		}
	}
	return rc;
}

/* One that has just ended, or has just handed on the lock, is not looked for again and again without a pause or an end.
 */
static int end_holder(const struct session *s, const struct kind *kind, pid_t holder, uint64_t deadline_ns,
                      struct err *e)
{
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, holder, 0);
	int rc = 0;

	if (clock_monotonic_ns() >= deadline_ns)
		return err_set(e, ETIMEDOUT, "others have had the lock of the process for %llu s, PID %d the last",
		               WAIT_NS / 1000000000u, holder);
	if (pidfd >= 0)
		rc = tell_to_end(s, kind, holder, pidfd, e);
	if (pidfd >= 0 && rc == 0)
		rc = await_end(s, kind, holder, pidfd, deadline_ns, e);
	if (rc == 0 && pidfd < 0)
		clock_pause(AGAIN_NS);
	return rc;
}

int other_session_lock(struct session *s, bool *ended, struct err *e)
{
	const uint64_t start_ns = clock_monotonic_ns(), deadline_ns = start_ns + WAIT_NS;
	pid_t holder;

	*ended = false;
	for (;;) {
		int rc = session_lock_take(&s->target, &holder, e);
		if (rc == -EBUSY && !holder && clock_monotonic_ns() < start_ns + UNSEEN_NS)
			continue;
		if (rc != -EBUSY || !holder)
			return rc;
		rc = end_holder(s, &in_session, holder, deadline_ns, e);
		if (rc < 0)
			return rc;
		*ended = true;
	}
}

int other_session_end_waiting(const struct session *s, bool *ended, struct err *e)
{
	uint64_t deadline_ns = clock_monotonic_ns() + WAIT_NS;
	int rc = 0;

	*ended = false;
	for (pid_t holder; rc == 0 && (holder = waiting.holder(&s->target)) != 0;) {
		rc = end_holder(s, &waiting, holder, deadline_ns, e);
		if (rc < 0)
			break;
		*ended = true;
		session_say(s, "memattach, PID %d, which waited to profile %d (--when or --every), has ended", holder,
		            s->target.pid);
	}
	return rc;
}
