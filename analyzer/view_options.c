/* SPDX-License-Identifier: MIT */
#include "view_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "memanalyze_options.h"
#include "base/size.h"

#define TIMELINE_MOMENTS 20
#define TIMELINE_MOMENTS_MAX 10000

static int parse_pattern(const char *option, const char *value, const char **pattern, struct err *e)
{
	struct pattern compiled;

	if (*pattern)
		return err_set(e, EINVAL, "--%s is given twice: one expression can be A|B", option);
	if (pattern_init(&compiled, value, e))
		return err_prefix(e, "--%s: '%.200s'", option, value);
	pattern_done(&compiled);
	*pattern = value;
	return 0;
}

/* "4k": that size; "1k..4k", "1k..", "..4k": from the first on, below the second. */
static int parse_sizes(const char *value, struct filter_options *o, struct err *e)
{
	AUTO_FREE char *text = strdup(value);
	char *dots = text ? strstr(text, "..") : NULL;
	uint64_t low = 0, high = 0;
	int r = 0;

	if (!text)
		return err_set(e, ENOMEM, "out of memory");
	if (dots)
		*dots = 0;
	if (!dots || text[0])
		r = size_parse(text, &low, e);
	if (!r && dots && dots[2])
		r = size_parse(dots + 2, &high, e);
	if (r)
		return err_prefix(e, "--size");
	if (!dots)
		high = low + 1;
	if ((dots && !text[0] && !dots[2]) || (dots && dots[2] && high <= low))
		return err_set(e, EINVAL, "--size: '%.200s' is no size and no range such as 1k..4k", value);
	o->size_low = low;
	o->size_high = high;
	return 0;
}

static int parse_moments(const char *value, size_t *moments, struct err *e)
{
	char *end;
	long n = value ? strtol(value, &end, 10) : TIMELINE_MOMENTS;

	if (value && (*end || value[0] < '0' || value[0] > '9' || n < 2 || n > TIMELINE_MOMENTS_MAX))
		return err_set(e, EINVAL, "--timeline: '%.200s' is not a number of moments, 2 to %d", value,
		               TIMELINE_MOMENTS_MAX);
	*moments = (size_t)n;
	return 0;
}

static int add_alloc_fn(const char *value, struct report_options *o, struct err *e)
{
	if (!grow_list(o->alloc_fns, o->alloc_fn_count))
		return err_set(e, ENOMEM, "out of memory");
	o->alloc_fns[o->alloc_fn_count++] = value;
	return 0;
}

int view_option_parse(int option, const char *value, struct report_options *o, struct err *e)
{
	int r;

	switch (option) {
	case VIEW_FILES: o->files = true; return 0;
	case VIEW_FOCUS: return parse_pattern("focus", value, &o->filter.focus, e);
	case VIEW_IGNORE: return parse_pattern("ignore", value, &o->filter.ignore, e);
	case VIEW_HIDE: return parse_pattern("hide", value, &o->filter.hide, e);
	case VIEW_SHOW_FROM: return parse_pattern("show-from", value, &o->filter.show_from, e);
	case VIEW_THREAD: return parse_pattern("thread", value, &o->filter.thread, e);
	case VIEW_SIZE: return parse_sizes(value, &o->filter, e);
	case VIEW_OLDER: r = size_parse_time(value, &o->filter.older_ns, e); return r ? err_prefix(e, "--older") : 0;
	case VIEW_TREE: o->tree = true; return 0;
	case VIEW_PEAK: o->peak = true; return 0;
	case VIEW_TIMELINE: return parse_moments(value, &o->timeline, e);
	case VIEW_NATIVE: o->native = true; return 0;
	case VIEW_ALLOC_FN: return add_alloc_fn(value, o, e);
	default: o->show_std = true; return 0;
	}
}

/* Views that look at many moments of one session. */
static int check_times(const struct report_options *o, int dump_count, struct err *e)
{
	const char *name = o->peak ? "--peak" : "--timeline";

	if (!o->peak && !o->timeline)
		return 0;
	if (o->peak && o->timeline)
		return err_set(e, EINVAL, "--peak is one time, --timeline are many: not both");
	if (o->diff || o->since_ns || o->leaks || o->at_ns)
		return err_set(e, EINVAL, "%s: not with --at, --since, --diff or --leaks", name);
	if (o->timeline && (o->by != BY_STACK || o->plan > 0))
		return err_set(e, EINVAL, "--timeline shows no rows: not with --by or --plan");
	if (dump_count != 1)
		return err_set(e, EINVAL, "%s takes one dump", name);
	return 0;
}

int view_options_check(const struct report_options *o, int dump_count, struct err *e)
{
	bool compares = o->diff || o->since_ns || o->leaks;

	if (o->by != BY_STACK && (compares || o->plan > 0))
		return err_set(e, EINVAL,
		               "--by shows the heap only, but for stacks: not with --diff, --since, --leaks, --plan");
	if (o->tree && (o->by != BY_STACK || compares || o->plan > 0 || o->timeline))
		return err_set(e, EINVAL,
		               "--tree shows the heap by function: not with --by, --diff, --since, --leaks, --plan or "
		               "--timeline");
	if (o->by == BY_THREAD && !report_is_live(o->sort))
		return err_set(e, EINVAL,
		               "--by thread: what a thread has allocated in all is not kept, sort by live-bytes or "
		               "live-count");
	if ((o->by == BY_RESIDENCY || groups_label(o->by) != LABEL_KINDS) && !report_is_live(o->sort))
		return err_set(e, EINVAL, "--by %s is about what is live at the end: sort by live-bytes or live-count",
		               group_by_name(o->by));
	if (o->filter.older_ns && compares)
		return err_set(e, EINVAL,
		               "--older is about one time, these about two: not with --diff, --since or --leaks (which "
		               "has --age)");
	return check_times(o, dump_count, e);
}
