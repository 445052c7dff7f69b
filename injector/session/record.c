/* SPDX-License-Identifier: MIT */
/* What the dump says about the modules of the target, and what will not be seen. */
#include "session/record.h"

#include <stdlib.h>
#include <string.h>

#include "session/address_space.h"
#include "base/cleanup.h"
#include "dump/note_folding.h"
#include "process/task.h"
#include "unwind/unwind_cache.h"
#include "process/working_directory.h"
#include "base/order.h"

/* A target that makes and ends threads all the time shall not fill the dump with their names. */
#define RECORDED_NAMES_MAX 65536u

/* Of a size that the target has room for; a payload that is there is taken out without tables in the target. */
static int create_tables(struct session *s, struct err *e)
{
	uint64_t bytes = UNWIND_TABLES_MAX_BYTES;
	int rc = s->payload.base || s->detaching ? 0 : address_space_fit(s, &bytes, e);

	return rc < 0 ? rc : unwind_tables_create(&s->recording.tables, bytes, e);
}

int record_compile_rows(struct session *s, struct err *e)
{
	struct unwind_cache cache = { .files.dir = -1 };
	int rc = s->view.coverage || s->recording.tables.fd >= 0 ? 0 : create_tables(s, e);

	if (rc < 0 || s->view.coverage)
		return rc;
	s->view.coverage = calloc(s->view.modules.count + 1, sizeof *s->view.coverage);
	if (!s->view.coverage)
		return err_set(e, ENOMEM, "out of memory");
	if (!s->options.no_cache && unwind_cache_is_for(s->target.pid))
		unwind_cache_open(&cache, UNWIND_CACHE_MAX_BYTES);
	s->recording.tables.cache = &cache;
	rc = unwind_tables_compile(&s->recording.tables, &s->view.modules, &s->memory, &s->view.maps, s->view.coverage,
	                           e);
	s->recording.tables.cache = NULL;
	unwind_cache_close(&cache);
	return rc;
}

int record_compile(struct session *s, struct err *e)
{
	int rc = record_compile_rows(s, e);

	return rc < 0 ? rc : unwind_tables_index(&s->recording.tables, &s->view.modules, &s->view.maps, e);
}

/* As memanalyze calls it. */
static void say_note(const struct session *s, uint32_t kind, const char *text)
{
	session_say(s, "%s: %s", kind == DUMP_NOTE_NO_UNWIND ? "stacks" : "not seen", text);
}

int record_unseen(struct session *s, enum dump_note_kind kind, const char *text, struct err *e)
{
	say_note(s, kind, text);
	return dump_writer_note(&s->recording.dump, kind, text, e);
}

/* 1: the text was said before; from now on it was. */
static int was_said(struct session *s, const char *text, struct err *e)
{
	uint32_t number;

	if (string_table_find(&s->recording.unseen, text, &number))
		return 1;
	return string_table_add(&s->recording.unseen, text, &number) ? err_set(e, ENOMEM, "out of memory") : 0;
}

int record_unseen_once(struct session *s, enum dump_note_kind kind, const char *text, struct err *e)
{
	const int rc = was_said(s, text, e);

	return rc ? rc < 0 ? rc : 0 : record_unseen(s, kind, text, e);
}

/* Notes that come together: each in the dump, and on the terminal those that are alike as one. */
struct unseen_notes {
	struct session *s;
	struct note_folding told;
};

static int add_note(struct unseen_notes *n, enum dump_note_kind kind, const char *text, struct err *e)
{
	int rc = was_said(n->s, text, e);

	if (rc)
		return rc < 0 ? rc : 0;
	if (n->s->options.verbose)
		return record_unseen(n->s, kind, text, e);
	rc = dump_writer_note(&n->s->recording.dump, kind, text, e);
	return rc < 0 || note_folding_add(&n->told, kind, text) == 0 ? rc : err_set(e, ENOMEM, "out of memory");
}

static void tell_notes(struct unseen_notes *n)
{
	char text[NOTE_FORM_ALL_TEXT];

	for (size_t i = 0; i < n->told.count; i++) {
		note_folding_text(&n->told.list[i], " (-v names each)", text);
		say_note(n->s, n->told.list[i].kind, text);
	}
	note_folding_done(&n->told);
}

/* One note per line of text. */
static int add_lines(struct unseen_notes *n, enum dump_note_kind kind, const char *text, struct err *e)
{
	AUTO_FREE char *copy = strdup(text ? text : "");
	char *rest = NULL;
	int rc = 0;

	if (!copy)
		return err_set(e, ENOMEM, "out of memory");
	for (char *line = strtok_r(copy, "\n", &rest); line && rc == 0; line = strtok_r(NULL, "\n", &rest))
		rc = add_note(n, kind, line, e);
	return rc;
}

static int add_no_rows(struct unseen_notes *n, const struct elf_module *m, const struct unwind_coverage *coverage,
                       struct err *e)
{
	char text[NOTE_FORM_TEXT], why[sizeof coverage->text + 2];

	snprintf(why, sizeof why, "%s%s", coverage->text[0] ? ": " : "", coverage->text);
	note_form_write(text, NOTE_FORM_NO_ROWS, elf_module_name(m), NULL, why);
	return add_note(n, DUMP_NOTE_NO_UNWIND, text, e);
}

