/* SPDX-License-Identifier: MIT */
#include "report_json.h"

#include <inttypes.h>
#include <time.h>

#include "json.h"

static const char *const figure_keys[] = { "live_bytes", "live_count", "allocated_bytes", "allocated_count" };

static void put_figures(struct json *j, const struct report *r, const struct report_row *row)
{
	for (int f = 0; f < FIGURE_COUNT; f++) {
		struct estimate x = report_estimate(r, row, f);
		json_object(j, figure_keys[f]);
		json_number(j, "estimate", x.value);
		json_number(j, "stderr", x.error);
		json_number(j, "low", x.low);
		json_number(j, "high", x.high);
		json_object_end(j);
	}
}

static void put_build_id(struct json *j, const struct image *image)
{
	char hex[2 * DUMP_BUILD_ID_MAX + 1] = "";

	for (uint32_t i = 0; i < image->build_id_bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", image->build_id[i]);
	json_string(j, "build_id", hex[0] ? hex : NULL);
}

static void put_frame(struct json *j, const struct report *r, uint64_t place, const struct location *l)
{
	const struct image *image = &r->images.list[PLACE_IMAGE(place)];
	char address[24];

	snprintf(address, sizeof address, "0x%" PRIx64, PLACE_OFFSET(place));
	json_object(j, NULL);
	json_string(j, "address", address);
	json_string(j, "function", l->function);
	json_string(j, "file", l->file);
	if (l->file && l->line)
		json_unsigned(j, "line", (uint64_t)l->line);
	else
		json_string(j, "line", NULL);
	json_string(j, "module", image->path);
	put_build_id(j, image);
	json_bool(j, "inlined", l->inlined);
	json_object_end(j);
}

static void put_stack(struct json *j, const struct report *r, const struct report_row *row)
{
	static const struct location nothing;

	json_object(j, NULL);
	put_figures(j, r, row);
	json_unsigned(j, "samples", row->sum[FIGURE_ALLOCATED_COUNT].samples);
	json_unsigned(j, "samples_live", row->sum[FIGURE_LIVE_COUNT].samples);
	json_bool(j, "truncated", row->flags || row->unknown);
	json_array(j, "frames");
	for (uint32_t i = 0; i < row->frame_count && (!r->options.depth || i < r->options.depth); i++) {
		const struct location *list = &nothing;
		size_t n = 1;
		if (r->symbols)
			list = symbols_find(r->symbols, row->frames[i], &n);
		for (size_t k = 0; k < n; k++)
			put_frame(j, r, row->frames[i], &list[k]);
	}
	json_array_end(j);
	json_object_end(j);
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

static void put_target(struct json *j, const struct report *r)
{
	const struct dump_header *h = dump_header(r->dump);

	json_object(j, "target");
	json_number(j, "pid", h->pid);
	json_string(j, "command", h->command);
	json_string(j, "program", h->program[0] ? h->program : NULL);
	json_string(j, "host", h->host[0] ? h->host : NULL);
	put_time(j, "attached_at", h->clock_start.realtime_ns);
	json_number(j, "duration_seconds", (double)dump_duration_ns(r->dump) / 1e9);
	json_string(j, "ended", dump_end_name(dump_end(r->dump)));
	if (h->state == DUMP_STATE_EXITED)
		json_number(j, "exit_status", h->end_detail);
	if (h->state == DUMP_STATE_KILLED)
		json_number(j, "signal", h->end_detail);
	json_object_end(j);
}

static void put_samples(struct json *j, const struct report *r)
{
#define COUNTER_NAME_(name, text) #name,
	static const char *const names[] = { DUMP_COUNTER_LIST(COUNTER_NAME_) };
#undef COUNTER_NAME_

	json_object(j, "samples");
	json_unsigned(j, "taken", dump_counter(r->dump, DUMP_COUNTER_samples_taken));
	json_unsigned(j, "live", r->total.sum[FIGURE_LIVE_COUNT].samples);
	json_unsigned(j, "lost", r->lost);
	json_object_end(j);
	json_object(j, "counters");
	for (int i = 0; i < DUMP_COUNTER_COUNT; i++)
		json_unsigned(j, names[i], dump_counter(r->dump, i));
	json_object_end(j);
}

static void put_skipped(struct json *j, const struct report *r)
{
#define SKIP_NAME_(name, text) #name,
	static const char *const names[] = { DUMP_SKIP_LIST(SKIP_NAME_) };
#undef SKIP_NAME_

	json_object(j, "skipped");
	for (int i = 0; i < DUMP_SKIP_COUNT; i++)
		if (dump_skipped(r->dump, i))
			json_unsigned(j, names[i], dump_skipped(r->dump, i));
	json_object_end(j);
}

static void put_notes(struct json *j, const struct report *r)
{
	static const char *const kinds[] = { [DUMP_NOTE_NOT_PATCHED] = "not_patched", [DUMP_NOTE_NO_UNWIND] = "no_unwind",
					     [DUMP_NOTE_STATIC] = "static",           [DUMP_NOTE_FULL] = "full",
					     [DUMP_NOTE_OTHER] = "other" };

	json_array(j, "notes");
	for (size_t i = 0; i < r->note_count; i++) {
		uint32_t kind = r->notes[i].kind;
		json_object(j, NULL);
		json_string(j, "kind", kind >= 1 && kind <= DUMP_NOTE_OTHER ? kinds[kind] : "other");
		json_string(j, "text", r->notes[i].text);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_modules(struct json *j, const struct report *r)
{
	static const char *const sources[] = { [IMAGE_SOURCE_NONE] = "none",
					       [IMAGE_SOURCE_FILE] = "file",
					       [IMAGE_SOURCE_DEBUG] = "debug" };

	/* Only those whose symbols were asked for: after the stacks. */
	json_array(j, "modules");
	for (uint32_t i = 1; r->symbols && i < r->images.count; i++) {
		const struct image_file *file = symbols_image_file(r->symbols, i);
		if (!file)
			continue;
		json_object(j, NULL);
		json_string(j, "path", r->images.list[i].path);
		put_build_id(j, &r->images.list[i]);
		json_string(j, "symbols", sources[file->source]);
		json_string(j, "reason", file->reason);
		json_object_end(j);
	}
	json_array_end(j);
}

void report_json(const struct report *r, FILE *out)
{
	struct json j = { .out = out };

	json_object(&j, NULL);
	json_unsigned(&j, "format", REPORT_JSON_FORMAT);
	json_unsigned(&j, "rate_bytes", dump_header(r->dump)->rate_bytes);
	json_number(&j, "confidence", r->options.confidence);
	json_bool(&j, "complete", r->complete);
	put_target(&j, r);
	put_samples(&j, r);
	put_skipped(&j, r);
	json_number(&j, "detection_limit_bytes", report_detection_limit(r));
	json_object(&j, "total");
	put_figures(&j, r, &r->total);
	json_object_end(&j);
	put_notes(&j, r);
	json_unsigned(&j, "stack_count", r->row_count);
	json_array(&j, "stacks");
	for (size_t i = 0; i < report_shown(r); i++)
		put_stack(&j, r, &r->rows[i]);
	json_array_end(&j);
	put_modules(&j, r);
	json_object_end(&j);
}
