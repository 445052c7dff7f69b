/* SPDX-License-Identifier: MIT */
/*
 * Detach, for a session of this memattach or of one that died. All that is needed is in the target (struct
 * memattach_session). The order:
 *
 *   all threads stop: the jumps at entries of functions go; islands stay
 *   borrow a thread:  channel, CONTROL_RESTORE, CONTROL_INERT   no thread can enter the payload any more
 *   quiesce:          no thread is in it
 *   islands           go, where no thread is any more
 *   escape:           nor is a coroutine that is parked; may the trampolines go?
 *   borrow a thread:  madvise, if the dump is large; for each piece of it
 *   borrow a thread:  CONTROL_STOP, dlclose (load.h), munmap of the trampolines and detours, in one go
 *   verify:           maps, descriptors, GOT entries against the snapshot from before attach
 */
#include "detach.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "arch/registers.h"
#include "cleanup.h"
#include "code_patches.h"
#include "control_call.h"
#include "detours.h"
#include "escape.h"
#include "inspect.h"
#include "load.h"
#include "loan.h"
#include "other_session.h"
#include "payload_place.h"
#include "quiesce.h"
#include "restore_result.h"
#include "send_descriptors.h"
#include "session_entries.h"
#include "session_file.h"
#include "target_dump.h"
#include "task.h"
#include "tid_offset.h"
#include "watchdog.h"

#define QUIESCE_NS 10000000000ull /* a thread may wait long for its turn; none is stopped meanwhile */
#define CLEAR_NS 200000000ull     /* for one thread to stop, whose stack is swept */
#define PARKED_NS 2000000000ull   /* a coroutine may wait long in an allocator, but for nothing that ends soon */
#define COPY_NS 500000000ull      /* for an address on the stack of a thread that was born meanwhile */
#define COPY_PAUSE_NS 10000000u
#define LATE_NS 1000000000ull    /* for a thread that was given up to come to its stop */
#define DATA_CHANNEL 64u         /* in the data of the work area: its number, after what control_call_locked uses */
#define GLIBC_POINTER_GUARD 0x30 /* tcbhead_t.pointer_guard, which is part of the ABI between ld.so and libc */

static int begin(struct session *s, struct loan *l, struct err *e)
{
	struct borrower borrower;

	session_patient_borrower(s, &borrower, &s->outcome.detach_longest_ns);
	return loan_begin(l, s, &borrower, e);
}

/* *argument: of CONTROL_RESTORE. Without a channel (the program may have no descriptor left) each system call of the
 * thread stops it twice. */
static int open_channel(struct loan *l, uint64_t *argument, struct err *e)
{
	struct remote *r = &l->remote;
	uint64_t at = remote_data(r) + DATA_CHANNEL;

	*argument = 0;
	int rc = send_descriptors(r, l->s->target.pidfd, NULL, 0, NULL, l->deadline_ns, e);
	if (rc == -ETIMEDOUT || rc == -ESRCH)
		return rc;
	if (r->channel.here < 0)
		return 0;
	*argument = at;
	return target_write(&l->s->writer, at, &r->channel.there, sizeof(int32_t), e);
}

static int restore(struct session *s, struct err *e)
{
	struct loan l;
	uint64_t argument;

	int rc = session_mark_gone(s, e);
	if (rc == 0)
		rc = begin(s, &l, e);
	if (rc < 0)
		return rc;
	rc = open_channel(&l, &argument, e);
	if (rc == 0)
		rc = control_call_locked(s, &l.remote, CONTROL_RESTORE, argument, "restore the tables of the modules",
		                         l.deadline_ns, e);
	if (rc == 0)
		rc = control_call(s, &l.remote, CONTROL_INERT, 0, "switch off", l.deadline_ns, e);
	return loan_end(&l, rc, e);
}

struct outside {
	struct quiesce quiesce;
	struct quiesce_range detours[SESSION_DETOUR_AREAS + SESSION_CODE_PATCH_MAX];
};

static void describe_outside(struct session *s, struct outside *o)
{
	const struct memattach_session *b = &s->payload.block;
	struct detour_area areas[SESSION_DETOUR_AREAS];
	unsigned count = detours_list(s, areas);

	for (unsigned i = 0; i < count; i++)
		o->detours[i] = (struct quiesce_range){ areas[i].address, areas[i].address + areas[i].bytes };
	count += code_patches_islands(s, o->detours + count, SESSION_CODE_PATCH_MAX);
	o->quiesce = (struct quiesce){
		.target = &s->target,
		.memory = &s->memory,
		.walk = s->view.points.walk,
		.code = { s->payload.base, s->payload.code_end },
		.trampolines = { b->trampolines_address,
		                 b->trampolines_address ? b->trampolines_address + TRAMPOLINES_CODE_BYTES : 0 },
		.detours = o->detours,
		.detour_count = count,
		.longest_ns = &s->outcome.detach_longest_ns,
	};
}

