/* SPDX-License-Identifier: MIT */
#include "cli/census_live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/line_width.h"
#include "base/now.h"
#include "base/size.h"
#include "census/census_report.h"
#include "live/live_guard.h"
#include "live/live_keyboard.h"
#include "live/terminal.h"
#include "process/memory_room.h"

#define EVERY_NS 2000000000ull
#define PART_OF_TIME 20u /* one part of so many is for looks */
#define LOWER_PRIORITY 5 /* after the target */
#define HEAD_LINES 1u

struct view {
	const struct target *target;
	struct live_keyboard keyboard;
	struct census first, now; /* first: none before the second look */
	bool anew;                /* growth is counted from now on */
	enum census_by by;
	char *text; /* of the look that is shown */
	size_t bytes, line_count, top;
	unsigned looks;
	uint64_t every_ns, due_ns, cpu_ns, took_ns;
	char reading[SIZE_TEXT]; /* so much, while the first look lasts */
	bool typing, paused, quit;
};

/* While a look lasts keys are heard by this. */
static struct view *looking;

/* ---- the screen ---- */

static size_t page_of(void)
{
	size_t columns, lines;

	terminal_size(&columns, &lines);
	return lines > HEAD_LINES ? lines - HEAD_LINES : 0;
}

static const char *format_time(uint64_t ns, char text[32])
{
	if (ns < 1000000000u)
		snprintf(text, 32, "%.0f ms", (double)ns / 1e6);
	else
		snprintf(text, 32, "%.3g s", (double)ns / 1e9);
	return text;
}

/* How far looks are apart, and why, if that is further than was asked for. */
static void format_looks(const struct view *v, char text[128])
{
	const uint64_t apart_ns = v->took_ns * PART_OF_TIME;
	char took[32], apart[32];

	if (apart_ns <= v->every_ns)
		snprintf(text, 128, "look %u, every %s", v->looks, format_time(v->every_ns, apart));
	else
		snprintf(text, 128, "look %u (%s), every %s: 5 %% of a CPU", v->looks, format_time(v->took_ns, took),
		         format_time(apart_ns, apart));
}

static void format_head(const struct view *v, char text[256])
{
	char looks[128], change[64] = "";

	format_looks(v, looks);
	if (v->first.target)
		snprintf(change, sizeof change, "; change of %.0f s",
		         (double)(v->now.when_ns - v->first.when_ns) / 1e9);
	if (!v->text)
		snprintf(text, 256, "reading its heap: %s; q quits", v->reading[0] ? v->reading : "it begins");
	else
		snprintf(text, 256, "%s%s; %sq quits, b rows", looks, change, v->paused ? "paused (p); " : "");
}

/* A line of at most so many columns, and what erases the rest. */
static void put_line(const char *line, size_t bytes, size_t columns, const char *end, FILE *out)
{
	char text[512];

	bytes = bytes < sizeof text ? bytes : sizeof text - 1;
	memcpy(text, line, bytes);
	text[bytes] = '\0';
	text[line_width_fit(text, columns)] = '\0';
	fprintf(out, "%s%s%s", end, text, "\033[K");
}

static void write_screen(const void *view, size_t columns, size_t lines, FILE *out)
{
	const struct view *v = view;
	const char *at = v->text ? v->text : "";
	char head[256];

	format_head(v, head);
	put_line(head, strlen(head), columns, "\033[H", out);
	for (size_t i = 0; *at && i + HEAD_LINES < v->top + lines; i++) {
		const char *end = strchrnul(at, '\n');
		if (i >= v->top)
			put_line(at, (size_t)(end - at), columns, "\r\n", out);
		at = *end ? end + 1 : end;
	}
	fputs("\033[J", out);
}

/* ---- looks ---- */

static int make_text(struct view *v, struct err *e)
{
	const struct census_view how = { .before = v->first.target ? &v->first : NULL,
		                         .room = memory_room_of(v->target->pid),
		                         .by = v->by };
	struct census_view view = how;
	char *text = NULL;

	view.out = open_memstream(&text, &v->bytes);
	if (!view.out)
		return err_set(e, ENOMEM, "out of memory");
	int rc = census_report(&v->now, &view, e);
	if (fclose(view.out) && rc == 0)
		rc = err_set(e, ENOMEM, "out of memory");
	if (rc < 0) {
		free(text);
		return rc;
	}
	free(v->text);
	v->text = text;
	v->line_count = 0;
	for (const char *at = text; *at; at++)
		v->line_count += *at == '\n';
	v->top = live_key_scroll(v->top, LIVE_KEY_NONE, v->line_count, page_of());
	return 0;
}

