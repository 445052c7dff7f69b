/* SPDX-License-Identifier: MIT */
/* The head of the text report. */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/printable.h"
#include "base/size.h"
#include "text/text.h"
#include "base/line_width.h"

#define SESSIONS_LISTED 8
#define RATES_LISTED 16
#define HEAD_COLUMNS 100

static const char *format_time(uint64_t ns, char text[64])
{
	time_t seconds = (time_t)(ns / 1000000000u);
	struct tm tm;

	if (!ns || !localtime_r(&seconds, &tm) || !strftime(text, 64, "%Y-%m-%d %H:%M:%S %z", &tm))
		strcpy(text, "an unknown time");
	return text;
}

static void put_end(const struct text *t, const struct recorded_session *s)
{
	switch (s->end) {
	case DUMP_END_RUNNING: fputs("still running", t->out); break;
	case DUMP_END_DETACHED: fputs("ended by detaching", t->out); break;
	case DUMP_END_ABANDONED: fputs("abandoned: memattach died or could not go on", t->out); break;
	case DUMP_END_KILLED:
		fprintf(t->out, "target killed by signal %d", s->end_detail);
		if (sigabbrev_np(s->end_detail))
			fprintf(t->out, " (SIG%s)", sigabbrev_np(s->end_detail));
		break;
	case DUMP_END_EXITED:
		if (s->state == DUMP_STATE_EXECED)
			fputs("target called execve", t->out);
		else if (s->end_detail < 0)
			fputs("target ended by itself", t->out);
		else
			fprintf(t->out, "target exited with status %d", s->end_detail);
		break;
	}
}

/* The dump of a session that has not ended, or whose end nobody has seen. */
static void put_copy(const struct text *t, const struct recorded_session *s)
{
	char when[64];

	if (!s->is_copy)
		return;
	format_time(s->copied_ns, when);
	text_label(t, "copy");
	if (s->rest_missing)
		fprintf(t->out, "%srecorded until the last copy at %s; what came after is missing%s\n", t->warn, when,
		        t->plain);
	else
		fprintf(t->out, "still running; this copy is from %s\n", when);
}

static void put_session(const struct text *t, const struct recorded_session *s, const char *name)
{
	char command[128], program[512], host[128], when[64];

	printable_copy(s->command, command, sizeof command);
	printable_copy(s->program, program, sizeof program);
	printable_copy(s->host, host, sizeof host);
	text_label(t, name);
	fprintf(t->out, "%s%s%s, PID %d", t->bold, command, t->plain, s->pid);
	if (host[0])
		fprintf(t->out, " on %s", host);
	if (program[0])
		fprintf(t->out, ", %s", program);
	putc('\n', t->out);

	text_label(t, "session");
	fprintf(t->out, "%s%s, recorded for %s%.1f s, ", s->start_ns ? "" : "at ", format_time(s->start_ns, when),
	        s->no_end ? "at least " : "", (double)s->duration_ns / 1e9);
	put_end(t, s);
	putc('\n', t->out);
	put_copy(t, s);
}

static void put_pace(const struct text *t, bool old)
{
	struct report_pace pace = report_pace(t->report, old);
	char value[40], range[96], before[40], after[40];

	text_label(t, old ? "growth old" : "growth new");
	fprintf(t->out, "%s%s/s%s (%s) of live bytes in %.1f s", t->bold, size_format(pace.live.value, value), t->plain,
	        text_interval(FIGURE_LIVE_BYTES, &pace.live, range), pace.seconds);
	if (pace.private_start_bytes && pace.private_latest_bytes && !t->report->options.files)
		fprintf(t->out, "; private memory %s -> %s", size_format((double)pace.private_start_bytes, before),
		        size_format((double)pace.private_latest_bytes, after));
	putc('\n', t->out);
}