static int prove_outside(struct session *s, struct quiesce_stacks *stacks, bool *trampolines_held, struct err *e)
{
	struct outside o;

	describe_outside(s, &o);
	o.quiesce.stacks = stacks;
	o.quiesce.trampolines_held = trampolines_held;
	return quiesce_wait(&o.quiesce, monotonic_ns() + QUIESCE_NS, e);
}

static int write_zero(void *context, uint64_t where)
{
	const struct session *s = context;
	const uint64_t zero = 0;
	struct err ignored;

	return target_write(&s->writer, where, &zero, sizeof zero, &ignored);
}

/* A thread that does not stop in time is waited for: it would stop later, and stay so while the search goes on. */
static int clear_words(void *context, struct stack_words *words)
{
	const struct quiesce_writer writer = { write_zero, context };
	struct outside o;
	struct err ignored;

	describe_outside(context, &o);
	int rc = quiesce_clear(&o.quiesce, words, monotonic_ns() + CLEAR_NS, &writer, &ignored);
	if (rc == -ETIMEDOUT)
		tracee_await_late(monotonic_ns() + LATE_NS);
	return rc;
}

/* Any thread: glibc keeps the pointer guard after its thread pointer, and its tid. */
static bool any_thread(struct session *s, struct tid_pair *thread)
{
	struct tracee t = { .longest_ns = &s->outcome.detach_longest_ns };
	const pid_t tid = task_alive(s->target.pid);
	struct user_regs_struct regs;
	enum tracee_stop stop;
	struct err ignored;

	if (tracee_seize(&t, s->target.pid, tid, false, &ignored) < 0)
		return false;
	bool got = tracee_interrupt(&t, monotonic_ns() + QUIESCE_NS, &stop, &ignored) == 0 &&
	           tracee_registers(&t, &regs, &ignored) == 0;
	tracee_detach(&t);
	if (got)
		*thread = (struct tid_pair){ registers_tp(&regs), task_inner_tid(s->target.pid, tid) };
	return got;
}

/* What only glibc's own words can tell. */
static void ask_glibc(struct session *s, struct escape *x)
{
	struct tid_pair thread;
	struct err ignored;

	if (s->view.libc.kind != LIBC_GLIBC || !any_thread(s, &thread))
		return;
	x->has_guard = target_read_u64(&s->memory, thread.thread_pointer + GLIBC_POINTER_GUARD, &x->guard, &ignored) ==
	               0;
	x->tid_offset = tid_offset_find(&s->memory, &thread, 1);
}

/* trampolines: whether copies of their addresses are looked for, and not only hooks. */
static int search_escaped(struct session *s, const struct quiesce_stacks *stacks, bool trampolines,
                          struct escape_result *result, struct err *e)
{
	const struct memattach_session *b = &s->payload.block;
	const uint64_t start = trampolines ? b->trampolines_address : 0;
	struct escape x = {
		.start = start ? start + TRAMPOLINE_FIRST * TRAMPOLINE_CODE_BYTES : 0,
		.end = start ? start + (uint64_t)b->trampoline_count * TRAMPOLINE_CODE_BYTES : 0,
		.skip_start = s->payload.base,
		.skip_end = s->payload.end,
		.stacks = stacks->list,
		.stack_count = stacks->count,
		.pid = s->target.pid,
		.clear = clear_words,
		.context = s,
	};
	struct page_scan pages;

	ask_glibc(s, &x);
	int rc = page_scan_open(&pages, &s->target, e);
	if (rc < 0)
		return rc;
	rc = escape_search(&x, &s->target, &s->memory, &pages, result, e);
	page_scan_close(&pages);
	return rc;
}

/* What of a session has to stay, in use. */
struct kept {
	bool trampolines;
	bool detours;
};

/*
 * CONTROL_STOP, dlclose and munmap of the trampolines are one list for the stub: they happen all or not at all, also if
 * memattach dies meanwhile. Otherwise trampolines without a payload would stay that nobody finds any more. And only a
 * session that was running has trampolines of ours at the address in its block: after CONTROL_STOP the program may have
 * mapped something of its own there.
 */
