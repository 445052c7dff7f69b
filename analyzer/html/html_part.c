/* SPDX-License-Identifier: MIT */
#include "html/html_part.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "html/html_data.h"
#include "html/html_head.h"
#include "html/html_leaks.h"
#include "html/html_tree.h"

#define TAGS_BYTES (400u + HTML_LEAK_ROWS * HTML_LEAK_ENTRY_BYTES)
#define TABLE_PART 4u /* of the room is for the table */
#define CHANGED                                                                                                        \
	"This dump was written again while the report was made: what is below is younger than the table of processes."

/* The same session, as it was when it was read first? */
static bool is_same(const struct recorded_session *a, const struct recorded_session *b)
{
	return a->id == b->id && a->duration_ns == b->duration_ns &&
	       a->counters[DUMP_COUNTER_samples_taken] == b->counters[DUMP_COUNTER_samples_taken];
}

/* What cannot be read any more is left out: the report says how many dumps it has. */
static int read_sessions(struct report *part, const struct report *r, const size_t *sessions, size_t count, bool *same)
{
	for (size_t i = 0; i < count; i++) {
		const struct recorded_session *s = &r->sessions[sessions[i]];
		struct dump *dump;
		if (dump_open(s->name, &dump, ERR_IGNORED)) {
			*same = false;
			continue;
		}
		int rc = report_add(part, dump, s->name, ERR_IGNORED);
		dump_close(dump);
		if (rc)
			return rc;
		*same = *same && is_same(s, &part->sessions[part->session_count - 1]);
	}
	return part->session_count ? report_finish(part, ERR_IGNORED) : 0;
}

static void begin(FILE *out, const char *id, unsigned number)
{
	fprintf(out, "<script type=\"application/json\" id=\"%s%u\">", id, number);
}

static int put_head(const struct report *part, const char *name, unsigned number, bool same, size_t limit, FILE *out)
{
	struct json j = { .out = out, .in_markup = true };

	begin(out, "head", number);
	return html_head(part, name, limit / TABLE_PART, same ? NULL : CHANGED, &j);
}

static int put_tree(const struct html_tree *t, unsigned number, FILE *out)
{
	struct json j = { .out = out, .in_markup = true };
	AUTO_FREE uint32_t *order = calloc(t->frames.count, sizeof *order);

	if (!order)
		return -ENOMEM;
	fputs("</script>\n", out);
	begin(out, "frames", number);
	json_object(&j, NULL);
	html_tree_coarse(t, &j);
	int s = html_data_frames(t, &j, order);
	s = s ?: html_leak_entries(t, &j);
	if (s)
		return s;
	json_object_end(&j);
	fputs("</script>\n", out);
	begin(out, "nodes", number);
	html_data_nodes(t, order, out);
	fputs("</script>\n", out);
	return 0;
}

/* As much of the tree as there is room for behind the head. 1: none at all. */
static int put_part(const struct report *part, const char *name, unsigned number, bool same, size_t limit, FILE *out)
{
	struct html_tree tree = { 0 };
	int s = put_head(part, name, number, same, limit, out);
	long used = s || fflush(out) ? 0 : ftell(out);

	if (s || used < 0)
		return s;
	if ((size_t)used + TAGS_BYTES > limit)
		return 1;
	s = html_tree_init(&tree, part);
	s = s ?: html_tree_fit(&tree, limit - (size_t)used - TAGS_BYTES);
	s = s ?: put_tree(&tree, number, out);
	html_tree_done(&tree);
	return s;
}

int html_part_make(const struct html_part *p, const struct report *r, size_t limit, char **text, size_t *bytes)
{
	struct report_options options = r->options;
	struct report part;
	bool same = true;

	*text = NULL;
	*bytes = 0;
	options.by = BY_STACK;
	options.machine = NULL;
	options.progress = NULL;
	options.processes = false;
	options.timeline = options.moments = 0;
	int s = report_init(&part, &options, ERR_IGNORED);
	s = s ?: read_sessions(&part, r, p->sessions, p->count, &same);
	FILE *out = s || !part.session_count ? NULL : open_memstream(text, bytes);
	if (out) {
		s = put_part(&part, p->name, p->number, same, limit, out);
		s = fclose(out) ? -ENOMEM : s;
	} else if (!s && part.session_count) {
		s = -ENOMEM;
	}
	report_done(&part);
	if (s || *bytes > limit) {
		free(*text);
		*text = NULL;
		*bytes = 0;
	}
	return s == -ENOMEM ? s : 0;
}
