/* SPDX-License-Identifier: MIT */
/*
 * Detach, for a session of this memattach or of one that died. All that is needed is in the target (struct
 * memattach_session). The order:
 *
 *   all threads stop: jumps at entries and words are given back; no thread can enter the payload any more (patches.h)
 *   quiesce:          no thread is in it
 *   islands           go, where no thread is any more
 *   hook search:      nor is a coroutine that is parked
 *   borrow a thread:  madvise, if the dump is large; for each piece of it
 *   borrow a thread:  CONTROL_STOP, dlclose (load.h), munmap of the trampolines and detours, in one go
 *   verify:           maps, descriptors, GOT entries against the snapshot from before attach
 */
#include "run/steps/detach.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/registers.h"
#include "base/cleanup.h"
#include "touch/patches/code_pages.h"
#include "touch/patches/detours.h"
#include "prove/hook_search.h"
#include "run/steps/inspect.h"
#include "touch/patches/load.h"
#include "touch/patches/loader_moment.h"
#include "touch/patches/loan.h"
#include "run/steps/other_session.h"
#include "touch/patches/patches.h"
#include "session/payload_place.h"
#include "prove/quiesce.h"
#include "run/steps/restore_result.h"
#include "touch/patches/session_entries.h"
#include "run/steps/session_file.h"
#include "touch/patches/target_dump.h"
#include "process/task.h"
#include "elf/tid_offset.h"
#include "host/watchdog.h"

#define UNLOAD_NS 5000000000ull   /* a loader may be busy for long */
#define QUIESCE_NS 10000000000ull /* a thread may wait long for its turn; none is stopped meanwhile */
#define PARKED_NS 2000000000ull   /* a coroutine may wait long in an allocator, but for nothing that ends soon */

struct outside {
	struct quiesce quiesce;
	struct address_range detours[SESSION_DETOUR_AREAS + SESSION_CODE_PATCH_MAX + 1];
};

static void describe_outside(struct session *s, struct outside *o)
{
	const struct memattach_session *b = &s->payload.block;
	struct detour_area areas[SESSION_DETOUR_AREAS];
	unsigned count = detours_list(s, areas);

	for (unsigned i = 0; i < count; i++)
		o->detours[i] = (struct address_range){ areas[i].address, areas[i].address + areas[i].bytes };
	count += code_patches_islands(s, o->detours + count, SESSION_CODE_PATCH_MAX);
	if (b->trampolines_address)
		o->detours[count++] = (struct address_range){ b->trampolines_address,
			                                      b->trampolines_address + TRAMPOLINES_CODE_BYTES };
	o->quiesce = (struct quiesce){
		.target = &s->target,
		.memory = &s->memory,
		.walk = s->view.points.walk,
		.code = { s->payload.base, s->payload.code_end },
		.detours = o->detours,
		.detour_count = count,
		.longest_ns = &s->outcome.detach_longest_ns,
	};
}

static int prove_outside(struct session *s, struct quiesce_stacks *stacks, struct err *e)
{
	struct outside o;

	describe_outside(s, &o);
	o.quiesce.stacks = stacks;
	return quiesce_wait(&o.quiesce, clock_monotonic_ns() + QUIESCE_NS, e);
}

/* Where glibc keeps a thread's number, after its thread pointer: as in any thread that was seen. */
static uint32_t find_tid_offset(const struct session *s, const struct quiesce_stacks *stacks)
{
	uint32_t offset = 0;

	for (size_t i = 0; i < stacks->count && !offset; i++) {
		const struct stack_position *p = &stacks->list[i];
		const struct tid_pair thread = { p->thread_pointer, task_inner_tid(s->target.pid, p->tid) };
		if (p->thread_pointer)
			offset = tid_offset_find(&s->memory, &thread, 1);
	}
	return offset;
}

/* *found: 0, or the marker of a hook in which a coroutine is parked. */
static int search_parked(struct session *s, const struct quiesce_stacks *stacks, uint64_t *found, struct err *e)
{
	struct hook_search x = { .stacks = stacks->list, .stack_count = stacks->count };
	struct page_scan pages;

	if (s->view.libc.kind == LIBC_GLIBC)
		x.tid_offset = find_tid_offset(s, stacks);
	int rc = page_scan_open(&pages, &s->target, e);
	if (rc < 0)
		return rc;
	rc = hook_search(&x, &s->target, &s->memory, &pages, found, e);
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
	int rc = load_undo_call(s, payload_place_handle(s), &calls[count++], e);
	if (b->state == SESSION_INERT && !kept->trampolines && b->trampolines_address)
		calls[count++] = (struct stub_call){ .target = SYS_munmap,
			                             .argument = { b->trampolines_address, b->trampolines_bytes } };
	for (unsigned i = 0; i < area_count; i++)
		calls[count++] =
			(struct stub_call){ .target = SYS_munmap, .argument = { areas[i].address, areas[i].bytes } };
	*call_count = count;
	return rc;
}

struct unloading {
	struct stub_call calls[3 + SESSION_DETOUR_AREAS];
	unsigned count;
};

static int unload_by(struct loan *l, void *context, struct err *e)
{
	struct unloading *u = context;

	/* First, as the payload's list of jumps is all that tells another detach, if this memattach dies, which they
	 * are. */
	int rc = code_pages_join(l, e);
	return rc ?: load_undo_by(l, u->calls, u->count, e);
}

