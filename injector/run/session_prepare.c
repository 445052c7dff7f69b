/* SPDX-License-Identifier: MIT */
#include "run/session_prepare.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "choose/chosen.h"
#include "choose/container_image.h"
#include "host/watchdog.h"
#include "process/proc_stat.h"
#include "run/clone_collect.h"
#include "run/steps/inspect.h"
#include "run/steps/java_session.h"
#include "run/reports/live_child.h"
#include "run/steps/look_ahead.h"
#include "run/steps/old_stub.h"
#include "run/steps/other_session.h"
#include "run/steps/session_file.h"
#include "run/reports/session_reports.h"
#include "session/java_names.h"
#include "session/record.h"
#include "session/session_lock.h"
#include "touch/python/python_session.h"

/* Nothing of ours is in the target yet. */
static void note_start_memory(struct session *s)
{
	struct dump_header *h = s->recording.dump.own;
	struct memory_use use;

	if (target_memory_use(&s->target, &use, ERR_IGNORED) < 0)
		return;
	h->private_start_bytes = h->private_latest_bytes = use.anonymous + use.swapped;
	h->shared_start_bytes = use.shared;
	h->files_start_bytes = use.files;
}

static int create_dump(struct session *s, struct err *e)
{
	const struct dump_writer_options options = {
		.max_bytes = s->options.max_bytes,
		.rate_bytes = s->options.rate_bytes,
		.max_overhead = s->options.max_overhead,
		.share = s->options.share,
	};

	int rc = dump_writer_create(&s->recording.dump, &options, e);
	if (rc < 0)
		return rc;
	struct dump_header *h = s->recording.dump.own;
	h->pid = s->target.pid;
	h->injector_pid = getpid();
	h->target_start_ticks = s->target.start_ticks;
	h->seed = s->options.seed;
	if (s->options.groups & GROUP_BIT(GROUP_MMAP)) {
		h->session_flags = DUMP_SESSION_MMAP;
		h->features |= DUMP_FEATURE_FILES;
	}
	if (s->java_names)
		dump_writer_java(&s->recording.dump, s->java_names->view.s.version);
	note_start_memory(s);
	memory_room_events(s->target.pid, s->outcome.oom_events);
	s->outcome.oom_kills = memory_room_kills(s->outcome.oom_events);
	snprintf(h->command, sizeof h->command, "%s", s->target.comm);
	chosen_cgroup(s->target.pid, h->cgroup, sizeof h->cgroup);
	container_image_find(h->cgroup, h->image, sizeof h->image);
	memcpy(h->program, s->target.program, sizeof h->program - 1);
	if (getrandom(&h->session_id, sizeof h->session_id, 0) != sizeof h->session_id)
		h->session_id = clock_monotonic_ns();
	dump_writer_python(&s->recording.dump, s->python.layout.version, s->python.evaluators);
	rc = proc_stat_number(getpid(), 22, &h->injector_start_ticks, e);
	dump_writer_publish(&s->recording.dump);
	return rc;
}

int session_prepare(struct session *s, struct err *e)
{
	unsigned collected;
	pid_t holder;

	int rc = inspect_open(s, e);
	rc = rc ?: session_lock_take(&s->target, &holder, e);
	rc = rc ?: inspect_session(s, e);
	rc = rc ?: old_stub_settle(s, e);
	rc = rc ?: clone_collect_of_dead(s, &collected, e);
	if (rc == 0 && s->payload.base)
		rc = watchdog_start(s->target.pid, e);
	rc = rc ?: other_session_make_way(s, e);
	rc = rc ?: look_ahead_plan(s, e);
	if (rc == 0) {
		python_session_find(s);
		java_session_find(s);
	}
	if (rc == 0 && s->options.verbose)
		session_say_lines(s, s->python.details);
	rc = rc ?: snapshot_take(&s->outcome.before, &s->target, e);
	if (rc < 0)
		return rc;
	/* Until now a signal has just ended memattach. */
	rc = watchdog_start(s->target.pid, e);
	/* What would be said of it now would be of another program. */
	if (rc == 0 && target_has_execed(&s->target))
		rc = err_set(e, ESRCH, "it has called execve: another program runs now");
	rc = rc ?: create_dump(s, e);
	if (rc == 0 && (!s->options.no_symbols || s->options.report_count || s->options.live))
		symbol_sources_open(&s->symbols, &s->target);
	if (rc == 0 && s->options.live)
		rc = live_child_check(s, e);
	rc = rc ?: session_reports_open(s, e);
	rc = rc ?: record_modules(s, 1, e);
	if (rc == 0)
		record_paths(s);
	return rc < 0 ? rc : session_file_create(s, e);
}