static void put_sessions(const struct text *t)
{
	const struct report *r = t->report;
	char number[40];

	if (r->options.diff && r->session_count == 2) {
		put_session(t, &r->sessions[1], "old");
		put_session(t, &r->sessions[0], "new");
		text_label(t, "comparison");
		fputs(r->same_session ? "one session at two times: blocks that live in both cancel out\n"
		                      : "two sessions: each knows only what was allocated since its own attach\n",
		      t->out);
		for (int old = 1; old >= 0 && report_has_pace(r); old--)
			put_pace(t, old);
		return;
	}
	/* Sessions that are rows of the report are not listed as well. */
	size_t listed = groups_of_sessions(r->options.by) && r->session_count > 1 ? 0 : SESSIONS_LISTED;
	for (size_t i = 0; i < r->session_count && i < listed; i++)
		put_session(t, &r->sessions[i], "target");
	if (listed && r->session_count > listed) {
		text_label(t, "");
		fprintf(t->out, "... and %s more\n", text_grouped((double)(r->session_count - listed), number));
	}
	if (r->session_count > 1) {
		text_label(t, "merged");
		fprintf(t->out, "the figures are sums over %s dumps\n", text_grouped((double)r->session_count, number));
	}
}

static void put_rate(const struct text *t)
{
	const struct report *r = t->report;
	uint64_t low = UINT64_MAX;
	uint64_t high = 0;
	char a[40], b[40];

	for (size_t i = 0; i < r->session_count; i++) {
		low = r->sessions[i].least_rate_bytes < low ? r->sessions[i].least_rate_bytes : low;
		high = r->sessions[i].largest_rate_bytes > high ? r->sessions[i].largest_rate_bytes : high;
	}
	text_label(t, "sampling");
	if (r->largest_rate <= 1)
		fputs("every allocation\n", t->out);
	else if (low == high)
		fprintf(t->out, "one sample per %s allocated, on average, at random\n", size_format((double)high, a));
	else
		fprintf(t->out, "one sample per %s to %s allocated, on average, at random\n",
		        size_format((double)low, a), size_format((double)high, b));
}

static void put_rate_change(const struct text *t, const struct recorded_session *s, const struct recorded_rate *c)
{
	char from[40], to[40], share[16];

	fprintf(t->out, "%.1f s: from %s to %s, ", c->seconds, size_format((double)c->old_bytes, from),
	        size_format((double)c->new_bytes, to));
	if (c->reason == DUMP_RATE_FULL)
		fprintf(t->out, "the table of live samples was crowded: thinned to one per %s\n",
		        size_format((double)c->thinned_bytes, share));
	else if (c->reason == DUMP_RATE_COSTLY)
		fprintf(t->out, "sampling cost %s (limit %g %%)\n", text_percent(c->overhead, share),
		        100 * s->max_overhead);
	else
		fprintf(t->out, "sampling cost %s\n", text_percent(c->overhead, share));
}

/* What sampling has cost, and how the rate was changed for it. */
static void put_cost(const struct text *t)
{
	const struct report *r = t->report;
	char share[16], number[40];
	size_t listed = 0, changes = 0;

	if (r->session_count == 1 && !isnan(r->sessions[0].overhead)) {
		const struct recorded_session *s = &r->sessions[0];
		char processor[16];
		text_label(t, "cost");
		fprintf(t->out, "sampling took %s of the process's CPU time, %s of a CPU",
		        text_percent(fmin(1, s->overhead), share), text_percent(s->processor, processor));
		if (s->max_overhead > 0)
			fprintf(t->out, " (limit %g %%, of a fifth of a CPU at least)", 100 * s->max_overhead);
		putc('\n', t->out);
		if (s->mapping_overhead >= TEXT_MAPPINGS_MIN) {
			text_label(t, "");
			fprintf(t->out, "to follow mappings took %s more, which no rate makes less\n",
			        text_percent(s->mapping_overhead, share));
		}
	}
	for (size_t i = 0; i < r->session_count; i++) {
		const struct recorded_session *s = &r->sessions[i];
		changes += s->rate_count;
		for (size_t k = 0; k < s->rate_count && listed < RATES_LISTED; k++) {
			text_label(t, listed++ ? "" : "rate");
			put_rate_change(t, s, &s->rates[k]);
		}
	}
	if (changes > listed) {
		text_label(t, "");
		fprintf(t->out, "... and %s more %s (--json has them all)\n",
		        text_grouped((double)(changes - listed), number),
		        text_plural((double)(changes - listed), "change", "changes"));
	}
}

/* What is known of the frees of blocks that are not in the figures. */
static void put_frees(const struct text *t)
{
	const struct report *r = t->report;
	char bytes[40], number[40];

	if (report_compares(r) || r->session_count != 1)
		return;
	const struct recorded_session *s = &r->sessions[0];
	text_label(t, "");
	if (s->frees_known)
		fprintf(t->out,
		        "%s blocks of %s or more that were not seen allocated were freed: older ones, or libc's own\n",
		        text_grouped((double)s->frees_unseen, number),
		        size_format((double)s->frees_unseen_bytes, bytes));
	else
		fputs("frees of older blocks are not counted: they cannot be told from those of blocks that were not "
		      "sampled\n",
		      t->out);
}

