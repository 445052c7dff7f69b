/* SPDX-License-Identifier: MIT */
#include "html/html_machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "html/html_data.h"
#include "html/html_part.h"
#include "html/html_table.h"
#include "output/frame_name.h"

#define ROW_BYTES 500u      /* of numbers and punctuation */
#define TABLE_BYTES 500000u /* of each kind */
#define NAME_TEXT 600u
#define NO_PART UINT32_MAX

enum { PROCESSES, PROGRAMS };

/* A report of its own: of a process or a program. */
struct part {
	unsigned kind;
	size_t row; /* in the order of the table */
	double weight;
	char *text; /* NULL: none */
	size_t bytes;
};

struct machine_page {
	const struct report *report;
	uint32_t *row_of[SESSION_KINDS]; /* of a group's number */
	struct part *parts;
	size_t part_count;
	uint32_t *part_of[2]; /* of a row; NO_PART */
};

static const struct groups *groups_of(const struct machine_page *m, unsigned kind)
{
	return &m->report->session_groups[kind];
}

static size_t rows_of(const struct machine_page *m, unsigned kind)
{
	size_t n = groups_of(m, kind)->count;

	return n < HTML_MACHINE_ROWS ? n : HTML_MACHINE_ROWS;
}

static uint32_t row_of(const struct machine_page *m, const struct recorded_session *s, unsigned kind)
{
	return m->row_of[kind][s->groups[kind]];
}

static int find_rows(struct machine_page *m, unsigned kind)
{
	const struct groups *g = groups_of(m, kind);

	m->row_of[kind] = calloc(g->count + 1, sizeof *m->row_of[kind]);
	if (!m->row_of[kind])
		return -ENOMEM;
	for (size_t i = 0; i < g->count; i++)
		m->row_of[kind][g->list[i].number] = (uint32_t)i;
	return 0;
}

/* ---- reports of single ones ---- */

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind) : (x->row > y->row) - (x->row < y->row);
}

/* Of processes in which anything was sampled, and of programs with several of them. */
static int choose_parts(struct machine_page *m)
{
	size_t most[] = { HTML_MACHINE_PARTS * 3 / 4, HTML_MACHINE_PARTS / 4 };

	m->parts = calloc(HTML_MACHINE_PARTS, sizeof *m->parts);
	if (!m->parts)
		return -ENOMEM;
	for (unsigned kind = PROCESSES; kind <= PROGRAMS; kind++) {
		size_t n = rows_of(m, kind), chosen = 0;
		m->part_of[kind] = malloc((n + 1) * sizeof *m->part_of[kind]);
		if (!m->part_of[kind])
			return -ENOMEM;
		memset(m->part_of[kind], 0xff, (n + 1) * sizeof *m->part_of[kind]);
		for (size_t i = 0; i < n && chosen < most[kind]; i++) {
			const struct group *g = &groups_of(m, kind)->list[i];
			if (!g->inclusive[FIGURE_ALLOCATED_BYTES].samples || (kind == PROGRAMS && g->sessions < 2))
				continue;
			m->parts[m->part_count++] = (struct part){
				.kind = kind, .row = i, .weight = g->inclusive[FIGURE_ALLOCATED_COUNT].samples
			};
			chosen++;
		}
	}
	qsort(m->parts, m->part_count, sizeof *m->parts, compare_parts);
	return 0;
}

/* A single one is called by its dump: its head tells the process. */
static void name_part(const struct group *g, const struct recorded_session *s, char name[NAME_TEXT])
{
	const char *slash = strrchr(s->name, '/');

	if (g->sessions > 1)
		snprintf(name, NAME_TEXT, "%s, %u sessions", g->name, g->sessions);
	else
		snprintf(name, NAME_TEXT, "%s", slash ? slash + 1 : s->name);
}

static int make_part(struct machine_page *m, size_t number, size_t limit)
{
	struct part *p = &m->parts[number];
	const struct report *r = m->report;
	const struct group *g = &groups_of(m, p->kind)->list[p->row];
	AUTO_FREE size_t *sessions = calloc(g->sessions, sizeof *sessions);
	char name[NAME_TEXT];
	size_t count = 0;

	if (!sessions)
		return -ENOMEM;
	for (size_t i = 0; i < r->session_count && count < g->sessions; i++)
		if (row_of(m, &r->sessions[i], p->kind) == p->row)
			sessions[count++] = i;
	name_part(g, &r->sessions[sessions[0]], name);
	const struct html_part made = { sessions, count, name, (unsigned)number };
	int s = html_part_make(&made, r, limit, &p->text, &p->bytes);
	if (p->text)
		m->part_of[p->kind][p->row] = (uint32_t)number;
	return s;
}

static int make_parts(struct machine_page *m, size_t room)
{
	int s = choose_parts(m);

	for (size_t i = 0; !s && i < m->part_count; i++) {
		progress_at(m->report->options.progress, "making reports of processes", i, m->part_count);
		s = make_part(m, i, room / (m->part_count - i));
		room -= m->parts[i].bytes;
	}
	return s;
}