static int unload(struct session *s, const struct kept *kept, struct err *e)
{
	struct unloading u = { 0 };
	struct borrower borrower;

	_Static_assert(3 + SESSION_DETOUR_AREAS <= SA_CALL_MAX, "calls");
	if (s->payload.block.state == SESSION_STARTED)
		return err_set(e, EBUSY, "the session has begun again meanwhile");
	int rc = unload_calls(s, kept, u.calls, &u.count, e);
	const uint64_t deadline_ns = clock_monotonic_ns() + UNLOAD_NS;
	if (rc < 0)
		return rc;
	code_pages_look(s);
	session_patient_borrower(s, &borrower, &s->outcome.detach_longest_ns);
	do
		rc = loan_run(s, &borrower, unload_by, &u, e);
	while (rc == -EDEADLK && loader_moment_pause(deadline_ns));
	if (rc == 0) {
		changes_end(&s->changes, CHANGE_RECORDING, kept->trampolines ? CHANGE_STAYS : CHANGE_UNDONE);
		changes_end(&s->changes, CHANGE_DETOURS, kept->detours ? CHANGE_STAYS : CHANGE_UNDONE);
	}
	return rc;
}

static int refresh(struct session *s, struct err *e)
{
	int rc = inspect_session_again(s, e);
	rc = rc ?: payload_place_find(s, e);
	return rc ?: inspect_choose(s, e);
}

static void say_trampolines_stay(struct session *s)
{
	session_add_residue(s, "%llu bytes of inert trampolines at 0x%llx; they call the original functions",
	                    (unsigned long long)s->payload.block.trampolines_bytes,
	                    (unsigned long long)s->payload.block.trampolines_address);
}

static int restore(struct session *s, struct kept *kept, struct err *e)
{
	struct code_patches_result result;

	int rc = session_entries_mark_gone(s, e);
	rc = rc ?: patches_restore(s, &result, e);
	if (rc < 0)
		return rc;
	s->outcome.functions_restored = result.restored;
	s->outcome.python = result.words;
	if (result.words.foreign)
		session_add_note(s,
		                 "%u words of CPython hold what another tool has put there; nothing was written there",
		                 result.words.foreign);
	if (result.restored > s->outcome.functions_hooked)
		s->outcome.functions_hooked = result.restored;
	kept->detours = result.foreign != 0;
	if (result.foreign)
		changes_end(&s->changes, CHANGE_ISLAND, CHANGE_STAYS);
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
	while (hook_search_lives(&s->memory, marker) && !watchdog_asked_twice() && clock_monotonic_ns() < deadline_ns)
		clock_pause(1000000);
	if (clock_monotonic_ns() < deadline_ns && !watchdog_asked_twice())
		return 0;
	return err_set(e, EBUSY,
	               "a coroutine is parked in a hook of the payload (on the stack at 0x%llx), which must stay until "
	               "it goes on",
	               (unsigned long long)marker);
}

/*
 * No thread is in the payload, and no coroutine that is parked: that is waited for, and may have gone on in a thread,
 * which is looked at again.
 */
static int prove_unused(struct session *s, struct err *e)
{
	const uint64_t parked_ns = clock_monotonic_ns() + PARKED_NS;
	uint64_t parked;
	int rc;

	do {
		struct quiesce_stacks stacks = { 0 };
		parked = 0;
		rc = prove_outside(s, &stacks, e);
		rc = rc ?: search_parked(s, &stacks, &parked, e);
		free(stacks.list);
		if (rc == 0 && parked)
			rc = await_hook(s, parked, parked_ns, e);
	} while (rc == 0 && parked);
	return rc;
}

/* Until no thread can be in the payload and none is. */
static int silence(struct session *s, struct kept *kept, struct err *e)
{
	bool foreign = false;

	int rc = restore(s, kept, e);
	rc = rc ?: refresh(s, e);
	rc = rc ?: restore_result_count(s, &foreign, e);
	rc = rc ?: prove_unused(s, e);
	if (rc == 0 && !kept->detours)
		rc = code_patches_remove_islands(s, e);
	kept->trampolines = foreign || kept->detours;
	if (rc == 0 && kept->trampolines)
		say_trampolines_stay(s);
	return rc;
}

/* Only to make a safe point come sooner. */
static void end_lease(struct session *s)
{
	struct err e;

	if (target_dump_end_lease(&(struct target_dump){ &s->payload.block, &s->view.maps, &s->memory }, &s->writer,
	                          &e) < 0)
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
	int rc = target_dump_forget(&(struct target_dump){ &s->payload.block, &s->view.maps, borrower.memory },
	                            &borrower, e);
	if (rc == 0 || rc == -ESRCH || rc == -EINPROGRESS)
		return rc;
	session_add_note(
		s,
		"the memory of the dump was not given back before it was unmapped, which held a thread the longer: %s",
		e->text);
	return 0;
}

int detach_session(struct session *s, struct err *e)
{
	struct kept kept = { 0 };

	int rc = refresh(s, e);
	if (rc < 0 || !s->payload.base)
		return rc;
	bool inherited = other_session_is_inherited(s);
	bool recorded = s->payload.block.state == SESSION_STARTED || s->payload.block.state == SESSION_INERT;
	patches_adopt(s, recorded);
	if (s->payload.block.state == SESSION_STARTED && !inherited)
		end_lease(s);
	if (recorded)
		rc = silence(s, &kept, e);
	if (rc == 0 && recorded && !inherited && !s->own_base)
		rc = session_file_save(s, e);
	rc = rc ?: forget_dump(s, e);
	rc = rc ?: unload(s, &kept, e);
	if (rc < 0)
		return rc;
	if (remote_is_stub(&s->memory, s->view.cave.code))
		session_add_residue(s, "a stub in the padding at 0x%llx", (unsigned long long)s->view.cave.code);
	return 0;
}
