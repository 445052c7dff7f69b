/* SPDX-License-Identifier: MIT */
#include "json/report_json.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "json/json_frames.h"
#include "json/json_trust.h"
#include "json/json_view.h"
#include "stats/leaks.h"
#include "report/unseen.h"

static const char *const figure_keys[] = { "live_bytes", "live_count", "allocated_bytes", "allocated_count" };

static void put_count(struct json *j, const char *name, struct estimate x)
{
	json_object(j, name);
	json_interval(j, &x);
	json_number(j, "unseen", x.unseen);
	json_object_end(j);
}

static void put_figure(struct json *j, enum report_figure f, struct estimate x)
{
	(report_is_bytes(f) ? json_bytes : put_count)(j, figure_keys[f], x);
}

static void put_figures(struct json *j, const struct report *r, const struct report_row *row)
{
	for (int f = 0; f < FIGURE_COUNT; f++)
		put_figure(j, f, report_estimate(r, row, f));
}

static void put_slack(struct json *j, const struct report *r, const struct slack *slack)
{
	if (!slack->sum.samples)
		return;
	json_object(j, "fragmentation");
	json_number(j, "requested_bytes", slack->requested);
	struct estimate x = report_slack(r, slack);
	json_bytes(j, "slack_bytes", x);
	json_number(j, "slack_unseen_bytes", x.unseen);
	json_object_end(j);
}

static void put_sums(struct json *j, const struct report *r, const char *name, const struct report_row *row)
{
	json_object(j, name);
	put_figures(j, r, row);
	put_slack(j, r, &row->slack);
	json_object_end(j);
}

static void put_growth(struct json *j, const struct report *r, const struct report_row *row)
{
	struct report_row old = { 0 };

	memcpy(old.sum, row->change->old, sizeof old.sum);
	put_sums(j, r, "old", &old);
	json_object(j, "growth");
	for (int f = 0; f < FIGURE_COUNT; f++)
		put_figure(j, f, report_growth(r, row, f));
	json_number(j, "p_value", row->p_value);
	json_bool(j, "significant", row->grown);
	json_bool(j, "frees_missed", row->doubtful);
	json_object_end(j);
}

static void put_leak(struct json *j, const struct report *r, const struct report_row *row)
{
	static const char *const shapes[] = {
		[LEAK_NONE] = "none", [LEAK_STEP] = "step", [LEAK_FILLING] = "filling", [LEAK_GROWTH] = "growth"
	};
	const struct leak_tally *t = row->leak;

	json_object(j, "leak");
	json_bytes(j, "older_bytes", estimate_interval(&t->bytes, r->options.confidence));
	put_count(j, "older_count", estimate_interval(&t->count, r->options.confidence));
	json_unsigned(j, "samples_older", t->count.samples);
	json_unsigned(j, "samples_gained", t->gained);
	json_unsigned(j, "samples_lost", t->lost);
	json_unsigned(j, "history_dropped", t->dropped);
	json_bytes(j, "bytes_per_second", report_leak_rate(r, row));
	json_number(j, "p_value", row->p_value);
	json_string(j, "shape", shapes[leak_shape(t)]);
	json_bool(j, "leaks", row->grown);
	json_bool(j, "grows", row->grows);
	json_number(j, "residual_life", row->grows ? leak_residual_life(t, r->options.confidence) : NAN);
	json_number(j, "decided_after_seconds", row->grows ? report_decides_after(r, row) : NAN);
	json_bool(j, "garbage", row->collected);
	json_bool(j, "frees_missed", row->doubtful);
	json_object_end(j);
}

static void put_plan(struct json *j, const struct report *r, const struct report_row *row)
{
	struct report_plan plan = report_plan(r, row);

	json_object(j, "plan");
	json_number(j, "precision", r->options.plan);
	json_number(j, "precision_now", plan.now);
	json_number(j, "rate_bytes", plan.rate);
	json_number(j, "seconds", plan.seconds);
	json_object_end(j);
}

static void put_details(struct json *j, const struct report *r, const struct report_row *row)
{
	if (report_compares(r))
		put_growth(j, r, row);
	if (r->options.leaks)
		put_leak(j, r, row);
	put_slack(j, r, &row->slack);
	if (r->options.plan > 0)
		put_plan(j, r, row);
}

