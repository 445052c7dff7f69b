/* SPDX-License-Identifier: MIT */
/* What a session knows before anything is touched. */
#include "session.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "live_thread.h"
#include "payload_symbols.h"
#include "say.h"

#define INSPECT_TRIES 20
#define INSPECT_PAUSE_NS 10000000
#define CALL_NS 5000000000ull /* one remote call; a loader that waits for a lock longer than that goes on alone */

void session_init(struct session *s, const struct session_options *options)
{
	*s = (struct session){
		.options = *options,
		.target.pidfd = -1,
		.target.lock_fd = -1,
		.file.directory = -1,
		.memory.mem_fd = -1,
		.writer.fd = -1,
		.dump.fd = -1,
		.tables = { .fd = -1, .own = -1 },
		.next_module_id = 1,
	};
}

static void forget_modules(struct session *s)
{
	if (s->have_points)
		safe_points_done(&s->points);
	if (s->have_plans)
		got_plan_free(&s->plans);
	if (s->have_modules)
		modules_free(&s->modules);
	if (s->have_maps)
		maps_free(&s->maps);
	free(s->coverage);
	s->coverage = NULL;
	s->have_points = s->have_plans = s->have_modules = s->have_maps = false;
}

void session_done(struct session *s)
{
	forget_modules(s);
	if (s->have_before)
		snapshot_free(&s->before);
	if (s->have_tables)
		unwind_tables_close(&s->tables);
	if (s->have_dump)
		dump_writer_close(&s->dump);
	if (s->have_file)
		dump_file_close(&s->file);
	target_writer_close(&s->writer);
	if (s->have_memory)
		target_memory_close(&s->memory);
	if (s->have_target)
		target_close(&s->target);
	free(s->residue);
	free(s->notes);
	free(s->named_threads);
	free(s->final_entries);
	s->final_entries = NULL;
	s->named_threads = NULL;
	s->named_thread_count = 0;
	s->recorded_names = 0;
	s->have_before = s->have_tables = s->have_dump = s->have_file = s->have_memory = s->have_target = false;
	s->residue = s->notes = NULL;
}

void session_say(const struct session *s, const char *format, ...)
{
	va_list ap;

	if (s->options.quiet)
		return;
	va_start(ap, format);
	say_line(stderr, format, ap);
	va_end(ap);
}

__attribute__((format(printf, 2, 0))) static void add_line(char **lines, const char *format, va_list ap)
{
	AUTO_FREE char *line = say_format(format, ap);
	char *all = NULL;

	if (!line || asprintf(&all, "%s%s\n", *lines ? *lines : "", line) < 0)
		return;
	free(*lines);
	*lines = all;
}

void session_add_residue(struct session *s, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	add_line(&s->residue, format, ap);
	va_end(ap);
}

void session_add_note(struct session *s, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	add_line(&s->notes, format, ap);
	va_end(ap);
}

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
	const struct timespec pause = { .tv_nsec = INSPECT_PAUSE_NS };

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
		nanosleep(&pause, NULL);
	}
}

static int inspect_modules(struct session *s, const struct modules *old, struct err *e)
{
	struct maps maps;
	struct modules modules;

	int rc = read_modules(s, &maps, &modules, e);
	if (rc < 0)
		return rc;
	modules_number(&modules, old, &s->next_module_id);
	forget_modules(s);
	s->maps = maps;
	s->modules = modules;
	s->have_maps = s->have_modules = true;
	return libc_find(&s->libc, &s->modules, &s->memory, e);
}

int session_open(struct session *s, struct err *e)
{
	if (s->have_target)
		return 0;
	int rc = target_open(&s->target, s->options.pid, e);
	s->have_target = rc == 0;
	return rc;
}

int session_inspect(struct session *s, struct err *e)
{
	int rc = session_open(s, e);
	if (rc == 0)
		rc = target_check_tracer(&s->target, e);
	if (rc < 0)
		return rc;
	rc = live_thread_memory(&s->target, &s->memory, &s->writer.fd, e);
	if (rc == -EACCES || rc == -EPERM)
		target_explain_permission(&s->target, e);
	if (rc < 0)
		return rc;
	s->have_memory = true;
	return inspect_modules(s, NULL, e);
}

int session_inspect_again(struct session *s, struct err *e)
{
	struct modules old = s->modules;
	struct maps old_maps = s->maps;

	/* The old list is needed for the ids until the new one is there. */
	s->have_modules = s->have_maps = false;
	int rc = inspect_modules(s, &old, e);
	if (!s->have_modules) {
		s->modules = old;
		s->maps = old_maps;
		s->have_modules = s->have_maps = true;
		return rc;
	}
	modules_free(&old);
	maps_free(&old_maps);
	return rc;
}

bool session_old_cave(const struct session *s, uint64_t *cave)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		struct cave found;
		if (cave_of_module(&found, &s->modules.list[i], &s->maps) && found.bytes >= remote_cave_bytes() &&
		    remote_is_stub(&s->memory, found.address)) {
			*cave = found.address;
			return true;
		}
	}
	return false;
}