static int record_each(struct session *s, uint32_t first_id, struct unseen_notes *notes, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < s->view.modules.count && rc == 0; i++) {
		const struct elf_module *m = &s->view.modules.list[i];
		uint32_t entries = 0;
		if (m->id < first_id)
			continue;
		for (size_t k = 0; k < s->view.plan.entry_count; k++)
			entries += s->view.plan.entries[k].module == i;
		for (size_t k = 0; k < s->hooks.count; k++)
			entries += s->hooks.list[k].module_start == m->start;
		if (m->start != s->payload.base) /* no stack of the dump has frames there */
			symbol_sources_add(&s->symbols, m, &s->memory, &s->view.maps);
		rc = dump_writer_module(&s->recording.dump, m, s->view.coverage[i].rows, entries,
		                        m == s->view.libc.allocator ? DUMP_MODULE_ALLOCATOR : 0, e);
		if (rc == 0 && s->view.coverage[i].rows == 0 && !m->is_vdso && m->exec_end > m->exec_start)
			rc = add_no_rows(notes, m, &s->view.coverage[i], e);
	}
	return rc;
}

/* What the plan and the list of modules say, and at the attach what the hooks do. */
static int add_plan(struct session *s, bool first, struct unseen_notes *notes, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < s->view.plan.refusal_count && rc == 0; i++)
		rc = add_note(notes, DUMP_NOTE_NOT_PATCHED, s->view.plan.refusals[i].text, e);
	for (size_t i = 0; i < s->view.plan.note_count && rc == 0; i++) {
		char text[NOTE_FORM_TEXT];
		rc = add_note(notes, DUMP_NOTE_STATIC, plan_note_text(&s->view.plan.notes[i], &s->view.modules, text),
		              e);
	}
	rc = rc ?: add_lines(notes, DUMP_NOTE_NOT_PATCHED, s->view.modules.unread, e);
	if (rc == 0 && first)
		rc = add_lines(notes, DUMP_NOTE_STATIC, s->hooks.notes, e);
	if (rc == 0 && first)
		rc = add_lines(notes, DUMP_NOTE_STATIC, s->python.unseen, e);
	if (rc == 0 && first)
		rc = add_lines(notes, DUMP_NOTE_OTHER, s->python.notes, e);
	if (rc == 0 && first && s->python.objects)
		rc = dump_writer_note(&s->recording.dump, DUMP_NOTE_OTHER, s->python.objects, e);
	return rc;
}

int record_modules(struct session *s, uint32_t first_id, struct err *e)
{
	struct unseen_notes notes = { .s = s };
	int rc = record_each(s, first_id, &notes, e);

	rc = rc ?: add_plan(s, first_id == 1, &notes, e);
	tell_notes(&notes);
	return rc;
}

int record_hooks(struct session *s, struct err *e)
{
	struct unseen_notes notes = { .s = s };
	const int rc = add_lines(&notes, DUMP_NOTE_STATIC, s->hooks.notes, e);

	tell_notes(&notes);
	return rc;
}

/* A thread that the dump has a name of, the last one that was recorded. */
struct named_thread {
	pid_t tid;
	char name[sizeof((struct dump_thread *)0)->name];
};

ORDER_BY(by_tid, struct named_thread, tid);

/* Leaves the name empty if the thread is gone. */
static void read_name(const struct session *s, struct named_thread *thread)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", s->target.pid, thread->tid);
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	if (!f || !fgets(thread->name, sizeof thread->name, f))
		thread->name[0] = '\0';
	thread->name[strcspn(thread->name, "\n")] = '\0';
}

/* Samples have the number that the C library keeps, so the name goes with that one. */
static int record_name(struct session *s, const struct named_thread *thread, struct err *e)
{
	return dump_writer_thread(&s->recording.dump, (uint32_t)task_inner_tid(s->target.pid, thread->tid),
	                          thread->name, e);
}

int record_threads(struct session *s, bool again, struct err *e)
{
	AUTO_FREE pid_t *tids = NULL;
	size_t count, known = s->recording.named_thread_count;

	int rc = target_tids(&s->target, &tids, &count, e);
	if (rc < 0)
		return rc;
	struct named_thread *grown = realloc(s->recording.named_threads, (known + count) * sizeof *grown);
	if (!grown)
		return err_set(e, ENOMEM, "out of memory");
	s->recording.named_threads = grown;
	for (size_t i = 0; i < count && rc == 0 && s->recording.recorded_names < RECORDED_NAMES_MAX; i++) {
		struct named_thread thread = { .tid = tids[i] };
		struct named_thread *old = known ? bsearch(&thread, grown, known, sizeof *grown, by_tid) : NULL;
		if (old && !again)
			continue;
		read_name(s, &thread);
		if (!thread.name[0] || (old && !strcmp(old->name, thread.name)))
			continue;
		rc = record_name(s, &thread, e);
		s->recording.recorded_names++;
		if (rc == 0 && old)
			*old = thread;
		else if (rc == 0)
			grown[s->recording.named_thread_count++] = thread;
	}
	qsort(grown, s->recording.named_thread_count, sizeof *grown, by_tid);
	return rc;
}

static int read_paths(struct session *s, struct err *e)
{
	char directory[WORKING_DIRECTORY_TEXT];
	struct budget budget;

	budget_start(&budget, PYTHON_PATHS_BYTES, PYTHON_PATHS_WORK);
	struct python_view view = {
		.modules = &s->view.modules,
		.memory = target_memory_charged(&s->memory, &budget),
		.release = python_release_find(s->python.layout.version >> 16 & 0xff),
		.runtime = s->python.runtime,
	};
	working_directory_read(&s->target, directory);
	return python_paths_read(&s->python.paths, &view, directory, e);
}

void record_paths(struct session *s)
{
	uint32_t recorded = s->python.paths.count;
	struct err e;

	if (!s->python.layout.version)
		return;
	if (read_paths(s, &e) < 0 && s->options.verbose)
		session_say(s, "memattach: sys.path cannot be read: %s", e.text);
	for (; recorded < s->python.paths.count; recorded++)
		if (dump_writer_path(&s->recording.dump, s->python.paths.list[recorded], &e) < 0)
			return;
}