static int put_stack(struct json *j, const struct report *r, const struct report_row *row, struct json_frames *frames)
{
	json_object_line(j, NULL);
	put_figures(j, r, row);
	json_unsigned(j, "samples", row->sum[FIGURE_ALLOCATED_COUNT].samples);
	json_unsigned(j, "samples_live", row->sum[FIGURE_LIVE_COUNT].samples);
	json_estimate(j, "share", report_share(r, row, r->options.sort));
	put_details(j, r, row);
	json_flag(j, "truncated", row->flags || row->unknown);
	json_flag(j, "deep", row->flags & DUMP_STACK_DEEP);
	json_flag(j, "unknown", row->unknown);
	if (report_depth(r, row) < row->frame_count)
		json_unsigned(j, "frame_count", row->frame_count);
	int s = json_frames_stack(frames, j, row);
	json_object_end(j);
	return s;
}

static int put_stacks(struct json *j, const struct report *r, struct json_frames *frames)
{
	size_t shown = r->options.by == BY_STACK ? report_shown(r) : 0;
	int s = 0;

	json_array(j, "stacks");
	for (size_t i = 0; !s && i < shown; i++) {
		progress_at(r->options.progress, "writing", i, shown);
		report_want_symbols(r, i, shown);
		s = put_stack(j, r, &r->rows.list[i], frames);
	}
	json_array_end(j);
	return s;
}

static void put_group(struct json *j, const struct report *r, const struct group *g)
{
	json_group_names(j, r, g);
	const struct report_row all = report_group(g, false), own = report_group(g, true);

	put_sums(j, r, "inclusive", &all);
	put_sums(j, r, "exclusive", &own);
}

/* Of a thread, a size or a lifetime. What a thread has allocated in all is not known. */
static void put_thread(struct json *j, const struct report *r, const struct group *g)
{
	const struct report_row row = report_thread(r, g);

	bool thread = r->options.by == BY_THREAD;

	json_group_names(j, r, g);
	for (int f = 0; f < FIGURE_COUNT; f++)
		if (report_is_live(f) || !thread)
			put_figure(j, f, report_estimate(r, &row, f));
	if (!thread)
		json_unsigned(j, "samples", row.sum[FIGURE_ALLOCATED_COUNT].samples);
	json_unsigned(j, "samples_live", row.sum[FIGURE_LIVE_COUNT].samples);
	json_estimate(j, "share", report_share(r, &row, r->options.sort));
	put_slack(j, r, &row.slack);
}

