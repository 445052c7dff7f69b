/* SPDX-License-Identifier: MIT */
#include "session/session.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "host/say.h"
#include "session/java_names.h"

#define CALL_NS 5000000000ull     /* one remote call; a loader that waits for a lock longer than that goes on alone */
#define PATIENCE_NS 5000000000ull /* to attach can be given up at no cost, to detach not */

void session_init(struct session *s, const struct session_options *options)
{
	*s = (struct session){
		.options = *options,
		.maps_payload = options->loader == LOADER_OWN,
		.target = { .pidfd = -1, .lock_fd = { -1, -1 }, .announced_fd = -1 },
		.memory.mem_fd = -1,
		.writer.fd = -1,
		.view.next_module_id = 1,
		.symbols = { .program = -1, .root = -1 },
		.recording = { .dump.fd = -1, .file.directory = -1, .tables = { .fd = -1, .own = -1 } },
	};
}

void session_forget_view(struct session *s)
{
	safe_points_done(&s->view.points);
	got_plan_free(&s->view.plan);
	modules_free(&s->view.modules);
	maps_free(&s->view.maps);
	free(s->view.coverage);
	s->view.coverage = NULL;
}

void session_done(struct session *s)
{
	session_forget_view(s);
	symbol_sources_close(&s->symbols);
	for (unsigned i = 0; i < s->report_count; i++)
		output_file_done(&s->reports[i]);
	snapshot_free(&s->outcome.before);
	unwind_tables_close(&s->recording.tables);
	dump_writer_close(&s->recording.dump);
	dump_file_close(&s->recording.file);
	target_writer_close(&s->writer);
	target_memory_close(&s->memory);
	target_close(&s->target);
	java_names_free(s->java_names);
	free(s->python.notes);
	free(s->python.unseen);
	free(s->python.objects);
	python_paths_done(&s->python.paths);
	free(s->python.details);
	free(s->outcome.residue);
	free(s->outcome.notes);
	free(s->recording.named_threads);
	string_table_done(&s->recording.unseen);
	entry_hooks_free(&s->hooks);
	code_runs_free(&s->code_runs);
	changes_free(&s->changes);
	session_init(s, &s->options);
}

void session_say(const struct session *s, const char *format, ...)
{
	va_list ap;

	if (s->options.quiet)
		return;
	va_start(ap, format);
	if (!s->held || !say_add_line(&s->held->text, format, ap))
		say_line(stderr, 0, format, ap);
	va_end(ap);
}

void session_say_lines(const struct session *s, const char *lines)
{
	for (const char *line = lines; line && *line;) {
		int length = (int)strcspn(line, "\n");
		session_say(s, "%.*s", length, line);
		line += length + (line[length] == '\n');
	}
}

void session_add_residue(struct session *s, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say_add_line(&s->outcome.residue, format, ap);
	va_end(ap);
}

void session_add_note(struct session *s, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say_add_line(&s->outcome.notes, format, ap);
	va_end(ap);
}

void session_borrower(const struct session *s, struct borrower *b, uint64_t extra_bytes, uint64_t *longest_ns)
{
	*b = (struct borrower){
		.target = &s->target,
		.memory = &s->memory,
		.writer = &s->writer,
		.points = &s->view.points,
		.cave = s->view.cave,
		.search_ns = s->options.deadline_ns,
		.call_ns = CALL_NS,
		.extra_bytes = extra_bytes,
		.longest_ns = longest_ns,
	};
}

void session_patient_borrower(const struct session *s, struct borrower *b, uint64_t *longest_ns)
{
	session_borrower(s, b, 0, longest_ns);
	b->patient = true;
	if (b->search_ns < PATIENCE_NS)
		b->search_ns = PATIENCE_NS;
}