/* Now and then while a heap is read, which may take long. */
static void on_reading(uint64_t bytes)
{
	struct view *v = looking;

	size_format((double)bytes, v->reading);
	if (terminal_draw(write_screen, v, ERR_IGNORED) < 0 || live_keyboard_await(&v->keyboard, 0, ERR_IGNORED) < 0 ||
	    v->quit)
		_exit(0); /* the guard gives the terminal back */
}

static int look(struct view *v, struct err *e)
{
	const struct census_wish wish = { .reading = on_reading };
	struct census next;

	looking = v;
	int rc = census_take(&next, v->target, &wish, e);
	if (rc < 0) {
		census_free(&next);
		return rc;
	}
	census_keep_figures(&next);
	if (v->anew && v->looks) {
		census_free(&v->first);
		v->first = v->now;
		v->anew = false;
	} else {
		census_free(&v->now);
	}
	v->now = next;
	v->looks++;
	return make_text(v, e);
}

/* From the end of this look on. */
static void plan_next(struct view *v)
{
	const uint64_t cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID), spare = v->every_ns / PART_OF_TIME;

	v->took_ns = cpu_ns - v->cpu_ns;
	v->cpu_ns = cpu_ns;
	v->due_ns = now_ns(CLOCK_MONOTONIC) + (v->took_ns > spare ? v->took_ns * PART_OF_TIME : v->every_ns);
}

/* ---- keys ---- */

static int type(void *arg, char byte, struct err *e)
{
	(void)arg;
	(void)byte;
	(void)e;
	return 0;
}

static int apply_key(void *arg, enum live_key key, struct err *e)
{
	struct view *v = arg;

	v->top = live_key_scroll(v->top, key, v->line_count, page_of());
	v->quit |= key == LIVE_KEY_QUIT;
	v->paused ^= key == LIVE_KEY_PAUSE;
	v->anew |= key == LIVE_KEY_RESTART;
	if (key != LIVE_KEY_BY)
		return 0;
	v->by = v->by >= CENSUS_BY_TYPE ? CENSUS_BY_ALL : (enum census_by)(v->by + 1);
	v->top = 0;
	return v->text ? make_text(v, e) : 0;
}

static int run(struct view *v, struct err *e)
{
	int rc = 0;

	live_keyboard_catch_resize();
	while (rc == 0 && !v->quit) {
		if (target_has_ended(v->target))
			return err_set(e, ESRCH, "it has ended");
		if (!v->paused && now_ns(CLOCK_MONOTONIC) >= v->due_ns) {
			rc = look(v, e);
			plan_next(v);
		}
		rc = rc ?: terminal_draw(write_screen, v, e);
		rc = rc ?: live_keyboard_await(&v->keyboard, v->due_ns, e);
	}
	return rc;
}

/* In the child of the guard. What the process ended with stays on the screen that was there before. */
static int child_main(void *arg, struct err *e)
{
	struct view *v = arg;

	setpriority(PRIO_PROCESS, 0, LOWER_PRIORITY);
	v->cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	int rc = run(v, e);
	if (rc == 0 || !target_has_ended(v->target))
		return rc;
	terminal_leave();
	return v->text ? terminal_write(v->text, v->bytes, e) ?: LIVE_GUARD_LEFT : LIVE_GUARD_LEFT;
}

int census_live(const struct target *t, const struct session_options *o, bool *ended, struct err *e)
{
	struct view v = { .target = t, .anew = true, .by = o->by, .every_ns = o->every_ns ? o->every_ns : EVERY_NS };

	v.keyboard = (struct live_keyboard){ .typing = &v.typing,
		                             .paused = &v.paused,
		                             .quit = &v.quit,
		                             .ends = t->pidfd,
		                             .type = type,
		                             .apply = apply_key,
		                             .arg = &v };
	int rc = live_guard_run(child_main, &v, e); /* all is in the child */
	*ended = rc == 0 && target_has_ended(t);
	return rc;
}
