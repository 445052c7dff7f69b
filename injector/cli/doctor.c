/* SPDX-License-Identifier: MIT */
#include "cli/doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/doctor_allocators.h"
#include "cli/doctor_details.h"
#include "cli/doctor_fact.h"
#include "cli/doctor_java.h"
#include "cli/doctor_python.h"
#include "dump/note_folding.h"
#include "run/steps/inspect.h"
#include "session/loader_choice.h"
#include "run/steps/old_stub.h"
#include "run/steps/other_session.h"
#include "session/patched_words.h"
#include "session/payload_place.h"
#include "process/permission.h"
#include "run/steps/plan.h"
#include "process/proc_status.h"
#include "session/record.h"
#include "session/session_lock.h"
#include "base/size.h"

static void tell_process(const struct session *s)
{
	char uid[64], threads[32], name[32];

	proc_status_copy(s->options.pid, "Uid", uid, sizeof uid);
	proc_status_copy(s->options.pid, "Threads", threads, sizeof threads);
	proc_status_copy(s->options.pid, "Name", name, sizeof name);
	uid[strcspn(uid, "\t ")] = '\0';
	if (name[0])
		doctor_fact("process", "%d (%s), user %s, %s thread%s", s->options.pid, name, uid, threads,
		            strcmp(threads, "1") ? "s" : "");
}

static void tell_permission(const struct session *s)
{
	char scope[16] = "", name[TRACER_NAME];

	AUTO_FCLOSE FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	if (!f || !fgets(scope, sizeof scope, f))
		snprintf(scope, sizeof scope, "absent");
	scope[strcspn(scope, "\n")] = '\0';
	pid_t tracer = target_tracer(s->options.pid, 0, name);
	doctor_fact("permission", "%s (memattach runs as user %d, Yama: %s)", s->memory.mem_fd >= 0 ? "yes" : "no",
	            (int)geteuid(), scope);
	if (tracer > 0)
		doctor_fact("tracer", "PID %d (%s)", tracer, name);
	else
		doctor_fact("tracer", "none");
}

static const char *name_of_state(char state)
{
	switch (state) {
	case 'R': return "running";
	case 'S': return "sleeping";
	case 'D': return "in uninterruptible sleep";
	case 'T': return "stopped by job control";
	case 't': return "stopped by a tracer";
	default: return "in another state";
	}
}

/* The thread that an attach would try first. Returns false if there is none. */
static bool tell_threads(const struct session *s, size_t *filtered, size_t *count)
{
	AUTO_FREE struct thread_info *threads = NULL;
	const struct thread_info *best = NULL;
	char name[BLOCKED_CALL_NAME];
	size_t stuck = 0;

	*filtered = *count = 0;
	if (target_threads(&s->target, &threads, count, ERR_IGNORED) < 0)
		return false;
	for (size_t i = 0; i < *count; i++) {
		int rank = borrow_rank(&threads[i]);
		*filtered += threads[i].filtered;
		stuck += rank < 0;
		if (rank >= 0 && (!best || borrow_rank(best) > rank || (best->filtered && !threads[i].filtered)))
			best = &threads[i];
	}
	doctor_fact("threads", "%zu, %zu of them in uninterruptible sleep or in calls that a stop would harm", *count,
	            stuck);
	doctor_fact("seccomp", "%zu of %zu threads have a filter", *filtered, *count);
	if (!best)
		return false;
	if (best->call.number >= 0)
		doctor_fact("to be borrowed", "thread %d, %s in %s%s", best->tid, name_of_state(best->state),
		            blocked_call_name(&best->call, name),
		            borrow_restarts_badly(best)
		                    ? ", which returns EINTR once if memattach is killed in that moment"
		                    : "");
	else
		doctor_fact("to be borrowed", "thread %d, %s", best->tid, name_of_state(best->state));
	return true;
}

