/* SPDX-License-Identifier: MIT */
#include "touch/patches/recording.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/registers.h"
#include "elf/tid_offset.h"
#include "host/watchdog.h"
#include "process/task.h"
#include "touch/patches/code_pages.h"
#include "touch/patches/code_patches.h"
#include "touch/patches/detours.h"
#include "touch/patches/load.h"
#include "touch/remote/send_descriptors.h"

#define FILTER_LOG2 16u
#define FILTER_LOG2_SMALL_RATE 20u
#define FILTER_ROOM 16u /* counters for each live sample that a heap as large as now will have */

/* The payload's control function, by the borrowed thread (include/control.h). what completes "the payload could not …".
 */
static int control_call(struct loan *l, enum control_op op, uint64_t argument, const char *what, struct err *e)
{
	const uint64_t arguments[6] = { op, argument };
	uint64_t result = 0;

	int rc = remote_call1(l->remote, l->s->payload.control, arguments, &result, l->deadline_ns, e);
	if (rc == 0 && (rc = remote_result(result, e)) < 0)
		err_prefix(e, "the payload could not %s", what);
	return rc;
}

static uint32_t find_tid_offset(struct session *s, const struct remote *r)
{
	const struct tid_pair pair = { .thread_pointer = registers_tp(&r->saved),
		                       .tid = task_inner_tid(s->target.pid, r->tracee->tid) };

	return tid_offset_find(&s->memory, &pair, 1);
}

/* Where the main stack is, and whether what is below it leaves it room to grow. */
static void tell_main_stack(const struct session *s, struct control_start *args)
{
	uint64_t below_end = 0;

	for (size_t i = 0; i < s->view.maps.count; i++) {
		const struct mapping *m = &s->view.maps.list[i];
		if (!strcmp(m->path, "[stack]")) {
			args->main_stack_start = m->start;
			args->main_stack_end = m->end;
			args->main_stack_gap = m->start - below_end >= MAIN_STACK_GAP ? MAIN_STACK_GAP : 0;
			return;
		}
		below_end = m->end;
	}
}

uint64_t recording_usable_size(const struct session *s)
{
	if (!s->hooks.asks_usable && s->hooks.count)
		return 0;
	for (size_t i = 0; i < s->view.plan.trampoline_count; i++) {
		const struct control_trampoline *g = &s->view.plan.trampolines[i];
		if (entry_hooks_at(&s->hooks, g->original))
			continue;
		if (listed_hook_group(g->hook) == GROUP_MALLOC && g->hook < HOOK_new &&
		    s->view.libc.allocator != modules_find(&s->view.modules, g->original, true))
			return 0;
	}
	return s->view.libc.usable_size;
}

/*
 * A free whose counter is not zero is slow. Of n live samples and m counters that are n / m of all frees, and no less
 * than payload/tables/filter.h says: 1 in 16 when all of the present heap has been allocated anew, and still less than
 * half when it has grown eightfold. In a heap of up to 2 GiB at the default rate that are 64 KiB; a larger heap pays a
 * 32768th of its size.
 */
static uint32_t filter_log2(const struct session_options *o, uint64_t private_bytes)
{
	uint32_t log2 = o->rate_bytes < 4096 ? FILTER_LOG2_SMALL_RATE : FILTER_LOG2;

	if (o->rate_bytes == 1 && !(o->max_overhead > 0))
		return FILTER_NONE;
	while (log2 < FILTER_LOG2_MAX && 1ull << log2 < private_bytes / o->rate_bytes * FILTER_ROOM)
		log2++;
	return log2;
}

