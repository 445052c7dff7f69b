/* SPDX-License-Identifier: MIT */
/* What a session knows before anything is touched. */
#include "run/steps/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "arch/stub_frame.h"
#include "base/cleanup.h"
#include "touch/patches/detours.h"
#include "process/live_thread.h"
#include "run/steps/old_stub.h"
#include "session/record.h"
#include "host/page_size.h"
#include "host/watchdog.h"

#define INSPECT_TRIES 20
#define INSPECT_PAUSE_NS 10000000
#define TRACER_PAUSE_NS 1000000

static int read_maps(struct session *s, struct maps *maps, struct err *e)
{
	int rc = live_thread_maps(&s->target, maps, e);

	if (rc == -EACCES || rc == -EPERM)
		target_explain_permission(&s->target, e);
	return rc;
}

/* Maps and modules that fit each other, at a moment when the loader is at rest. */
static int read_modules(struct session *s, struct maps *maps, struct modules *modules, struct err *e)
{
	for (int i = 0;; i++) {
		int rc = read_maps(s, maps, e);
		if (rc < 0)
			return rc;
		rc = modules_read(modules, &s->memory, maps, e);
		if (rc == 0 && modules->consistent)
			return 0;
		if (rc == 0) {
			modules_free(modules);
			rc = err_set(e, EAGAIN, "the loader of the target is busy (a dlopen or dlclose does not end)");
		}
		maps_free(maps);
		if (rc != -EAGAIN || i == INSPECT_TRIES)
			return rc;
		clock_pause(INSPECT_PAUSE_NS);
	}
}

static int inspect_modules(struct session *s, const struct modules *old, struct err *e)
{
	struct maps maps;
	struct modules modules;

	int rc = read_modules(s, &maps, &modules, e);
	if (rc < 0)
		return rc;
	modules_number(&modules, old, &s->view.next_module_id);
	session_forget_view(s);
	s->view.maps = maps;
	s->view.modules = modules;
	int r = libc_find(&s->view.libc, &s->view.modules, &s->memory, e);
	s->view.libc.set_aside = s->maps_payload;
	return r;
}

int inspect_open(struct session *s, struct err *e)
{
	int rc = s->target.pidfd >= 0 ? 0 : target_open(&s->target, s->options.pid, e);

	if (rc == 0 && s->options.start_ticks && s->options.start_ticks != s->target.start_ticks) {
		target_close(&s->target);
		rc = err_set(e, ESRCH, "the process that was chosen has ended, and another one has its number");
	}
	return rc;
}

/* A tracer that comes for a moment only, as a LeakSanitizer does, is waited for. */
static int wait_for_tracer(const struct session *s, struct err *e)
{
	const uint64_t deadline_ns = clock_monotonic_ns() + s->options.deadline_ns;
	int rc;

	while ((rc = target_check_tracer(&s->target, e)) == -EBUSY && clock_monotonic_ns() < deadline_ns &&
	       !watchdog_asked())
		clock_pause(TRACER_PAUSE_NS);
	return rc;
}

int inspect_session(struct session *s, struct err *e)
{
	int rc = page_size_check(e);
	rc = rc ?: inspect_open(s, e);
	rc = rc ?: wait_for_tracer(s, e);
	if (rc < 0)
		return rc;
	s->writer.changes = &s->changes;
	rc = live_thread_memory(&s->target, &s->memory, &s->writer.fd, e);
	if (rc == -EACCES || rc == -EPERM)
		target_explain_permission(&s->target, e);
	return rc < 0 ? rc : inspect_modules(s, NULL, e);
}

int inspect_session_again(struct session *s, struct err *e)
{
	struct modules old = s->view.modules;
	struct maps old_maps = s->view.maps;

	/* The old list is needed for the ids until the new one is there. */
	s->view.modules = (struct modules){ 0 };
	s->view.maps = (struct maps){ 0 };
	int rc = inspect_modules(s, &old, e);
	if (!s->view.modules.list) {
		s->view.modules = old;
		s->view.maps = old_maps;
		return rc;
	}
	modules_free(&old);
	maps_free(&old_maps);
	return rc;
}

int inspect_check_loader(const struct session *s, struct err *e)
{
	if (!s->view.modules.broken || !libc_loads_payload(&s->view.libc))
		return 0;
	return err_set(e, EFAULT,
	               "%s has been torn apart (its names cannot be read), and the program's loader would crash on "
	               "that when it loads the payload; "
	               "nothing was changed",
	               s->view.modules.broken);
}

int inspect_check_threads(const struct session *s, struct err *e)
{
	AUTO_FREE struct thread_info *threads = NULL;
	size_t count = 0;

	int rc = target_threads(&s->target, &threads, &count, e);
	for (size_t i = 0; i < count && rc == 0; i++)
		if (threads[i].strict)
			rc = err_set(e, EPERM,
			             "thread %d is in seccomp's strict mode, in which the cycle counter is forbidden, "
			             "which recording needs; "
			             "nothing was changed",
			             threads[i].tid);
	return rc;
}

/*
 * That of an earlier memattach is used again; it may have died before it wrote a frame. Where there is no room for the
 * frame of any thread, that of most threads will do.
 */
static int choose_cave(struct session *s, struct err *e)
{
	const uint64_t frames[] = { stub_frame_usual(), stub_frame_least() };
	const struct session_view *v = &s->view;
	struct stub_place *place = &s->view.cave;
	int rc = -ENOSPC;

	/* The stub of a memattach that died may have none. */
	const bool old = place->code || old_stub_cave(s, place);
	if (old && (place->frame || !frames[1]))
		return 0;
	for (unsigned i = 0; i < 2 && rc == -ENOSPC; i++)
		rc = (old ? cave_find_frame : cave_find)(place, &v->modules, &s->memory, &v->maps, remote_cave_bytes(),
		                                         frames[i], e);
	return rc;
}

int inspect_choose(struct session *s, struct err *e)
{
	struct detour_area areas[SESSION_DETOUR_AREAS];
	int rc = 0;

	rc = choose_cave(s, e);
	rc = rc ?: record_compile_rows(s, e);
	if (rc < 0)
		return rc;
	safe_points_done(&s->view.points);
	rc = safe_points_init(&s->view.points, &s->view.modules, &s->view.libc, &s->memory, &s->view.maps,
	                      &s->recording.tables, e);
	if (rc < 0)
		return rc;
	rc = safe_points_add(&s->view.points, s->view.cave.code, s->view.cave.code + remote_cave_bytes(),
	                     "the last steps of an earlier memattach", e);
	if (rc == 0 && s->payload.base)
		rc = safe_points_add(&s->view.points, s->payload.base, s->payload.end, "the payload", e);
	if (rc == 0 && s->payload.block.trampolines_address)
		rc = safe_points_add(&s->view.points, s->payload.block.trampolines_address,
		                     s->payload.block.trampolines_address + s->payload.block.trampolines_bytes,
		                     "a trampoline of the payload", e);
	for (unsigned i = detours_list(s, areas); rc == 0 && i-- > 0;)
		rc = safe_points_add(&s->view.points, areas[i].address, areas[i].address + areas[i].bytes,
		                     "a detour of the payload", e);
	return rc;
}
