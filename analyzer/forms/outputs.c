/* SPDX-License-Identifier: MIT */
#include "forms/outputs.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/grow.h"
#include "exchange/report_collapsed.h"
#include "exchange/report_dhat.h"
#include "exchange/report_otlp.h"
#include "html/report_html.h"
#include "json/report_json.h"
#include "exchange/report_pprof.h"
#include "exchange/report_speedscope.h"
#include "text/report_text.h"

#define TEXT_TOP 20u
#define WORDS_MAX 6
#define MOMENTS_BESIDE 200u

/* What a format can show, besides the heap. */
enum {
	SHOWS_GROUPS = 1,      /* --by */
	SHOWS_COMPARISONS = 2, /* --diff, --since */
	SHOWS_TESTS = 4,       /* --leaks, --plan */
	SHOWS_PARTS = 8,       /* --depth */
	SHOWS_MOMENTS = 16,    /* --timeline */
	SHOWS_ALL = 31,
	SHOWS_BESIDE = 32,     /* a timeline, threads, sizes, lifetimes and leaks beside the stacks, asked for or not */
	SHOWS_THREADS = 64,    /* those of each stack */
	SHOWS_TIMES = 128,     /* lifetimes and the peak of each stack */
	SHOWS_PROCESSES = 256, /* of a folder, beside the stacks */
};

struct output_format {
	const char *name;
	const char *endings[WORDS_MAX]; /* of names of files; the longest that fits counts */
	const char *beginning;          /* the same, or NULL */
	size_t top;                     /* rows that are shown unless --top is given, 0: all */
	unsigned shows;
	bool binary; /* nothing for a terminal */
	output_writer *write;
};

static int write_text(const struct report *report, const struct output_style *style, FILE *out)
{
	report_text(report, style->name, out, (struct text_style){ style->colour, style->columns });
	return 0;
}

static int write_json(const struct report *report, const struct output_style *style, FILE *out)
{
	(void)style;
	return report_json(report, out);
}

static int write_pprof(const struct report *report, const struct output_style *style, FILE *out)
{
	(void)style;
	return report_pprof(report, out);
}

static int write_otlp(const struct report *report, const struct output_style *style, FILE *out)
{
	(void)style;
	return report_otlp(report, out);
}

static int write_collapsed(const struct report *report, const struct output_style *style, FILE *out)
{
	(void)style;
	return report_collapsed(report, out);
}

static int write_speedscope(const struct report *report, const struct output_style *style, FILE *out)
{
	return report_speedscope(report, style->name, out);
}

static int write_dhat(const struct report *report, const struct output_style *style, FILE *out)
{
	(void)style;
	return report_dhat(report, out);
}

static int write_html(const struct report *report, const struct output_style *style, FILE *out)
{
	return report_html(report, style->name, out);
}

static const struct output_format formats[] = {
	{ .name = "text", .endings = { ".txt", ".text" }, .top = TEXT_TOP, .shows = SHOWS_ALL, .write = write_text },
	{ .name = "json", .endings = { ".json" }, .shows = SHOWS_ALL, .write = write_json },
	{ .name = "pprof",
	  .endings = { ".pb.gz", ".pprof" },
	  .shows = SHOWS_COMPARISONS | SHOWS_PARTS | SHOWS_THREADS,
	  .binary = true,
	  .write = write_pprof },
	{ .name = "otlp",
	  .endings = { ".otlp", ".otlp.pb" },
	  .shows = SHOWS_COMPARISONS | SHOWS_PARTS | SHOWS_THREADS,
	  .binary = true,
	  .write = write_otlp },
	{ .name = "collapsed",
	  .endings = { ".folded", ".collapsed", ".collapsedstack.txt" },
	  .shows = SHOWS_COMPARISONS | SHOWS_PARTS,
	  .write = write_collapsed },
	{ .name = "speedscope",
	  .endings = { ".speedscope.json" },
	  .shows = SHOWS_COMPARISONS | SHOWS_PARTS,
	  .write = write_speedscope },
	{ .name = "html",
	  .endings = { ".html", ".htm" },
	  .shows = SHOWS_COMPARISONS | SHOWS_PARTS | SHOWS_MOMENTS | SHOWS_BESIDE | SHOWS_PROCESSES,
	  .binary = true,
	  .write = write_html },
	{ .name = "dhat",
	  .endings = { ".dhat.json" },
	  .beginning = "dhat.out",
	  .shows = SHOWS_TIMES,
	  .write = write_dhat },
};
#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

static void list_names(char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < FORMAT_COUNT && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", formats[i].name);
}