static int start(struct loan *l, const int remote_fds[3], uint64_t handle, uint64_t session_id, struct err *e)
{
	struct session *s = l->s;
	struct control_start args = {
		.payload_fd = remote_fds[0],
		.dump_fd = remote_fds[1],
		.tables_fd = remote_fds[2],
		.filter_log2 = filter_log2(&s->options, s->recording.dump.own->private_start_bytes),
		.dump_max_bytes = s->recording.dump.max_bytes,
		.tables_max_bytes = s->recording.tables.max_bytes,
		.rate_bytes = s->options.rate_bytes,
		.seed = s->options.seed,
		.dl_handle = handle,
		.session_id = session_id,
		.injector_pid = getpid(),
		.tid_offset = find_tid_offset(s, l->remote),
		.injector_start_ticks = s->recording.dump.own->injector_start_ticks,
		.usable_size = recording_usable_size(s),
		.python = s->python.layout,
		.java = s->java,
	};

	tell_main_stack(s, &args);
	while (args.seed == 0)
		if (getrandom(&args.seed, sizeof args.seed, 0) != sizeof args.seed)
			args.seed = clock_monotonic_ns();
	uint64_t at = REMOTE_AT(l->remote, data.start);
	s->recording.asks_usable_size = args.usable_size != 0;
	int rc = target_write(&s->writer, CHANGE_WORK_AREA, at, &args, sizeof args, e);
	rc = rc ?: control_call(l, CONTROL_START, at, "start", e);
	if (rc == 0)
		changes_made(&s->changes, CHANGE_RECORDING);
	return rc;
}

int recording_set_trampolines(struct loan *l, struct err *e)
{
	struct session *s = l->s;
	const struct got_plan *p = &s->view.plan;
	const struct control_patch args = {
		.trampoline_count = (uint32_t)p->trampoline_count,
		.trampolines = REMOTE_AT(l->remote, extra),
	};
	const uint64_t at = REMOTE_AT(l->remote, data.patch);

	int rc = target_write(&s->writer, CHANGE_WORK_AREA, args.trampolines, p->trampolines,
	                      p->trampoline_count * sizeof *p->trampolines, e);
	rc = rc ?: target_write(&s->writer, CHANGE_WORK_AREA, at, &args, sizeof args, e);
	return rc == 0 ? control_call(l, CONTROL_PATCH, at, "set its trampolines", e) : rc;
}

/*
 * May the thread read the cycle counter, which the hooks do? PR_SET_TSC may have made that a fault (a flag of each
 * thread, inherited by the threads that it makes).
 */
static int ask_thread(struct loan *l, struct err *e)
{
	const uint64_t at = REMOTE_AT(l->remote, data.tsc_mode), arguments[6] = { PR_GET_TSC, at };
	uint64_t result;
	int32_t mode = 0;

	int rc = remote_call1(l->remote, SYS_prctl, arguments, &result, l->deadline_ns, e);
	if (rc == 0 && result == 0)
		rc = target_read(&l->s->memory, at, &mode, sizeof mode, e);
	if (rc == 0 && mode == PR_TSC_SIGSEGV)
		rc = err_set(e, EPERM,
		             "the process has forbidden itself to read the cycle counter (PR_SET_TSC), which recording "
		             "needs; nothing was changed");
	return rc;
}

int recording_load(struct loan *l, int payload_fd, struct err *e)
{
	struct session *s = l->s;
	const int fds[3] = { payload_fd, s->recording.dump.fd, s->recording.tables.fd };
	int remote_fds[3];
	uint64_t handle = 0;

	for (unsigned i = 0; i < 3; i++)
		ours_add_descriptor(&s->ours, fds[i]);
	int rc = ask_thread(l, e);
	rc = rc ?: send_descriptors(l->remote, s->target.pidfd, fds, 3, remote_fds, l->deadline_ns, e);
	rc = rc ?: watchdog_check(e);
	rc = rc ?: load_payload(l, remote_fds[0], &handle, e);
	if (rc < 0)
		return rc;
	rc = watchdog_check(e);
	rc = rc ?: start(l, remote_fds, handle, s->recording.dump.own->session_id, e);
	rc = rc ?: target_read(&s->memory, s->payload.session, &s->payload.block, sizeof s->payload.block, e);
	rc = rc ?: watchdog_check(e);
	rc = rc ?: detours_map(l, remote_fds[0], e);
	rc = rc ?: recording_set_trampolines(l, e);
	rc = rc ?: code_patches_list(s, e);
	rc = rc ?: code_pages_set_apart(l, e);
	if (rc < 0 && rc != -ETIMEDOUT && rc != -ESRCH && s->payload.block.state == SESSION_LOADED) {
		if (load_undo(l, handle, ERR_IGNORED) == 0) {
			s->payload = (struct payload_place){ 0 };
			s->own_base = 0;
		}
	}
	return rc;
}
