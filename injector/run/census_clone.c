/* SPDX-License-Identifier: MIT */
#include "run/census_clone.h"

#include "base/cleanup.h"
#include "census/census_lost.h"
#include "census/reach/apart_words.h"
#include "host/clocks.h"
#include "host/watchdog.h"
#include "process/clone_vm.h"
#include "process/live_thread.h"
#include "process/clones/our_clone.h"
#include "run/clone_collect.h"
#include "run/steps/inspect.h"
#include "run/steps/old_stub.h"
#include "session/session_lock.h"
#include "touch/patches/loan.h"
#include "touch/remote/memory_clone.h"

#define ATTEMPTS 20u
#define CLONES 3u /* each of them is a whole stop */
#define PAUSE_NS 2000000
#define STOP_NS 4000000ull        /* for the threads */
#define APART_GIB_NS 400000000ull /* to read a GiB */
#define SLEEPS_NS 2000000000ull   /* for a clone to begin to */
#define SLEEPS_PAUSE_NS 50000u
#define LOOK_EVERY_NS 50000000ull

struct cloning {
	struct census *census;
	struct stop_words *words;
	struct session session;
	struct clone_prospect prospect;
	struct maps maps; /* of the process, when it stood still */
	uint64_t longest_ns;
	bool borrowed, made;
	pid_t inner;        /* the number of the clone for the process; 0: not known */
	uint64_t looked_ns; /* the last time that it was asked whether to go on */
	struct err refused; /* why not */
};

/* All threads stand still, but for the borrowed one, which is in the stub. */
static int while_stopped(struct cloning *x, struct loan *l, struct err *e)
{
	struct reach_stop *stop = &x->words->stop;
	const struct target *t = &x->session.target;
	const struct apart_words apart = { .reach = &x->census->reach,
		                           .target = t,
		                           .maps = &x->maps,
		                           .prospect = &x->prospect,
		                           .until_ns = l->others.since_ns + x->longest_ns };

	int rc = stop_words_read(x->words, &l->others, l->remote, e);
	if (rc == 0 && reach_is_locked(&x->census->reach))
		rc = err_set(e, EAGAIN, "a thread is in malloc");
	maps_free(&x->maps);
	rc = rc ?: live_thread_maps(t, &x->maps, e);
	rc = rc ?: apart_words_add_new(&x->prospect, &x->census->maps, &x->maps, e);
	rc = rc ?: apart_words_read(&apart, &stop->words, &stop->word_count, e);
	rc = rc ?: watchdog_check(e);
	if (rc < 0)
		return rc;
	x->made = true;
	rc = memory_clone_make(l->remote, &x->inner, l->deadline_ns, e);
	x->made = rc != -ENOTSUP;
	return rc;
}

/* Who shares its memory does not stand still, or keeps a thread from it. */
static int check_alone(const struct target *t, struct err *e)
{
	AUTO_FREE pid_t *sharers = NULL;
	size_t count = 0;

	int rc = clone_vm_find(t, &sharers, &count, e);
	return rc == 0 && count ? err_set(e, EAGAIN, "process %d runs in its memory", sharers[0]) : rc;
}

static int make(struct loan *l, void *context, struct err *e)
{
	struct cloning *x = context;
	const struct target *t = &x->session.target;

	x->borrowed = true;
	int rc = stop_words_check(x->words, &l->remote->saved, l->thread->tid, e);
	rc = rc ?: check_alone(t, e);
	rc = rc ?: stop_all_others(&l->others, t, l->thread->tid, false, &x->census->lost.stopped_ns, e);
	return rc ?: while_stopped(x, l, e);
}

static int find_sleeping(const struct target *t, pid_t inner, pid_t *pid, struct err *e)
{
	const uint64_t deadline_ns = clock_monotonic_ns() + SLEEPS_NS;

	do {
		struct our_clones clones = { 0 };
		int rc = our_clones_find(t, OUR_CLONE_NAMED, &clones, e);
		if (rc < 0)
			return rc;
		for (size_t i = 0; i < clones.count; i++)
			if (clones.list[i].sleeps && (!inner || clones.list[i].inner == inner))
				*pid = clones.list[i].pid;
		free(clones.list);
		if (*pid)
			return 0;
		clock_pause(SLEEPS_PAUSE_NS);
	} while (clock_monotonic_ns() < deadline_ns);
	return err_set(e, EAGAIN, "its clone was not found");
}

static bool goes_on(void *context)
{
	struct cloning *x = context;
	const struct target *t = &x->session.target;
	const uint64_t now_ns = clock_monotonic_ns();

	if (x->refused.text[0] || now_ns - x->looked_ns < LOOK_EVERY_NS)
		return !x->refused.text[0];
	x->looked_ns = now_ns;
	if (watchdog_check(&x->refused) < 0)
		return false;
	if (target_has_ended(t))
		(void)!err_set(&x->refused, ESRCH, "it has ended");
	else if (!clone_prospect_has_room(&x->prospect, t))
		(void)!err_set(&x->refused, ENOMEM, "too little memory was left for what it writes meanwhile");
	return !x->refused.text[0];
}

/* What its children have as zeros, since it was asked for, is read from itself the next time. */
static int check_wiped(struct cloning *x, const struct target *clone, struct err *e)
{
	bool added;

	int rc = clone_prospect_add_wiped(&x->prospect, clone, &added, e);
	return rc == 0 && added ? err_set(e, EAGAIN, "it keeps new memory from its children (MADV_WIPEONFORK)") : rc;
}