int session_check_loader(const struct session *s, struct err *e)
{
	if (!s->modules.broken)
		return 0;
	return err_set(e, EFAULT,
	               "%s has been torn apart (its names cannot be read), and the program's loader would crash on "
	               "that when it loads the payload; "
	               "nothing was changed",
	               s->modules.broken);
}

int session_check_threads(const struct session *s, struct err *e)
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

int session_choose(struct session *s, struct err *e)
{
	struct cave cave;
	int rc = 0;

	if (!s->cave && !session_old_cave(s, &s->cave)) {
		rc = cave_find(&cave, &s->modules, &s->memory, &s->maps, remote_cave_bytes(), e);
		if (rc < 0)
			return rc;
		s->cave = cave.address;
	}
	if (s->have_points)
		safe_points_done(&s->points);
	s->have_points = false;
	rc = safe_points_init(&s->points, &s->modules, &s->libc, &s->memory, e);
	if (rc < 0)
		return rc;
	s->have_points = true;
	rc = safe_points_add(&s->points, s->cave, s->cave + remote_cave_bytes(),
	                     "the last steps of an earlier memattach", e);
	if (rc == 0 && s->payload.base)
		rc = safe_points_add(&s->points, s->payload.base, s->payload.end, "the payload", e);
	if (rc == 0 && s->payload.block.trampolines_address)
		rc = safe_points_add(&s->points, s->payload.block.trampolines_address,
		                     s->payload.block.trampolines_address + s->payload.block.trampolines_bytes,
		                     "a trampoline of the payload", e);
	return rc;
}

void session_borrower(const struct session *s, struct borrower *b, uint64_t extra_bytes, uint64_t *longest_ns)
{
	*b = (struct borrower){
		.target = &s->target,
		.memory = &s->memory,
		.writer = &s->writer,
		.points = &s->points,
		.cave = s->cave,
		.search_ns = s->options.deadline_ns,
		.call_ns = CALL_NS,
		.extra_bytes = extra_bytes,
		.longest_ns = longest_ns,
	};
}

bool session_payload_is_mapped(const struct session *s)
{
	struct maps maps;
	struct err ignored;

	if (live_thread_maps(&s->target, &maps, &ignored) < 0)
		return false;
	const struct mapping *m = maps_find(&maps, s->payload.base);
	bool mapped = m && strstr(m->path, "memfd:" PAYLOAD_MEMFD_NAME);
	maps_free(&maps);
	return mapped;
}

static bool looks_like_payload(const struct elf_module *m)
{
	return strcmp(elf_module_name(m), "memfd:" PAYLOAD_MEMFD_NAME) == 0 ||
	       strstr(m->path, "memfd:" PAYLOAD_MEMFD_NAME);
}

/* What is loaded under the payload's name, and what its session block says. */
static int read_payload(const struct session *s, const struct elf_module *m, struct payload_place *place, struct err *e)
{
	uint64_t session_offset, control_offset;

	int rc = payload_symbol("memattach_session", &session_offset, e);
	if (rc == 0)
		rc = payload_symbol("memattach_control", &control_offset, e);
	if (rc < 0)
		return rc;
	*place = (struct payload_place){
		.base = m->start,
		.end = m->end,
		.code_end = m->exec_end,
		.session = m->start + session_offset,
		.control = m->start + control_offset,
	};
	rc = target_read(&s->memory, place->session, &place->block, sizeof place->block, e);
	if (rc == 0 && (place->block.magic != CONTROL_MAGIC || place->block.version != CONTROL_VERSION))
		rc = err_set(e, EPROTO,
		             "the target holds the payload of another version of memattach (detach with that version), "
		             "or it has written over it");
	return rc;
}

static bool is_active(const struct payload_place *place)
{
	return place->block.state == SESSION_STARTED || place->block.state == SESSION_INERT;
}

bool session_is_active(const struct session *s)
{
	return s->payload.base && is_active(&s->payload);
}

int session_find_payload(struct session *s, struct err *e)
{
	struct payload_place found = { 0 };
	int rc = 0;

	for (size_t i = 0; i < s->modules.count && rc == 0; i++) {
		const struct elf_module *m = &s->modules.list[i];
		struct payload_place place;
		if (!looks_like_payload(m) || (s->own_base && m->start != s->own_base))
			continue;
		rc = read_payload(s, m, &place, e);
		if (rc == 0 && (!found.base || (is_active(&place) && !is_active(&found))))
			found = place;
	}
	if (rc == 0)
		s->payload = found;
	if (rc == 0 && found.base)
		ours_add_mapping(&s->ours, maps_find(&s->maps, found.base));
	if (rc == 0 && found.base && !s->touched)
		ours_add_named(&s->ours, &s->maps);
	if (rc == 0 && s->have_dump && s->own_base && found.base && is_active(&found) &&
	    found.block.session_id != s->dump.own->session_id)
		rc = err_set(e, EPROTO, "the payload in the target is that of another session");
	return rc;
}

uint64_t session_payload_handle(const struct session *s)
{
	const struct elf_module *m = modules_find(&s->modules, s->payload.base, false);

	if (s->payload.block.dl_handle)
		return s->payload.block.dl_handle;
	return m ? m->link_map : 0;
}
