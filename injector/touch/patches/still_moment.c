/* SPDX-License-Identifier: MIT */
#include "touch/patches/still_moment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arch/registers.h"
#include "base/cleanup.h"
#include "process/clone_vm.h"
#include "process/live_thread.h"
#include "touch/threads/let_go.h"
#include "touch/threads/stop_all.h"
#include "touch/threads/tracer.h"
#include "host/watchdog.h"

#define PAUSE_NS 1000000
#define STACK_BYTES (256u << 10) /* looked at above the stack pointer where the walk failed */

struct look {
	const struct session *s;
	uint64_t found; /* a displaced instruction to which some thread would return, 0 none */
};

static bool is_displaced(const struct session *s, uint64_t pc)
{
	for (size_t i = 0; i < s->hooks.count; i++) {
		const struct entry_code_plan *p = &s->hooks.list[i].plan;
		if (pc > p->write_at && pc < p->write_at + p->displaced_bytes)
			return true;
	}
	return false;
}

static bool look_at_frame(void *context, unsigned frame, uint64_t pc, uint64_t sp)
{
	struct look *l = context;

	(void)frame, (void)sp;
	if (is_displaced(l->s, pc))
		l->found = pc;
	return !l->found;
}

/*
 * True: all words from the stack pointer to the end of the mapping were looked at, none of them is an address of a
 * displaced instruction, and no signal handler runs, which could have come from another stack. Most threads are
 * cleared so: to walk the stacks of a thousand takes long, and all are stopped meanwhile.
 */
static bool words_clear(struct look *l, const struct maps *maps, uint64_t sp)
{
	const struct mapping *m = maps_find(maps, sp);
	uint64_t page[512], at = sp & ~7ull, behind[REGISTERS_BEHIND_PC] = { 0 }, stack_end = m ? m->end : UINT64_MAX;
	bool handler = false;

	for (uint64_t end = at + STACK_BYTES; at < end && !l->found;) {
		size_t bytes = 4096 - at % 4096;
		if (at >= stack_end || target_read(&l->s->memory, at, page, bytes, ERR_IGNORED) < 0)
			return m && !handler;
		for (size_t i = 0; i < bytes / sizeof page[0] && !l->found; i++) {
			behind[0] = behind[1];
			behind[1] = behind[2];
			behind[2] = page[i];
			handler |= registers_follow_pc(behind);
			if (is_displaced(l->s, page[i]))
				l->found = page[i];
		}
		at += bytes;
	}
	return false;
}

/* Would the thread go on in the middle of displaced instructions? */
static int look_at_thread(const struct session *s, const struct maps *maps, struct tracee *t, struct err *e)
{
	struct look look = { .s = s }, words = { .s = s };
	struct registers regs;
	struct stack_walk_end end;

	int rc = tracee_registers(t, &regs, e);
	if (rc < 0)
		return rc == -ESRCH ? 0 : rc;
	if (words_clear(&words, maps, registers_sp(&regs)) && !is_displaced(s, registers_pc(&regs)))
		return 0;
	stack_walk(s->view.points.walk, t, look_at_frame, &look, &end);
	if (!look.found && !stack_walk_complete(&end))
		look.found = words.found;
	return look.found ? err_set(e, EAGAIN, "thread %d is at the entry of an allocation function (0x%llx)", t->tid,
	                            (unsigned long long)look.found)
	                  : 0;
}

/* The same of one that was not stopped. */
static int look_at_sleeper(const struct session *s, const struct maps *maps, const struct sleeper *sleeper,
                           struct err *e)
{
	struct look look = { .s = s };
	struct stack_walk_end end;

	if (words_clear(&look, maps, sleeper->call.sp))
		return 0;
	look.found = 0;
	stack_walk_asleep(s->view.points.walk, sleeper->call.pc, sleeper->call.sp, look_at_frame, &look, &end);
	if (!look.found && stack_walk_complete(&end))
		return 0;
	return err_set(e, EAGAIN, "thread %d may be at the entry of an allocation function", sleeper->tid);
}

static int look_at_threads(const struct session *s, const struct stop_all *all, struct err *e)
{
	struct maps maps;

	/* As they are now. */
	int rc = live_thread_maps(&s->target, &maps, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < all->count && rc == 0; i++)
		rc = look_at_thread(s, &maps, &all->list[i], e);
	for (size_t i = 0; i < all->sleeper_count && rc == 0; i++)
		rc = look_at_sleeper(s, &maps, &all->sleepers[i], e);
	maps_free(&maps);
	return rc;
}