static void tell_libc(const struct session *s)
{
	const struct libc *l = &s->view.libc;

	if (!l->module)
		return;
	doctor_fact("C library", "%s%s%s, %s", l->kind == LIBC_GLIBC ? "glibc" : "musl", l->version[0] ? " " : "",
	            l->version, l->module->path);
	doctor_fact("allocator", "%s%s", l->allocator ? l->allocator->path : "unknown",
	            l->allocator == l->module ? " (the C library's own)" : "");
	if (!l->dlclose_unmaps)
		doctor_fact("", "this C library never unloads: memattach maps the payload by itself, and unmaps it");
}

static void tell_loader(const struct session *s)
{
	if (s->view.libc.dlclose_unmaps && !s->payload.base)
		doctor_fact("payload", "%s%s%s", s->maps_payload ? "mapped by memattach" : "loaded by dlopen",
		            s->loader_reason[0] ? ": " : "", s->loader_reason);
}

static void tell_modules(const struct session *s)
{
	size_t with_entries = 0, with_rows = 0;
	uint64_t rows = 0;

	for (size_t i = 0; i < s->view.modules.count; i++) {
		const struct elf_module *m = &s->view.modules.list[i];
		size_t entries = 0;
		if (m->start == s->payload.base)
			continue;
		for (size_t k = 0; k < s->view.plan.entry_count; k++)
			entries += s->view.plan.entries[k].module == i;
		with_entries += entries > 0;
		with_rows += s->view.coverage[i].rows > 0;
		rows += s->view.coverage[i].rows;
		doctor_fact(i ? "" : "modules", "%-25s %4zu GOT entries %7u unwind rows%s%s", elf_module_name(m),
		            entries, s->view.coverage[i].rows, s->view.coverage[i].text[0] ? ": " : "",
		            s->view.coverage[i].text);
	}
	doctor_fact("", "%zu modules, %zu with GOT entries, %zu with unwind tables of %" PRIu64 " rows",
	            s->view.modules.count, with_entries, with_rows, rows);
}

/* What is not covered: what is said alike of several as one, or with --verbose each. */
struct uncovered {
	const struct session *s;
	struct note_folding notes;
	bool any;
};

static void add_uncovered(struct uncovered *u, const char *text)
{
	u->any = true;
	if (u->s->options.verbose || note_folding_add(&u->notes, 0, text))
		doctor_fact("not covered", "%s", text);
}

static void add_no_rows(struct uncovered *u, const struct elf_module *m)
{
	char text[NOTE_FORM_TEXT];

	note_form_write(text, NOTE_FORM_NO_ROWS, elf_module_name(m), NULL, "");
	add_uncovered(u, text);
}

static void tell_folded(struct uncovered *u)
{
	char text[NOTE_FORM_ALL_TEXT];

	for (size_t i = 0; i < u->notes.count; i++) {
		note_folding_text(&u->notes.list[i], " (-v names each)", text);
		doctor_fact("not covered", "%s", text);
	}
	note_folding_done(&u->notes);
}

static void tell_uncovered(struct session *s, const struct doctor_allocators *allocators)
{
	entry_hooks_drop_notes(&s->hooks, &s->view.modules, &s->view.plan);
	struct uncovered u = { .s = s, .any = doctor_allocators_tell_uncovered(allocators, s) };

	for (size_t i = 0; i < s->view.plan.refusal_count; i++)
		add_uncovered(&u, s->view.plan.refusals[i].text);
	for (size_t i = 0; i < s->view.plan.note_count; i++) {
		char text[NOTE_FORM_TEXT];
		add_uncovered(&u, plan_note_text(&s->view.plan.notes[i], &s->view.modules, text));
	}
	doctor_fact_lines("not covered", "", s->view.modules.unread);
	u.any |= s->view.modules.unread[0];
	for (size_t i = 0; i < s->view.modules.count; i++) {
		const struct elf_module *m = &s->view.modules.list[i];
		if (!s->view.coverage[i].rows && !m->is_vdso && m->exec_end > m->exec_start)
			add_no_rows(&u, m);
	}
	tell_folded(&u);
	if (!u.any)
		doctor_fact("not covered", "nothing known");
}