/* It is held by this thread. -ESRCH: it was ended meanwhile. */
static int settle(struct cloning *x, pid_t pid, struct err *e)
{
	struct target clone = { .pidfd = -1 };
	struct target_memory memory = { .mem_fd = -1 };
	const struct census_clone view = { .target = &clone,
		                           .memory = &memory,
		                           .prospect = &x->prospect,
		                           .maps = &x->maps,
		                           .goes_on = goes_on,
		                           .context = x };

	int rc = target_open(&clone, pid, e);
	if (rc < 0)
		return rc;
	rc = target_memory_open(&memory, pid, e);
	/* process_vm_readv pins pages, and for that the kernel copies each that two processes have. */
	memory.pid = 0;
	rc = rc ?: check_wiped(x, &clone, e);
	rc = rc ?: census_lost_settle_in_clone(x->census, &x->words->stop, &view, e);
	if (rc == -ETIME && x->refused.text[0]) {
		*e = x->refused;
		rc = e->code == EINTR ? -EINTR : -ETIME;
	}
	if (rc == -EFAULT && target_has_ended(&clone))
		rc = -ESRCH;
	target_memory_close(&memory);
	target_close(&clone);
	return rc;
}

static int read_clone(struct cloning *x, struct err *e)
{
	pid_t pid = 0;

	int rc = find_sleeping(&x->session.target, x->inner, &pid, e);
	if (rc < 0)
		return rc;
	rc = memory_clone_hold(&x->session.target, pid, e);
	const bool held = rc == 0;
	if (rc == -EPERM) /* a security module, say */
		rc = -ENOTSUP;
	rc = rc ?: settle(x, pid, e);
	if (rc == -ESRCH) /* of the clone: the process may live */
		rc = err_set(e, EFAULT, "its clone was ended while it was read");
	/* At once, and also one that could not be held. */
	if (!held || memory_clone_end(pid, ERR_IGNORED) < 0)
		our_clones_end(&x->session.target, x->inner);
	return rc;
}

static int attempt(struct cloning *x, bool *left, struct err *e)
{
	struct session *s = &x->session;
	struct borrower borrower;
	struct err second;
	unsigned collected;

	x->borrowed = x->made = false;
	x->inner = 0;
	session_borrower(s, &borrower, 0, &x->census->lost.stopped_ns);
	int rc = loan_run(s, &borrower, make, x, e);
	if (!x->made) /* where none may be borrowed all may yet be stopped */
		return rc == -ETIMEDOUT && !x->borrowed ? -ENOTSUP : rc;
	rc = rc ?: read_clone(x, e);
	*left = true;
	if ((x->inner ? clone_collect(s, x->inner, &collected, &second)
	              : clone_collect_of_dead(s, &collected, &second)) == 0)
		*left = false;
	else if (target_alive(&s->target))
		session_say(s,
		            "memattach: the clone of %d is a zombie yet, and a process of memattach goes on to collect "
		            "it: %s",
		            s->target.pid, second.text);
	return *left && rc == -EAGAIN ? -ETIME : rc;
}

static int try_moments(struct cloning *x, bool *left, struct err *e)
{
	unsigned clones = 0;
	int rc = -EAGAIN;

	for (unsigned i = 0; i < ATTEMPTS && clones < CLONES && (rc == -EAGAIN || rc == -EBUSY); i++) {
		if (watchdog_check(e) < 0)
			return -EINTR;
		if (i)
			clock_pause(PAUSE_NS);
		rc = attempt(x, left, e);
		clones += x->made;
	}
	return rc;
}

/* One memattach at a time acts on it: with the lock. */
static int prepare(struct cloning *x, struct err *e)
{
	struct session *s = &x->session;
	unsigned collected;
	pid_t holder;

	int rc = clone_prospect_look(&x->prospect, x->census->target, s->options.clone, e);
	rc = rc ?: inspect_open(s, e);
	rc = rc ?: session_lock_take(&s->target, &holder, e);
	rc = rc ?: inspect_session(s, e);
	rc = rc ?: old_stub_settle(s, e);
	rc = rc ?: clone_collect_of_dead(s, &collected, e); /* of another memattach that died */
	rc = rc ?: inspect_choose(s, e);
	if (rc == 0)
		s->view.points.takes_no_locks = true; /* no function of the process is called */
	return rc == 0 || rc == -ENOMEM || rc == -EINTR ? rc : -ENOTSUP;
}

/* Expected ones are refused as they would be if it was frozen. */
static bool takes_too_long(struct cloning *x)
{
	const double gib = 1ull << 30;
	const uint64_t expected_ns =
		STOP_NS + stop_words_kernel_ns(x->words) + clone_prospect_expected_ns(&x->prospect) +
		(uint64_t)((double)apart_words_bytes(&x->census->reach, &x->prospect) / gib * APART_GIB_NS);

	if (expected_ns <= x->longest_ns)
		return false;
	census_lost_is_unknown(x->census, "it would be stopped for %.0f ms, more than --max-stop",
	                       (double)expected_ns / 1e6);
	return true;
}

int census_clone(struct census *c, struct stop_words *words, const struct session_options *o, uint64_t longest_ns,
                 bool *left, struct err *e)
{
	struct cloning x = { .census = c, .words = words, .longest_ns = longest_ns };

	session_init(&x.session, o);
	x.session.detaching = true;
	*left = false;
	int rc = prepare(&x, e);
	if (rc == 0 && !takes_too_long(&x))
		rc = try_moments(&x, left, e);
	session_done(&x.session);
	clone_prospect_free(&x.prospect);
	maps_free(&x.maps);
	return rc;
}