static const struct output_format *find(const char *name)
{
	for (size_t i = 0; i < FORMAT_COUNT; i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

int output_format_find(const char *name, const struct output_format **format, struct err *e)
{
	const struct output_format *found = find(name);
	char names[200];

	if (found) {
		*format = found;
		return 0;
	}
	list_names(names, sizeof names);
	return err_set(e, EINVAL, "--format: '%s' is none of %s", name, names);
}

/* How many characters of the name tell that it is of this format, 0: none. */
static size_t fit(const struct output_format *format, const char *name)
{
	size_t n = strlen(name), best = 0;

	for (size_t i = 0; i < WORDS_MAX && format->endings[i]; i++) {
		size_t m = strlen(format->endings[i]);
		if (n > m && m > best && !strcasecmp(name + n - m, format->endings[i]))
			best = m;
	}
	if (format->beginning && !strncmp(name, format->beginning, strlen(format->beginning)))
		best = n;
	return best;
}

/* By the name of the file: the one that most of it fits. NULL: it does not tell. */
static const struct output_format *format_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const struct output_format *found = strcmp(path, "-") ? NULL : find("text");
	size_t best = 0;

	for (size_t i = 0; i < FORMAT_COUNT; i++) {
		size_t n = fit(&formats[i], name);
		if (n > best) {
			best = n;
			found = &formats[i];
		}
	}
	return found;
}

int outputs_add(struct outputs *o, const char *path, struct err *e)
{
	for (size_t i = 0; i < o->count; i++)
		if (!strcmp(o->list[i].path, path))
			return err_set(e, EINVAL, "--output: %s is named twice", path);
	if (!path[0])
		return err_set(e, EINVAL, "--output: which file?");
	if (!grow_list(o->list, o->count))
		return err_set(e, ENOMEM, "out of memory");
	o->list[o->count++] = (struct output){ .path = path };
	return 0;
}

/* The option that this format cannot show, or NULL. */
static const char *refused(const struct output_format *f, const struct report_options *o)
{
	if (o->tree && f->write != write_text)
		return "--tree: its readers sum up stacks by themselves";
	if (!(f->shows & SHOWS_GROUPS) && o->by != BY_STACK)
		return "--by: it holds stacks, which its readers sum up by themselves";
	if (!(f->shows & SHOWS_COMPARISONS) && (o->diff || o->since_ns))
		return o->diff ? "--diff" : "--since";
	if (!(f->shows & (SHOWS_TESTS | SHOWS_BESIDE)) && o->leaks)
		return "--leaks";
	if (!(f->shows & SHOWS_TESTS) && o->plan > 0)
		return "--plan";
	if (!(f->shows & SHOWS_MOMENTS) && o->timeline)
		return "--timeline: it holds the stacks of one time, which --at or --peak chooses";
	if (!(f->shows & SHOWS_PARTS) && o->depth)
		return "--depth: it takes stacks that are cut and then alike for an error";
	return NULL;
}

const struct output_format *output_format_number(size_t number)
{
	return number < FORMAT_COUNT ? &formats[number] : NULL;
}

bool output_format_can(const struct output_format *format, const struct report_options *options)
{
	return !refused(format, options);
}

int output_format_write(const struct output_format *format, const struct report *report,
                        const struct output_style *style, FILE *out)
{
	return format->write(report, style, out);
}

int outputs_settle(struct outputs *o, const struct output_format *format, const struct report_options *options,
                   struct err *e)
{
	char names[200];
	int r = o->count ? 0 : outputs_add(o, "-", e);

	for (size_t i = 0; !r && i < o->count; i++) {
		struct output *out = &o->list[i];
		out->format = format ? format : format_of(out->path);
		if (!out->format) {
			list_names(names, sizeof names);
			return err_set(
				e, EINVAL,
				"--output: the name %s does not tell the format: add --format, which is one of %s",
				out->path, names);
		}
		const char *option = refused(out->format, options);
		if (option)
			return err_set(e, EINVAL, "%s: the format %s cannot show %s", out->path, out->format->name,
			               option);
	}
	return r;
}

int outputs_open(struct outputs *o, char *const *inputs, int input_count, struct err *e)
{
	for (size_t i = 0; i < o->count; i++) {
		struct output *out = &o->list[i];
		int r = output_file_open(&out->file, out->path, OUTPUT_OF_COMMAND, e);
		if (r)
			return r;
		for (int k = 0; k < input_count; k++)
			if (output_file_is(&out->file, inputs[k]))
				return err_set(e, EEXIST, "cannot write %s: it is the dump that is to be read",
				               out->path);
		if (out->format->binary && isatty(fileno(out->file.stream)))
			return err_set(e, EINVAL, "%s: the format %s is nothing for a terminal", out->path,
			               out->format->name);
	}
	return 0;
}

static bool any_shows(const struct outputs *o, unsigned what)
{
	for (size_t i = 0; i < o->count; i++)
		if (o->list[i].format->shows & what)
			return true;
	return false;
}

void outputs_ask(const struct outputs *o, struct report_options *options, int dump_count)
{
	const bool beside = any_shows(o, SHOWS_BESIDE);

	options->moments = beside && dump_count == 1 && !options->diff ? MOMENTS_BESIDE : 0;
	options->sample_groups = beside && !options->diff && !options->since_ns;
	options->beside_leaks = beside && !options->diff && !options->since_ns;
	options->stack_threads = any_shows(o, SHOWS_THREADS);
	options->times = dump_count == 1 && any_shows(o, SHOWS_TIMES);
	options->processes = any_shows(o, SHOWS_PROCESSES) && options->machine && !options->diff && !options->since_ns;
}

bool outputs_have_stdout(const struct outputs *o)
{
	for (size_t i = 0; i < o->count; i++)
		if (!strcmp(o->list[i].path, "-"))
			return true;
	return false;
}

static int write_one(struct output *out, const struct report *report, const struct output_style *style, struct err *e)
{
	const struct output_style plain = { .name = style->name };
	bool colour = out->file.stream == stdout;
	int r = out->format->write(report, colour ? style : &plain, out->file.stream);

	if (r)
		return err_set(e, -r, "cannot write %s: %s", out->path, strerror(-r));
	return output_file_finish(&out->file, e);
}

int outputs_write(struct outputs *o, struct report *report, bool top_given, const struct output_style *style,
                  struct err *e)
{
	size_t top = report->options.top;
	int first = 0;

	for (size_t i = 0; i < o->count; i++) {
		struct err other;
		report->options.top = top_given ? top : o->list[i].format->top;
		int r = write_one(&o->list[i], report, style, first ? &other : e);
		first = first ? first : r;
	}
	report->options.top = top;
	return first;
}

void outputs_done(struct outputs *o)
{
	for (size_t i = 0; i < o->count; i++)
		output_file_done(&o->list[i].file);
	free(o->list);
	*o = (struct outputs){ 0 };
}