static void tell_cost(const struct session *s, uint64_t prepared_ns)
{
	char text[SIZE_TEXT], tables[SIZE_TEXT], most[SIZE_TEXT], python[PATCHED_WORDS_TEXT];

	patched_words_of_python(python, " and ", s->python.functions.word_count);
	doctor_fact("cost", "%s of code scanned, %s of unwind tables, %zu GOT entries%s by %zu trampolines",
	            size_format((double)s->view.plan.text_bytes, text),
	            size_format((double)s->recording.tables.used, tables), s->view.plan.entry_count, python,
	            s->view.plan.trampoline_count);
	doctor_fact("", "preparation took %.0f ms (the process runs meanwhile); the dump grows up to %s",
	            (double)prepared_ns / 1e6, size_format((double)s->options.max_bytes, most));
}

static void tell_remains(const struct session *s)
{
	pid_t holder = session_lock_holder(&s->target);
	struct stub_place cave;

	if (s->payload.base && holder)
		doctor_fact("remains", "the payload of memattach %d, which is running, at 0x%llx", holder,
		            (unsigned long long)s->payload.base);
	else if (s->payload.base)
		doctor_fact("remains", "the payload of %s, at 0x%llx",
		            other_session_is_inherited(s) ? "a session of the process that it was forked from"
		                                          : "a memattach that has ended",
		            (unsigned long long)s->payload.base);
	else if (old_stub_cave(s, &cave))
		doctor_fact("remains", "a stub in the padding at 0x%llx", (unsigned long long)cave.code);
	else
		doctor_fact("remains", "none of an earlier memattach");
}

/* What an attach prepares, without the dump. */
static int prepare(struct session *s, struct err *e)
{
	const struct got_plan_options options = { .groups = s->options.groups };

	int rc = payload_place_find(s, e);
	if (rc == 0 && !s->payload.base)
		rc = loader_choice_make(s, e);
	rc = rc ?: inspect_choose(s, e);
	if (rc == 0)
		rc = got_plan_make(&s->view.plan, &s->view.modules, &s->view.libc, &s->memory, &s->view.maps, &options,
		                   e);
	if (rc < 0)
		return rc;
	return record_compile(s, e);
}

static bool cannot_suspend_filter(struct err *e)
{
	struct permission p;

	permission_read(&p, getpid());
	const char *why = permission_to_suspend_filter(&p.self);
	if (why)
		err_set(e, EPERM, "every thread has a seccomp filter; %s", why);
	return why != NULL;
}

static int verdict(const char *why)
{
	doctor_fact("verdict", "%s%s", why ? "an attach would be refused: " : "can be attached to", why ? why : "");
	return why != NULL;
}

int doctor_report(struct session *s)
{
	struct err e;
	size_t filtered, threads;

	tell_process(s);
	uint64_t start = clock_monotonic_ns();
	int rc = inspect_session(s, &e);
	tell_permission(s);
	if (rc < 0)
		return verdict(e.text);
	bool suitable = tell_threads(s, &filtered, &threads);
	tell_libc(s);
	rc = prepare(s, &e);
	tell_remains(s);
	if (rc < 0)
		return verdict(e.text);
	if (session_lock_holder(&s->target))
		return verdict("another memattach profiles it");
	tell_loader(s);
	tell_modules(s);
	struct doctor_allocators allocators;
	doctor_allocators_find(&allocators, s);
	doctor_allocators_tell(&allocators, s);
	rc = plan_relieve(s, &e);
	doctor_python(s);
	doctor_java(s);
	doctor_allocators_tell_hooks(&allocators, s);
	tell_uncovered(s, &allocators);
	tell_cost(s, clock_monotonic_ns() - start);
	if (s->options.verbose) {
		doctor_allocators_details(&allocators, s);
		doctor_details(s);
	}
	doctor_allocators_done(&allocators);
	if (rc < 0 || inspect_check_loader(s, &e) < 0 || inspect_check_threads(s, &e) < 0)
		return verdict(e.text);
	if (!suitable)
		return verdict("no thread can be stopped now");
	if (filtered == threads && cannot_suspend_filter(&e))
		return verdict(e.text);
	if (!s->view.plan.entry_count && s->hooks.count == 0 && !s->payload.base)
		return verdict("no module calls an allocation function through a table that could be patched");
	return verdict(NULL);
}
