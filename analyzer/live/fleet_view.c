/* SPDX-License-Identifier: MIT */
#include "live/fleet_view.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/now.h"
#include "live/fleet_rows.h"
#include "live/fleet_screen.h"
#include "live/live_guard.h"
#include "live/live_keyboard.h"
#include "live/live_view.h"
#include "live/terminal.h"

#define LOOK_NS 1000000000ull
#define LOWER_PRIORITY 5 /* after what runs on the machine */

struct fleet_view {
	const struct fleet_options *options;
	struct fleet fleet;
	struct live_choice choice;
	size_t rows[FLEET_MAX]; /* that the filter leaves */
	size_t row_count;
	uint64_t due_ns, cpu_ns;
	bool read, wants_heap;
	char notice[200];
};

static enum fleet_sort sort_of(const struct fleet_view *v)
{
	return (enum fleet_sort)v->choice.sort; /* there are as many */
}

_Static_assert((int)FLEET_SORT_COUNT == (int)LIVE_SORT_COUNT, "the key s goes through all");

static size_t page_of(void)
{
	size_t columns, lines;

	terminal_size(&columns, &lines);
	return fleet_screen_page(lines);
}

static const char *chosen_file(const struct fleet_view *v)
{
	return v->choice.chosen < v->row_count ? v->fleet.list[v->rows[v->choice.chosen]].file : NULL;
}

/* The mark stays on its process: file, or NULL. */
static void make_rows(struct fleet_view *v, const char *file)
{
	v->row_count = 0;
	for (size_t i = 0; i < v->fleet.count; i++) {
		if (!fleet_fits(&v->fleet.list[i], v->choice.filter))
			continue;
		if (file && !strcmp(v->fleet.list[i].file, file))
			v->choice.chosen = v->row_count;
		v->rows[v->row_count++] = i;
	}
	live_choice_fit(&v->choice, v->row_count, page_of());
}

static int look(struct fleet_view *v, struct err *e)
{
	const char *chosen = v->choice.chosen ? chosen_file(v) : NULL; /* the first place is the first place */
	AUTO_FREE char *file = chosen ? strdup(chosen) : NULL;
	size_t first = v->choice.first < v->row_count ? v->rows[v->choice.first] : 0;
	int r = fleet_look(&v->fleet, v->options->directory, v->options->report, sort_of(v), first, e);

	v->notice[0] = 0;
	if (r && v->read)
		snprintf(v->notice, sizeof v->notice, "warning: %.150s", e->text);
	else if (r)
		return r;
	else if (!v->fleet.count && !v->fleet.left_out)
		snprintf(v->notice, sizeof v->notice, "no dump is there yet; q quits");
	v->read = true;
	make_rows(v, file);
	uint64_t cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID), wait_ns = (cpu_ns - v->cpu_ns) * LIVE_PART_OF_TIME;
	v->cpu_ns = cpu_ns;
	v->due_ns = now_ns(CLOCK_MONOTONIC) + (wait_ns > LOOK_NS ? wait_ns : LOOK_NS);
	return 0;
}

static void write_screen(const void *view, size_t columns, size_t lines, FILE *out)
{
	const struct fleet_view *v = view;
	const struct fleet_frame frame = { .directory = v->options->directory,
		                           .fleet = &v->fleet,
		                           .rows = v->rows,
		                           .row_count = v->row_count,
		                           .sort = sort_of(v),
		                           .choice = v->choice,
		                           .notice = v->notice[0] ? v->notice : NULL };

	fleet_screen_write(&frame, columns, lines, v->options->colour, out);
}

static int type(void *arg, char byte, struct err *e)
{
	struct fleet_view *v = arg;

	(void)e;
	live_choice_type(&v->choice, byte);
	make_rows(v, NULL);
	return 0;
}

static int apply_key(void *arg, enum live_key key, struct err *e)
{
	struct fleet_view *v = arg;
	enum live_sort sort = v->choice.sort;

	(void)e;
	live_choice_apply(&v->choice, key, v->row_count, page_of());
	v->wants_heap = v->choice.whole;
	v->choice.whole = false;
	if (sort != v->choice.sort)
		fleet_sort(&v->fleet, sort_of(v));
	make_rows(v, NULL);
	return 0;
}

/* Until q. A dump that cannot be read any more is said. */
static int show_heap(struct fleet_view *v, struct err *e)
{
	char path[PATH_MAX];
	const char *file = chosen_file(v);
	const struct live_options options = {
		.path = path, .report = v->options->report, .colour = v->options->colour, .stays = true
	};
	struct err failed;

	(void)e;
	v->wants_heap = false;
	if (file && (size_t)snprintf(path, sizeof path, "%s/%s", v->options->directory, file) < sizeof path &&
	    live_show(&options, &failed))
		snprintf(v->notice, sizeof v->notice, "%.40s: %.150s", file, failed.text);
	v->cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	return 0;
}

/* In the child of the guard. */
static int child_main(void *arg, struct err *e)
{
	struct fleet_view *v = arg;
	struct live_keyboard keyboard = { .typing = &v->choice.typing,
		                          .paused = &v->choice.paused,
		                          .quit = &v->choice.quit,
		                          .type = type,
		                          .apply = apply_key,
		                          .arg = v };
	int r = 0;

	setpriority(PRIO_PROCESS, 0, LOWER_PRIORITY);
	live_keyboard_catch_resize();
	while (!r && !v->choice.quit) {
		if (!v->choice.paused && now_ns(CLOCK_MONOTONIC) >= v->due_ns)
			r = look(v, e);
		r = r ?: terminal_draw(write_screen, v, e);
		r = r ?: live_keyboard_await(&keyboard, v->due_ns, e);
		if (!r && v->wants_heap)
			r = show_heap(v, e);
	}
	return r;
}

int fleet_view_run(const struct fleet_options *options, struct err *e)
{
	struct fleet_view *v = calloc(1, sizeof *v);

	if (!v)
		return err_set(e, ENOMEM, "out of memory");
	v->options = options;
	int r = live_guard_run(child_main, v, e);
	fleet_done(&v->fleet);
	free(v);
	return r;
}