static void put_groups(struct json *j, const struct report *r)
{
	if (r->options.by == BY_STACK)
		return;
	json_string(j, "by", group_by_name(r->options.by));
	json_unsigned(j, "group_count", r->groups.count);
	if (groups_label(r->options.by) != LABEL_KINDS) {
		const struct labels_look *unknown = groups_unknown(r->sessions, r->session_count, r->options.by);
		json_bool(j, "all_looked_at", !unknown);
		json_string(j, "why", unknown ? unknown->why : "");
	}
	json_array(j, "groups");
	for (size_t i = 0; i < report_shown(r); i++) {
		json_object(j, NULL);
		(groups_of_samples(r->options.by) ? put_thread : put_group)(j, r, &r->groups.list[i]);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_time(struct json *j, const char *name, uint64_t ns)
{
	char text[40], whole[64];
	time_t seconds = (time_t)(ns / 1000000000u);
	struct tm tm;

	if (!ns || !gmtime_r(&seconds, &tm) || !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm)) {
		json_string(j, name, NULL);
		return;
	}
	snprintf(whole, sizeof whole, "%s.%03uZ", text, (unsigned)(ns % 1000000000u / 1000000u));
	json_string(j, name, whole);
}

static void put_rates(struct json *j, const struct recorded_session *s)
{
	json_unsigned(j, "first_rate_bytes", s->first_rate_bytes);
	json_number(j, "max_overhead", s->max_overhead > 0 ? s->max_overhead : NAN);
	json_number(j, "cpu_seconds", s->cpu_seconds);
	json_number(j, "overhead", s->overhead);
	json_number(j, "overhead_of_processor", s->processor);
	json_number(j, "mapping_overhead", s->mapping_overhead);
	if (s->frees_known) {
		json_object(j, "frees_unseen");
		json_unsigned(j, "count", s->frees_unseen);
		json_unsigned(j, "bytes", s->frees_unseen_bytes);
		json_object_end(j);
	} else {
		json_string(j, "frees_unseen", NULL);
	}
	json_array(j, "rate_changes");
	for (size_t i = 0; i < s->rate_count; i++) {
		const struct recorded_rate *c = &s->rates[i];
		json_object(j, NULL);
		json_number(j, "seconds", c->seconds);
		json_unsigned(j, "old_bytes", c->old_bytes);
		json_unsigned(j, "new_bytes", c->new_bytes);
		json_string(j, "reason", recorded_session_rate_reason(c->reason));
		json_unsigned(j, "thinned_bytes", c->thinned_bytes);
		json_number(j, "overhead", c->overhead);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_target_members(struct json *j, const struct recorded_session *s)
{
	json_number(j, "pid", s->pid);
	json_string(j, "command", s->command);
	json_string(j, "program", s->program[0] ? s->program : NULL);
	json_string(j, "host", s->host[0] ? s->host : NULL);
	put_time(j, "attached_at", s->start_ns);
	json_number(j, "duration_seconds", (double)s->duration_ns / 1e9);
	json_bool(j, "duration_is_least", s->no_end);
	json_string(j, "ended", s->state == DUMP_STATE_EXECED ? "execed" : dump_end_name(s->end));
	put_time(j, "copied_at", s->copied_ns);
	json_bool(j, "rest_missing", s->rest_missing);
	if (s->state == DUMP_STATE_EXITED)
		json_number(j, "exit_status", s->end_detail);
	if (s->state == DUMP_STATE_KILLED)
		json_number(j, "signal", s->end_detail);
	put_rates(j, s);
}

static void put_targets(struct json *j, const struct report *r)
{
	json_object(j, "target");
	if (r->session_count)
		put_target_members(j, &r->sessions[0]);
	json_object_end(j);
	if (r->session_count < 2)
		return;
	json_array(j, "dumps");
	for (size_t i = 0; i < r->session_count; i++) {
		const struct recorded_session *s = &r->sessions[i];
		json_object(j, NULL);
		json_string(j, "name", s->name);
		if (r->options.diff)
			json_string(j, "side", i ? "old" : "new");
		put_target_members(j, s);
		json_unsigned(j, "rate_bytes", s->rate_bytes);
		json_unsigned(j, "samples_taken", s->counters[DUMP_COUNTER_samples_taken]);
		json_bool(j, "damaged", !s->whole);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_samples(struct json *j, const struct report *r)
{
#define COUNTER_NAME_(name, text) #name,
	static const char *const names[] = { DUMP_COUNTER_LIST(COUNTER_NAME_) };
#undef COUNTER_NAME_

	json_object(j, "samples");
	json_unsigned(j, "taken", report_counter(r, DUMP_COUNTER_samples_taken));
	json_unsigned(j, "live", r->total.sum[FIGURE_LIVE_COUNT].samples);
	json_unsigned(j, "lost", report_lost(r));
	json_unsigned(j, "without_stack", r->lost_stack);
	json_unsigned(j, "rounded_up", r->rounded);
	json_unsigned(j, "lost_before", r->lost_before);
	json_object_end(j);
	json_object(j, "counters");
	for (int i = 0; i < DUMP_COUNTER_COUNT; i++)
		json_unsigned(j, names[i], report_counter(r, i));
	json_object_end(j);
}

static void put_python(struct json *j, const struct report *r)
{
	char version[PYTHON_VERSION_TEXT];

	if (!r->python.version) {
		json_string(j, "python", NULL);
		return;
	}
	json_object(j, "python");
	json_string(j, "version", report_python_version(r->python.version, version));
	json_unsigned(j, "samples", r->python.samples);
	json_unsigned(j, "samples_complete", r->python.complete);
	json_bool(j, "native", r->options.native);
	json_object_end(j);
}

static void put_java(struct json *j, const struct report *r)
{
	if (!r->java.version) {
		json_string(j, "java", NULL);
		return;
	}
	json_object(j, "java");
	json_unsigned(j, "version", r->java.version);
	json_unsigned(j, "samples", r->java.samples);
	json_unsigned(j, "samples_complete", r->java.complete);
	json_bool(j, "native", r->options.native);
	json_object_end(j);
}

static void put_own_code(struct json *j, const struct report *r)
{
	json_object(j, "own_code");
	json_unsigned(j, "samples", r->own_code.samples);
	json_unsigned(j, "samples_cut", r->own_code.cut);
	json_unsigned(j, "samples_unnamed", r->own_code.unnamed);
	json_object_end(j);
}

static void put_skipped(struct json *j, const struct report *r)
{
#define SKIP_NAME_(name, text) #name,
	static const char *const names[] = { DUMP_SKIP_LIST(SKIP_NAME_) };
#undef SKIP_NAME_

	json_object(j, "skipped");
	for (int i = 0; i < DUMP_SKIP_COUNT; i++)
		if (report_skipped(r, i))
			json_unsigned(j, names[i], report_skipped(r, i));
	json_object_end(j);
}

static void put_notes(struct json *j, const struct report *r)
{
	static const char *const kinds[] = { [DUMP_NOTE_NOT_PATCHED] = "not_patched",
		                             [DUMP_NOTE_NO_UNWIND] = "no_unwind",
		                             [DUMP_NOTE_STATIC] = "static",
		                             [DUMP_NOTE_FULL] = "full",
		                             [DUMP_NOTE_OTHER] = "other",
		                             [DUMP_NOTE_HOOKS_LOST] = "hooks_lost" };

	json_array(j, "notes");
	for (size_t i = 0; i < r->note_count; i++) {
		uint32_t kind = r->notes[i].kind;
		json_object(j, NULL);
		json_string(j, "kind", kind >= 1 && kind <= DUMP_NOTE_HOOKS_LOST ? kinds[kind] : "other");
		json_string(j, "text", r->notes[i].text);
		json_object_end(j);
	}
	json_array_end(j);
	json_unsigned(j, "notes_left_out", r->notes_left_out);
}

static void put_one_pace(struct json *j, const struct report *r, bool old)
{
	struct report_pace pace = report_pace(r, old);

	json_object(j, old ? "old" : "new");
	json_number(j, "seconds", pace.seconds);
	json_object(j, "live_bytes_per_second");
	json_interval(j, &pace.live);
	json_object_end(j);
	json_unsigned(j, "private_start_bytes", pace.private_start_bytes);
	json_unsigned(j, "private_latest_bytes", pace.private_latest_bytes);
	json_object_end(j);
}

static void put_pace(struct json *j, const struct report *r)
{
	if (!report_has_pace(r))
		return;
	json_object(j, "pace");
	put_one_pace(j, r, true);
	put_one_pace(j, r, false);
	json_object_end(j);
}

static void put_unsampled(struct json *j, const struct report *r)
{
	json_object(j, "unsampled");
	for (int live = 1; live >= 0; live--) {
		struct unseen_stacks unseen = unseen_stacks(r, live);
		json_object(j, live ? "live" : "allocated");
		json_unsigned(j, "stacks", unseen.stacks);
		json_number(j, "bytes", unseen.estimate);
		json_number(j, "bytes_high", unseen.high);
		json_object_end(j);
	}
	json_object_end(j);
}

/* Mappings of files, where the report is about memory. */
static void put_mapped_files(struct json *j, const struct report *r)
{
	if (r->options.files || !r->beside.sum[FIGURE_ALLOCATED_COUNT].samples) {
		json_string(j, "mapped_files", NULL);
		return;
	}
	json_object(j, "mapped_files");
	put_figures(j, r, &r->beside);
	json_object_end(j);
}

static void put_memory(struct json *j, const struct report *r)
{
	const struct report_memory *m = &r->memory;

	if (!m->known) {
		json_string(j, "memory", NULL);
		return;
	}
	json_object(j, "memory");
	json_number(j, "private_growth_bytes", m->private_growth);
	json_number(j, "shared_growth_bytes", m->shared_growth);
	json_number(j, "files_growth_bytes", m->files_growth);
	json_bytes(j, "captured_live_bytes", m->live);
	json_bytes(j, "captured_allocated_bytes", m->seen);
	json_number(j, "not_live_at_most_bytes", m->not_live);
	json_bool(j, "mostly_unseen", m->mostly_unseen);
	json_object_end(j);
}

static void put_resident(struct json *j, const struct report *r)
{
	static const char *const words[] = {
		[RESIDENT_LIVE_FITS] = "fits", [RESIDENT_LIVE_LESS] = "less", [RESIDENT_LIVE_MORE] = "more"
	};
	const struct report_resident *x = &r->resident;

	json_object(j, "resident");
	json_bool(j, "known", x->known);
	if (x->why && x->why[0] && !x->known)
		json_string(j, "why", x->why);
	if (x->known) {
		json_number(j, "start_bytes", x->start);
		json_number(j, "end_bytes", x->end);
		json_number(j, "growth_bytes", x->growth);
		json_number(j, "swapped_growth_bytes", x->swapped_growth);
		json_number(j, "not_attributed_bytes", x->rest);
		json_bool(j, "malloc_known", x->malloc_known);
		json_string(j, "allocator", x->allocator[0] ? x->allocator : NULL);
		json_bool(j, "allocator_known", x->allocator_known);
		json_string(j, "live", words[x->live]);
		json_number(j, "beside_low_bytes", x->beside_low);
		json_number(j, "beside_high_bytes", x->beside_high);
		json_array(j, "parts");
		for (size_t i = 0; i < x->count; i++) {
			const struct resident_term *t = &x->terms[i];
			json_object(j, NULL);
			json_string(j, "kind", resident_kind_name(t->kind));
			json_string(j, "name", t->name[0] ? t->name : NULL);
			json_number(j, "start_bytes", t->start);
			json_number(j, "end_bytes", t->end);
			json_number(j, "growth_bytes", t->growth);
			json_bool(j, "holds_live", t->live);
			json_object_end(j);
		}
		json_array_end(j);
	}
	json_object_end(j);
}

/* What the intervals of the stacks promise together, and the share of the first one. */
static void put_chosen(struct json *j, const struct report *r)
{
	double error = (1 - r->options.confidence) / 2;

	if (report_compares(r) || r->options.leaks || r->options.by != BY_STACK || !r->rows.count)
		return;
	struct estimate share = report_share_interval(r, r->rows.list, r->options.sort);
	json_number(j, "lower_ends_hold", 1 - error);
	json_number(j, "upper_ends_may_miss", error * (double)report_listed(r));
	json_object(j, "first_share");
	json_number(j, "low", share.low);
	json_number(j, "high", share.high);
	json_object_end(j);
}

static void put_view(struct json *j, const struct report *r)
{
	const struct report_options *o = &r->options;

	json_object(j, "view");
	json_string(j, "kind", o->leaks ? "leaks" : o->diff ? "diff" : o->since_ns ? "since" : o->at_ns ? "at" : "end");
	json_string(j, "of", o->files ? "mapped-files" : "memory");
	json_string(j, "sort", report_figure_name(o->sort));
	if (o->at_ns)
		json_number(j, "at_seconds", (double)o->at_ns / 1e9);
	if (o->since_ns)
		json_number(j, "since_seconds", (double)o->since_ns / 1e9);
	if (o->leaks)
		json_number(j, "age_seconds", (double)r->age_ns / 1e9);
	if (o->diff)
		json_bool(j, "same_session", r->same_session);
	json_bool(j, "past_unknown", r->past_unknown);
	json_bool(j, "peak", r->options.peak);
	put_chosen(j, r);
	if (!o->leaks && !report_compares(r))
		json_bool(j, "first_is_largest", report_first_is_largest(r, r->options.sort));
	json_filter(j, r);
	json_object_end(j);
}

int report_json(const struct report *r, FILE *out)
{
	struct json j = { .out = out };
	struct json_frames frames;

	json_object(&j, NULL);
	json_unsigned(&j, "format", REPORT_JSON_FORMAT);
	json_unsigned(&j, "rate_bytes", r->session_count ? r->sessions[0].rate_bytes : 1);
	json_number(&j, "confidence", r->options.confidence);
	json_bool(&j, "complete", report_complete(r));
	json_bool(&j, "damaged", !r->whole);
	json_bool(&j, "exact", report_exact(r));
	put_targets(&j, r);
	put_view(&j, r);
	put_samples(&j, r);
	put_python(&j, r);
	put_java(&j, r);
	put_own_code(&j, r);
	put_skipped(&j, r);
	json_number(&j, "detection_limit_bytes", report_detection_limit(r));
	json_unsigned(&j, "hidden_block_bytes", report_hidden_bytes(r));
	put_mapped_files(&j, r);
	put_memory(&j, r);
	put_resident(&j, r);
	put_pace(&j, r);
	put_unsampled(&j, r);
	json_trust(&j, r, figure_keys);
	json_object(&j, "total");
	put_figures(&j, r, &r->total);
	put_slack(&j, r, &r->total.slack);
	if (report_compares(r))
		put_growth(&j, r, &r->total);
	json_object_end(&j);
	put_notes(&j, r);
	json_unsigned(&j, "stack_count", r->rows.count);
	json_frames_init(&frames, r);
	int s = put_stacks(&j, r, &frames);
	put_groups(&j, r);
	json_timeline(&j, r);
	json_machine(&j, r);
	s = s ?: json_frames_tables(&frames, &j);
	json_frames_done(&frames);
	if (!s)
		json_object_end(&j);
	return s;
}