static void put_window(const struct text *t)
{
	const struct report_options *o = &t->report->options;

	text_label(t, "window");
	if (o->since_ns && o->at_ns)
		fprintf(t->out, "from %g s to %g s after the attach\n", (double)o->since_ns / 1e9,
		        (double)o->at_ns / 1e9);
	else if (o->since_ns)
		fprintf(t->out, "since %g s after the attach\n", (double)o->since_ns / 1e9);
	else if (o->peak)
		fprintf(t->out,
		        "the heap %g s after the attach, when most was live by one half of the samples; the other half "
		        "says what\n",
		        (double)o->at_ns / 1e9);
	else if (o->at_ns)
		fprintf(t->out, "the heap as it was %g s after the attach\n", (double)o->at_ns / 1e9);
	else
		fputs("only what was allocated since memattach attached is seen\n", t->out);
	put_frees(t);
}

static void put_samples(const struct text *t)
{
	const struct report *r = t->report;
	uint64_t taken = report_counter(r, DUMP_COUNTER_samples_taken);
	char a[40], b[40], c[40];

	text_label(t, "samples");
	fprintf(t->out, "%s taken, %s live, %s lost", text_grouped((double)taken, a),
	        text_grouped((double)r->total.sum[FIGURE_LIVE_COUNT].samples, b),
	        text_grouped((double)report_lost(r), c));
	if (r->lost_stack)
		fprintf(t->out, ", %s without a stack", text_grouped((double)r->lost_stack, a));
	putc('\n', t->out);
	text_label(t, "stacks");
	fprintf(t->out, "%s different; ", text_grouped((double)r->rows.count, a));
	uint64_t cut = report_counter(r, DUMP_COUNTER_stacks_truncated);
	uint64_t deep = report_counter(r, DUMP_COUNTER_stacks_deep);
	if (taken)
		fprintf(t->out, "%s of the samples have a stack that ends early",
		        text_percent(fmin(1, (double)(cut + deep) / (double)taken), a));
	else
		fputs("no sample", t->out);
	if (deep)
		fprintf(t->out, " (%s deeper than %u frames)", text_grouped((double)deep, b), DUMP_FRAMES_MAX);
	putc('\n', t->out);
}

/* In how many stacks a language is. */
static void put_language(const struct text *t, const char *label, const char *version, uint64_t in, uint64_t complete)
{
	char samples[40], share[16];

	text_label(t, label);
	fputs(version, t->out);
	if (in)
		fprintf(t->out, ", in the stacks of %s %s; %s of these have all of its frames",
		        text_grouped((double)in, samples), text_samples(in),
		        text_percent(fmin(1, (double)complete / (double)in), share));
	else
		fputs(", in no stack", t->out);
	putc('\n', t->out);
}

static void put_languages(const struct text *t)
{
	const struct report_python *python = &t->report->python;
	const struct report_java *java = &t->report->java;
	char version[PYTHON_VERSION_TEXT];

	if (python->version)
		put_language(t, "Python", report_python_version(python->version, version), python->samples,
		             python->complete);
	snprintf(version, sizeof version, "HotSpot %u", java->version);
	if (java->version)
		put_language(t, "Java", version, java->samples, java->complete);
}