static int unload_calls(const struct session *s, const struct kept *kept, struct stub_call *calls, unsigned *call_count,
                        struct err *e)
{
	const struct memattach_session *b = &s->payload.block;
	struct detour_area areas[SESSION_DETOUR_AREAS];
	unsigned count = 0, area_count = b->state == SESSION_INERT && !kept->detours ? detours_list(s, areas) : 0;

	if (b->state == SESSION_INERT)
		calls[count++] = (struct stub_call){ .target = s->payload.control, .argument = { CONTROL_STOP } };
	int rc = session_unload_call(s, session_payload_handle(s), &calls[count++], e);
	if (b->state == SESSION_INERT && !kept->trampolines && b->trampolines_address)
		calls[count++] = (struct stub_call){ .target = SYS_munmap,
			                             .argument = { b->trampolines_address, b->trampolines_bytes } };
	for (unsigned i = 0; i < area_count; i++)
		calls[count++] =
			(struct stub_call){ .target = SYS_munmap, .argument = { areas[i].address, areas[i].bytes } };
	*call_count = count;
	return rc;
}

static int unload(struct session *s, const struct kept *kept, struct err *e)
{
	struct stub_call calls[3 + SESSION_DETOUR_AREAS] = { 0 };
	unsigned count;
	struct loan l;

	_Static_assert(3 + SESSION_DETOUR_AREAS <= SA_CALL_MAX, "calls");
	if (s->payload.block.state == SESSION_STARTED)
		return err_set(e, EBUSY, "the session has begun again meanwhile");
	int rc = unload_calls(s, kept, calls, &count, e);
	if (rc == 0)
		rc = begin(s, &l, e);
	if (rc < 0)
		return rc;
	rc = remote_call(&l.remote, calls, count, l.deadline_ns, e);
	return loan_end(&l, rc, e);
}

static int refresh(struct session *s, struct err *e)
{
	int rc = session_inspect_again(s, e);
	if (rc == 0)
		rc = session_find_payload(s, e);
	if (rc == 0)
		rc = session_choose(s, e);
	return rc;
}

static void say_trampolines_stay(struct session *s, const struct escape_result *escaped)
{
	const uint64_t found = escaped->found;
	const struct mapping *m = found ? maps_find(&s->view.maps, found) : NULL;
	char where[128] = "";

	if (found)
		snprintf(where, sizeof where, " (in memory at 0x%llx, %.60s)", (unsigned long long)found,
		         m && m->path[0] ? m->path : "anonymous");
	if (escaped->verdict == ESCAPE_UNPROVEN) {
		session_add_residue(
			s,
			"%llu bytes of inert trampolines at 0x%llx: not proven that no function pointer to them was "
			"copied: %s; they call the original functions",
			(unsigned long long)s->payload.block.trampolines_bytes,
			(unsigned long long)s->payload.block.trampolines_address, escaped->why);
		return;
	}
	session_add_residue(s,
	                    "%llu bytes of inert trampolines at 0x%llx: a copied function pointer%s leads there; they "
	                    "call the original "
	                    "functions",
	                    (unsigned long long)s->payload.block.trampolines_bytes,
	                    (unsigned long long)s->payload.block.trampolines_address, where);
}

static int restore_code(struct session *s, struct kept *kept, struct err *e)
{
	struct code_patches_result result;

	int rc = code_patches_restore(s, &result, e);
	if (rc < 0)
		return rc;
	s->outcome.functions_restored = result.restored;
	if (result.restored > s->outcome.functions_hooked)
		s->outcome.functions_hooked = result.restored;
	kept->detours = result.foreign != 0;
	if (result.foreign)
		session_add_residue(
			s,
			"%u functions whose code somebody else has changed since, and the detours that it may "
			"lead to; they call the original functions",
			result.foreign);
	return 0;
}

/* Waits for a coroutine to leave its hook. */
static int await_hook(const struct session *s, uint64_t marker, uint64_t deadline_ns, struct err *e)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	while (escape_hook_lives(&s->memory, marker) && !watchdog_asked_twice() && monotonic_ns() < deadline_ns)
		nanosleep(&pause, NULL);
	if (monotonic_ns() < deadline_ns && !watchdog_asked_twice())
		return 0;
	return err_set(e, EBUSY,
	               "a coroutine is parked in a hook of the payload (on the stack at 0x%llx), which must stay until "
	               "it goes on",
	               (unsigned long long)marker);
}

/*
 * A thread that was born since its elders were looked at is on the stack of an ended one, with what that has left
 * there. So it is looked at, too, and all is searched again. False: that was tried for long enough.
 */
