/* SPDX-License-Identifier: MIT */
#include "choose/trigger.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"

#define WINDOW_MIN_NS 1000000000ull /* looks are a fraction of a second apart */
#define WORD 64u
#define FORM                                                                                                           \
	"it is rss>SIZE, private>SIZE, growth>SIZE/TIME, cgroup>PERCENT or pressure>PERCENT, such as 'rss>2G', "       \
	"'growth>100M/1m' or 'cgroup>90%%', in quotes because of the shell"

static int parse_growth(const char *size, const char *time, struct trigger *t, struct err *e)
{
	char bytes[WORD];

	snprintf(bytes, sizeof bytes, "%.*s", (int)(time - size - 1), size);
	int rc = size_parse(bytes, &t->bytes, e);
	rc = rc ?: size_parse_time(time, &t->window_ns, e);
	if (rc == 0 && t->window_ns < WINDOW_MIN_NS)
		rc = err_set(e, EINVAL, "the time of growth is at least 1s");
	return rc;
}

static int parse_part(const char *percent, struct trigger *t, struct err *e)
{
	if (!strchr(percent, '%') || size_parse_percent(percent, &t->part) || !(t->part > 0) || t->part >= 1)
		return err_set(e, EINVAL, "'%s' is no percentage between 0%% and 100%%", percent);
	return 0;
}

int trigger_parse(const char *text, struct trigger *t, struct err *e)
{
	static const char *const names[] = {
		[TRIGGER_RSS] = "rss>",       [TRIGGER_PRIVATE] = "private>",   [TRIGGER_GROWTH] = "growth>",
		[TRIGGER_CGROUP] = "cgroup>", [TRIGGER_PRESSURE] = "pressure>",
	};
	const char *slash = strchr(text, '/');

	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
		size_t n = strlen(names[i]);
		if (strncmp(text, names[i], n) != 0)
			continue;
		struct trigger new = { .figure = (enum trigger_figure)i, .text = text };
		if ((new.figure == TRIGGER_GROWTH) != (slash != NULL) || strlen(text) >= WORD)
			break;
		int rc = slash                   ? parse_growth(text + n, slash + 1, &new, e)
		         : trigger_is_part(&new) ? parse_part(text + n, &new, e)
		                                 : size_parse(text + n, &new.bytes, e);
		if (rc == 0)
			*t = new;
		return rc;
	}
	return err_set(e, EINVAL, "'%s' is no condition: " FORM, text);
}

#define RING (sizeof w->parts / sizeof w->parts[0])

static void forget(struct trigger_watch *w, uint64_t kept_ns, uint64_t now_ns)
{
	while (w->count && now_ns - w->parts[w->first].began_ns > kept_ns) {
		w->first = (w->first + 1) % RING;
		w->count--;
	}
}

static void remember(struct trigger_watch *w, uint64_t part_ns, uint64_t bytes, uint64_t now_ns)
{
	unsigned last = (w->first + w->count + RING - 1) % RING;

	if (!w->count || now_ns - w->parts[last].began_ns >= part_ns) {
		last = (w->first + w->count++) % RING;
		w->parts[last].began_ns = now_ns;
		w->parts[last].least = UINT64_MAX;
	}
	if (bytes <= w->parts[last].least) {
		w->parts[last].least = bytes;
		w->parts[last].least_ns = now_ns;
	}
}

static void grow(struct trigger_watch *w, uint64_t window_ns, uint64_t bytes, uint64_t now_ns)
{
	uint64_t part_ns = window_ns / TRIGGER_PARTS;

	forget(w, window_ns + part_ns, now_ns);
	remember(w, part_ns, bytes, now_ns);
	w->value = 0;
	w->took_ns = 0;
	for (unsigned i = 0; i < w->count; i++) {
		unsigned at = (w->first + i) % RING;
		if (bytes > w->parts[at].least && bytes - w->parts[at].least >= w->value) {
			w->value = bytes - w->parts[at].least;
			w->took_ns = now_ns - w->parts[at].least_ns;
		}
	}
}

bool trigger_look(struct trigger_watch *w, const struct trigger *t, const struct memory_use *use, uint64_t now_ns)
{
	uint64_t private = use->anonymous + use->swapped;

	if (t->figure == TRIGGER_GROWTH)
		grow(w, t->window_ns, private, now_ns);
	else
		w->value = t->figure == TRIGGER_RSS ? use->resident : private;
	return w->value > t->bytes;
}

bool trigger_look_part(struct trigger_watch *w, const struct trigger *t, double part)
{
	w->part = part;
	return part > t->part;
}

const char *trigger_say(const struct trigger_watch *w, const struct trigger *t, char text[TRIGGER_TEXT])
{
	char size[SIZE_TEXT];

	if (trigger_is_part(t)) {
		snprintf(text, TRIGGER_TEXT,
		         t->figure == TRIGGER_CGROUP ? "its cgroup uses %.3g %% of its limit"
		                                     : "tasks waited for memory %.3g %% of the time",
		         100 * w->part);
		return text;
	}
	size_format((double)w->value, size);
	if (t->figure == TRIGGER_GROWTH && !w->value)
		snprintf(text, TRIGGER_TEXT, "private memory has not grown");
	else if (t->figure == TRIGGER_GROWTH)
		snprintf(text, TRIGGER_TEXT, "private memory grew by %s within %.3g s", size, (double)w->took_ns / 1e9);
	else
		snprintf(text, TRIGGER_TEXT, "%s is %s", t->figure == TRIGGER_RSS ? "rss" : "private memory", size);
	return text;
}