static bool displaces_several(const struct session *s)
{
	for (size_t i = 0; i < s->hooks.count; i++)
		if (s->hooks.list[i].plan.kind == ENTRY_SEVERAL)
			return true;
	return false;
}

static int sharer_runs(pid_t pid, struct err *e)
{
	return err_set(e, EAGAIN, "process %d, a child of vfork or clone, runs in its memory", pid);
}

static int check_sharers(const struct session *s, struct err *e)
{
	AUTO_FREE pid_t *others = NULL;
	size_t count = 0;

	int rc = clone_vm_find(&s->target, &others, &count, e);
	return rc < 0 || count == 0 ? rc : sharer_runs(others[0], e);
}

int still_moment_foresee(const struct session *s, uint64_t deadline_ns, struct err *e)
{
	struct err why;
	int rc = 0;

	if (!s->hooks.count)
		return 0;
	while ((rc = check_sharers(s, &why)) == -EAGAIN) {
		rc = watchdog_check(e);
		if (rc < 0)
			return rc;
		if (clock_monotonic_ns() >= deadline_ns)
			return err_set(
				e, EBUSY,
				"there was no moment in which all threads could stand still: %s; nothing was changed",
				why.text);
		clock_pause(16 * PAUSE_NS);
	}
	return rc < 0 ? err_set(e, -rc, "%s; nothing was changed", why.text) : 0;
}

/* The newest process or thread of all, as far as we see them; no new one: no process came to share the memory. */
static int last_pid(void)
{
	char text[96] = "";
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, text, sizeof text - 1) < 0)
		text[0] = '\0';
	if (fd >= 0)
		close(fd);
	const char *last = strrchr(text, ' ');
	return last ? atoi(last + 1) : -1;
}

/* Is none there that was not stopped? */
static int check_newcomers(const struct session *s, const struct stop_all_sharers *known, struct err *e)
{
	struct stop_all_sharers now = { 0 };

	int rc = clone_vm_find(&s->target, &now.list, &now.count, e);
	for (size_t i = 0; i < now.count && rc == 0; i++) {
		bool is_known = false;
		for (size_t k = 0; k < known->count && !is_known; k++)
			is_known = known->list[k] == now.list[i];
		if (!is_known)
			rc = sharer_runs(now.list[i], e);
	}
	free(now.list);
	return rc;
}

struct attempt {
	struct session *s;
	enum still_for what;
	uint64_t *longest_ns;
	still_moment_fn change;
	void *context;
	struct err *e;
};

/* Makes the change while all stand still, none of them in displaced instructions. -EAGAIN: not now. */
static int attempt(void *context)
{
	const struct attempt *a = context;
	struct session *s = a->s;
	struct err *e = a->e;
	struct stop_all_sharers sharers = { 0 };
	struct stop_all all;

	const int last = last_pid();
	int rc = clone_vm_find(&s->target, &sharers.list, &sharers.count, e);
	if (rc == 0 && sharers.count && a->what == STILL_FOR_CODE)
		rc = sharer_runs(sharers.list[0], e);
	rc = rc ?: stop_all(&all, &s->target, &sharers, a->longest_ns, e);
	if (rc == 0) {
		if (last < 0 || last_pid() != last)
			rc = check_newcomers(s, &sharers, e);
		if (rc == 0 && a->what == STILL_FOR_CODE && displaces_several(s))
			rc = look_at_threads(s, &all, e);
		rc = rc ?: stop_all_asleep(&all, e);
		rc = rc ?: a->change(s, a->context, e);
		stop_all_end(&all, a->longest_ns);
	}
	free(sharers.list);
	return rc;
}

/* One attempt, with a lease that lasts. */
static int try_once(struct attempt *a)
{
	if (a->what != STILL_FOR_END)
		dump_writer_renew(&a->s->recording.dump, SESSION_LEASE_NS);
	return tracer_run(attempt, a);
}

int still_moment(struct session *s, enum still_for what, uint64_t deadline_ns, uint64_t *longest_ns,
                 still_moment_fn change, void *context, struct err *e)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct err why;
	struct attempt one = { s, what, longest_ns, change, context, &why };
	int rc;

	while ((rc = try_once(&one)) == -EAGAIN) {
		if (watchdog_asked_twice())
			return err_set(e, EINTR, "interrupted twice before all threads stood still: %s", why.text);
		if (clock_monotonic_ns() >= deadline_ns)
			return err_set(e, EBUSY, "there was no moment in which all threads could stand still: %s",
			               why.text);
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 64 * PAUSE_NS)
			pause.tv_nsec *= 2; /* each attempt stops the program */
		let_go_look();
	}
	if (rc < 0)
		*e = why;
	return rc;
}