static bool try_again(uint64_t *deadline_ns)
{
	const struct timespec pause = { .tv_nsec = COPY_PAUSE_NS };
	const uint64_t now = monotonic_ns();

	if (!*deadline_ns)
		*deadline_ns = now + COPY_NS;
	if (now >= *deadline_ns || watchdog_asked_twice())
		return false;
	nanosleep(&pause, NULL);
	return true;
}

/*
 * No thread is in the payload, and no coroutine that is parked: that is waited for, and may have gone on in a thread,
 * which is looked at again. trampolines, result: of search_escaped().
 */
static int prove_unused(struct session *s, bool trampolines, bool *held, struct escape_result *result, struct err *e)
{
	const uint64_t parked_ns = monotonic_ns() + PARKED_NS;
	uint64_t copy_ns = 0;

	for (;;) {
		struct quiesce_stacks stacks = { 0 };
		*held = false;
		int rc = prove_outside(s, &stacks, held, e);
		*result = (struct escape_result){ 0 };
		if (rc == 0)
			rc = search_escaped(s, &stacks, trampolines && !*held, result, e);
		free(stacks.list);
		if (rc == 0 && result->verdict == ESCAPE_HOOK)
			rc = await_hook(s, result->found, parked_ns, e);
		else if (rc < 0 || result->verdict != ESCAPE_FOUND || !result->on_new_stack || !try_again(&copy_ns))
			return rc;
		if (rc < 0)
			return rc;
	}
}

/* Until no thread can be in the payload and none is. */
static int silence(struct session *s, struct kept *kept, struct err *e)
{
	struct restore_result after = { 0 };
	bool held = false;
	struct escape_result escaped = { 0 };

	int rc = restore_code(s, kept, e);
	if (rc == 0)
		rc = restore(s, e);
	if (rc == 0)
		rc = refresh(s, e);
	if (rc == 0)
		rc = restore_result_count(s, &after, e);
	if (rc == 0)
		rc = prove_unused(s, after.escapes, &held, &escaped, e);
	kept->detours |= held;
	if (rc == 0 && !kept->detours)
		rc = code_patches_remove_islands(s, e);
	if (!after.escapes || held) /* nothing, or no copy, was looked for */
		escaped = (struct escape_result){ 0 };
	kept->trampolines = escaped.verdict != ESCAPE_NONE || after.foreign || held || kept->detours;
	if (rc == 0 && kept->trampolines)
		say_trampolines_stay(s, &escaped);
	return rc;
}

/* Only to make a safe point come sooner. */
static void end_lease(struct session *s)
{
	struct err e;

	if (target_dump_end_lease(&s->payload.block, &s->view.maps, &s->memory, &s->writer, &e) < 0)
		session_add_note(
			s, "the recording ended only when the GOT entries were restored, or its lease ran out: %s",
			e.text);
}

/* Only to shorten the stop of unload(), which finds out by itself whether a thread can be borrowed. */
static int forget_dump(struct session *s, struct err *e)
{
	struct borrower borrower;

	if (s->payload.block.state != SESSION_INERT)
		return 0;
	session_patient_borrower(s, &borrower, &s->outcome.detach_longest_ns);
	int rc = target_dump_forget(&s->payload.block, &s->view.maps, &borrower, e);
	if (rc == 0 || rc == -ESRCH || rc == -EINPROGRESS)
		return rc;
	session_add_note(
		s,
		"the memory of the dump was not given back before it was unmapped, which held a thread the longer: %s",
		e->text);
	return 0;
}

int session_detach(struct session *s, struct err *e)
{
	struct kept kept = { 0 };

	int rc = refresh(s, e);
	if (rc < 0 || !s->payload.base)
		return rc;
	bool inherited = other_session_is_inherited(s);
	bool recorded = s->payload.block.state == SESSION_STARTED || s->payload.block.state == SESSION_INERT;
	if (s->payload.block.state == SESSION_STARTED && !inherited)
		end_lease(s);
	if (recorded)
		rc = silence(s, &kept, e);
	if (rc == 0 && recorded && !inherited && !s->own_base)
		rc = session_file_save(s, e);
	if (rc == 0)
		rc = forget_dump(s, e);
	if (rc == 0)
		rc = unload(s, &kept, e);
	tracee_await_late(monotonic_ns() + LATE_NS);
	if (rc < 0)
		return rc;
	if (remote_is_stub(&s->memory, s->view.cave))
		session_add_residue(s, "a stub in the padding at 0x%llx", (unsigned long long)s->view.cave);
	return 0;
}