/* ---- the table ---- */

static void put_part(const struct machine_page *m, unsigned kind, size_t row, struct json *j)
{
	uint32_t part = kind <= PROGRAMS ? m->part_of[kind][row] : NO_PART;

	if (part == NO_PART)
		json_string(j, NULL, NULL);
	else
		json_unsigned(j, NULL, part);
}

/* session: one of the row. */
static int put_row(const struct machine_page *m, unsigned kind, size_t row, const struct recorded_session *session,
                   struct name_text *buffer, struct json *j)
{
	const struct group *g = &groups_of(m, kind)->list[row];
	const struct report_row sums = report_thread(m->report, g);

	json_array_line(j, NULL);
	int s = html_put_name(j, g->name, buffer);
	json_unsigned(j, NULL, g->sessions);
	json_number(j, NULL, g->private_growth);
	put_part(m, kind, row, j);
	for (unsigned other = PROGRAMS; kind == PROCESSES && other < SESSION_KINDS; other++)
		json_unsigned(j, NULL, row_of(m, session, other));
	html_figures(m->report, &sums, FIGURE_COUNT, j);
	json_array_end(j);
	return s;
}

static int put_kind(const struct machine_page *m, unsigned kind, struct json *j)
{
	const struct report *r = m->report;
	size_t count = rows_of(m, kind), bytes = 0, i = 0;
	AUTO_FREE const struct recorded_session **of = calloc(count + 1, sizeof(struct recorded_session *));
	struct name_text buffer = { 0 };
	int s = of ? 0 : -ENOMEM;

	for (size_t k = 0; !s && k < r->session_count; k++)
		if (row_of(m, &r->sessions[k], kind) < count)
			of[row_of(m, &r->sessions[k], kind)] = &r->sessions[k];
	json_object(j, NULL);
	json_array(j, "rows");
	for (; !s && i < count; i++) {
		bytes += ROW_BYTES + html_name_bytes(groups_of(m, kind)->list[i].name);
		if (bytes > TABLE_BYTES)
			break;
		s = put_row(m, kind, i, of[i], &buffer, j);
	}
	json_array_end(j);
	json_unsigned(j, "more", groups_of(m, kind)->count - i);
	json_object_end(j);
	frame_name_done(&buffer);
	return s;
}

static int put_unseen(const struct machine_page *m, struct json *j)
{
	const struct machine *machine = m->report->options.machine;
	size_t shown = machine->unseen_count < HTML_MACHINE_UNSEEN ? machine->unseen_count : HTML_MACHINE_UNSEEN;
	struct name_text buffer = { 0 };
	int s = 0;

	json_array(j, "notProfiled");
	for (size_t i = 0; !s && i < shown; i++) {
		json_array_line(j, NULL);
		json_unsigned(j, NULL, machine->unseen[i].count);
		s = html_put_name(j, machine->unseen[i].name, &buffer);
		s = s ?: html_put_name(j, machine->unseen[i].why, &buffer);
		json_array_end(j);
	}
	json_array_end(j);
	json_unsigned(j, "notListed", machine->unseen_count - shown);
	frame_name_done(&buffer);
	return s;
}

static int put_all(const struct machine_page *m, FILE *out)
{
	struct json j = { .out = out, .in_markup = true };
	int s = 0;

	for (size_t i = 0; i < m->part_count; i++)
		fwrite(m->parts[i].text ? m->parts[i].text : "", 1, m->parts[i].bytes, out);
	fputs("<script type=\"application/json\" id=\"machine\">", out);
	json_object(&j, NULL);
	json_array(&j, "tables");
	for (unsigned kind = 0; !s && kind < SESSION_KINDS; kind++)
		s = put_kind(m, kind, &j);
	json_array_end(&j);
	s = s ?: put_unseen(m, &j);
	if (!s)
		json_object_end(&j);
	fputs("</script>\n", out);
	return s;
}

static void done(struct machine_page *m)
{
	for (size_t i = 0; i < m->part_count; i++)
		free(m->parts[i].text);
	for (unsigned kind = 0; kind < SESSION_KINDS; kind++)
		free(m->row_of[kind]);
	free(m->part_of[PROCESSES]);
	free(m->part_of[PROGRAMS]);
	free(m->parts);
}

int html_machine(const struct report *r, char **text, size_t *bytes)
{
	const size_t tables = SESSION_KINDS * TABLE_BYTES + HTML_MACHINE_UNSEEN * ROW_BYTES;
	struct machine_page m = { .report = r };
	int s = 0;

	*text = NULL;
	*bytes = 0;
	for (unsigned kind = 0; !s && kind < SESSION_KINDS; kind++)
		s = find_rows(&m, kind);
	s = s ?: make_parts(&m, HTML_MACHINE_BYTES - tables);
	FILE *out = s ? NULL : open_memstream(text, bytes);
	if (out) {
		s = put_all(&m, out);
		s = fclose(out) ? -ENOMEM : s;
	} else if (!s) {
		s = -ENOMEM;
	}
	done(&m);
	return s;
}