/* Losses by name, and what they do to the figures. */
static void put_losses(const struct text *t)
{
	static const enum dump_counter losses[] = { DUMP_COUNTER_lost_busy,       DUMP_COUNTER_lost_live_full,
		                                    DUMP_COUNTER_lost_stack_full, DUMP_COUNTER_lost_history,
		                                    DUMP_COUNTER_frees_missed,    DUMP_COUNTER_lost_mappings };
#define COUNTER_TEXT_(name, text) text,
	static const char *const texts[] = { DUMP_COUNTER_LIST(COUNTER_TEXT_) };
#undef COUNTER_TEXT_
	const struct report *r = t->report;
	char line[LINE_TEXT], number[40];

	if (report_lost(r)) {
		snprintf(line, sizeof line,
		         "samples were lost: the figures are %s; the upper ends allow for what is missing",
		         r->largest_rate <= 1 ? "NOT exact but lower limits" : "too low");
		text_warning(t, "INCOMPLETE", line);
	}
	if (r->lost_stack)
		text_warning(t, "INCOMPLETE",
		             "samples have no stack, which had no room: each row may lack them; the upper ends allow "
		             "for that");
	if (r->lost_before)
		text_warning(t, "INCOMPLETE",
		             "samples were lost on the older side: the lower ends of growth allow for them");
	for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
		uint64_t n = report_counter(r, losses[i]);
		if (!n)
			continue;
		snprintf(line, sizeof line, "%s: %s", texts[losses[i]], text_grouped((double)n, number));
		text_warning(t, losses[i] == DUMP_COUNTER_lost_history ? "dropped" : "lost", line);
	}
	if (r->past_unknown && !filter_by_record(&r->options.filter))
		text_warning(t, "INCOMPLETE",
		             "the history does not reach back to that time: blocks that were freed since are missing");
}

static void put_memory(const struct text *t)
{
	const struct report_memory *m = &t->report->memory;
	char growth[40], live[40], resident[96];

	if (t->report->resident.known) {
		text_resident_facts(t);
		return;
	}
	if (text_resident_growth(m, resident)[0]) {
		text_label(t, "resident");
		fprintf(t->out, "%s\n", resident);
	}
	if (!m->known || m->mostly_unseen)
		return;
	text_label(t, "memory");
	fprintf(t->out, "private memory changed by %s %s; the live blocks are %s\n",
	        text_amount(FIGURE_LIVE_BYTES, m->private_growth, growth),
	        m->ended ? "until shortly before the end" : "meanwhile", size_format(m->live.value, live));
}

/* What of the files could not be read. */
static void put_damage(const struct text *t)
{
	const struct report *r = t->report;
	char line[LINE_TEXT], number[40];

	for (int i = 0; i < DUMP_SKIP_COUNT; i++) {
		uint64_t n = report_skipped(r, i);
		if (!n)
			continue;
		snprintf(line, sizeof line, "%s: %s", dump_skip_text(i), text_grouped((double)n, number));
		text_warning(t, i == DUMP_SKIP_busy ? "skipped" : "damage", line);
	}
}

/* Where the facts do not say it. */
static void put_copy_warning(const struct text *t)
{
	const struct report *r = t->report;

	if (r->session_count == 1 && !r->options.verbose)
		put_copy(t, &r->sessions[0]);
}

void text_warnings(const struct text *t)
{
	put_copy_warning(t);
	put_losses(t);
	text_notes(t);
	put_damage(t);
}

void text_facts(const struct text *t)
{
	put_sessions(t);
	put_rate(t);
	put_cost(t);
	put_samples(t);
	put_languages(t);
	put_window(t);
	put_memory(t);
}

void text_sessions(const struct text *t)
{
	put_sessions(t);
	if (t->report->options.at_ns || t->report->options.since_ns)
		put_window(t);
}

void text_head(const struct text *t, const char *name)
{
	const struct report *r = t->report;
	const struct recorded_session *s = r->sessions;
	char command[128], host[128], when[64], line[LINE_TEXT];

	if (r->session_count != 1) {
		fprintf(t->out, "%s%s%s", t->bold, name, t->plain);
		if (r->options.machine)
			fprintf(t->out, ": a directory of %s dumps", text_grouped((double)r->session_count, when));
		fputs("\n\n", t->out);
		return;
	}
	printable_copy(s->command, command, sizeof command);
	printable_copy(s->host, host, sizeof host);
	snprintf(line, sizeof line, "%s (PID %d%s%s), %s%.1f s from %s", command, s->pid, host[0] ? " on " : "", host,
	         s->no_end ? "at least " : "", (double)s->duration_ns / 1e9, format_time(s->start_ns, when));
	fprintf(t->out, "%s%s%s", t->bold, line, t->plain);
	if (s->end != DUMP_END_DETACHED) {
		fputs(", ", t->out);
		put_end(t, s);
	}
	int columns = t->columns < HEAD_COLUMNS ? (int)t->columns : HEAD_COLUMNS;
	int space = columns - (int)line_width_of(line) - (int)line_width_of(name);
	fprintf(t->out, "%*s%s\n\n", s->end == DUMP_END_DETACHED && space > 2 ? space : 2, "", name);
}
