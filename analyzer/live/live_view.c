/* SPDX-License-Identifier: MIT */
#include "live/live_view.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "live/live_guard.h"
#include "live/live_keyboard.h"
#include "live/live_screen.h"
#include "base/now.h"
#include "live/terminal.h"

#define LOOK_NS 1000000000ull
#define NAMED_AT_ONCE 2048u
#define LOWER_PRIORITY 5 /* after the target */
#define NOTICE_TEXT 512

struct view {
	const struct live_options *options;
	struct live_heap heap;
	struct live_names names;
	struct live_rows rows;
	struct live_choice choice;
	uint64_t due_ns;          /* of the next look */
	uint64_t cpu_ns;          /* that had been used at the last one */
	double trend[LIVE_TREND]; /* live bytes at the last looks */
	size_t trend_count;
	uint64_t tests; /* so often was it decided what is more than chance */
	bool read;      /* there was a look */
	size_t whole;   /* number of the stack that is shown as a whole */
	char notice[NOTICE_TEXT];
};

int live_check(const struct report_options *o, struct err *e)
{
	if (o->diff || o->at_ns || o->since_ns || o->leaks || o->peak || o->timeline || o->plan > 0 ||
	    filter_any(&o->filter))
		return err_set(e, EINVAL,
		               "--live shows the heap as it is: not with --diff, --at, --since, --leaks, --peak, "
		               "--timeline, --plan or filters");
	if (o->files)
		return err_set(e, EINVAL, "--live shows memory: not with --mapped-files");
	if (o->by > BY_MODULE)
		return err_set(e, EINVAL, "--live shows stacks, functions, files, lines or modules");
	if (!report_is_live(o->sort))
		return err_set(e, EINVAL, "--live sorts by live-bytes or live-count, and by the key s");
	return 0;
}

/* ---- looks ---- */

static int view_open(struct view *v, const struct live_options *o)
{
	const struct report_options *r = o->report;

	*v = (struct view){ .options = o, .choice = { .by = r->by } };
	v->choice.sort = r->sort == FIGURE_LIVE_COUNT ? LIVE_SORT_BLOCKS : LIVE_SORT_LIVE;
	live_names_init(&v->names, r->show_std);
	v->names.by = r->by;
	return live_heap_init(&v->heap, r->symbols ? &r->search : NULL);
}

static void view_close(struct view *v)
{
	live_rows_done(&v->rows);
	live_names_done(&v->names);
	live_heap_done(&v->heap);
}

static size_t page_of(void)
{
	size_t columns, lines;

	terminal_size(&columns, &lines);
	return live_screen_page(lines);
}

/* all: names of whatever many. */
static int make_rows(struct view *v, bool all)
{
	bool left = v->choice.by != BY_STACK;
	double level = live_rows_level(v->options->report->confidence, v->tests++);
	int r = 0;

	if (v->names.by != v->choice.by)
		live_names_set(&v->names, &v->heap, v->choice.by);
	live_rows_done(&v->rows);
	if (left)
		r = live_names_group(&v->names, &v->heap, all ? SIZE_MAX : NAMED_AT_ONCE, &left);
	r = r ?: live_rows_make(&v->rows, &v->heap, &v->names, v->choice.sort, level);
	if (!r && v->choice.filter[0])
		live_rows_filter(&v->rows, &v->heap, &v->names, v->choice.filter);
	if (!v->choice.whole)
		live_choice_fit(&v->choice, v->rows.count, page_of());
	return r;
}

/* When the next look may be made: a look that took long puts it off. */
static void plan_next(struct view *v)
{
	uint64_t cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t wait_ns = (cpu_ns - v->cpu_ns) * LIVE_PART_OF_TIME;

	v->cpu_ns = cpu_ns;
	if (!v->read || wait_ns < LOOK_NS)
		wait_ns = LOOK_NS;
	if (wait_ns >= 2 * LOOK_NS && !v->notice[0])
		snprintf(v->notice, sizeof v->notice, "a look takes %.0f ms: the next one is in %.0f s",
		         (double)wait_ns / LIVE_PART_OF_TIME / 1e6, (double)wait_ns / 1e9);
	v->due_ns = now_ns(CLOCK_MONOTONIC) + wait_ns;
}

static void note_trend(struct view *v)
{
	if (v->trend_count == LIVE_TREND)
		memmove(v->trend, v->trend + 1, sizeof v->trend - sizeof v->trend[0]);
	else
		v->trend_count++;
	v->trend[v->trend_count - 1] = v->heap.total.live[0].value;
}

/* One that fails leaves what was seen before on the screen; the first must succeed. */
static int look(struct view *v, struct err *e)
{
	struct dump *dump;
	bool anew;
	const struct live_options *o = v->options;
	int r = o->path ? dump_open(o->path, &dump, e) : dump_open_fd(o->fd, &dump, e);

	v->notice[0] = 0;
	if (r && v->read) {
		snprintf(v->notice, sizeof v->notice, "warning: the dump cannot be read any more: %.400s", e->text);
		return 0;
	}
	if (r)
		return r;
	r = live_heap_look(&v->heap, dump, &anew);
	dump_close(dump);
	v->trend_count = !r && anew ? 0 : v->trend_count;
	v->choice.whole &= !anew;
	if (!r)
		note_trend(v);
	if (!r && anew)
		live_names_set(&v->names, &v->heap, v->choice.by);
	r = r ?: make_rows(v, v->options->batch > 0);
	return r ? err_set(e, -r, "out of memory") : 0;
}

static bool has_ended(const struct view *v)
{
	return v->heap.end != DUMP_END_RUNNING;
}

static struct live_frame frame_of(const struct view *v)
{
	return (struct live_frame){ .heap = &v->heap,
		                    .rows = &v->rows,
		                    .names = &v->names,
		                    .choice = v->choice,
		                    .confidence = v->options->report->confidence,
		                    .trend = v->trend,
		                    .trend_count = v->trend_count,
		                    .whole = &v->heap.list[v->whole],
		                    .notice = v->notice[0] ? v->notice : NULL };
}

/* ---- for scripts ---- */

static void await_look(const struct view *v)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), left = v->due_ns > now ? v->due_ns - now : 0;
	const struct timespec pause = { (time_t)(left / 1000000000u), (long)(left % 1000000000u) };

	nanosleep(&pause, NULL);
}

static int run_batch(struct view *v, struct err *e)
{
	for (size_t i = 0; i < v->options->batch && !(v->read && has_ended(v)); i++) {
		if (i)
			await_look(v);
		int r = look(v, e);
		if (r)
			return r;
		plan_next(v);
		v->read = true;
		const struct live_frame frame = frame_of(v);
		live_batch_write(&frame, v->options->report->top, stdout);
		if (fflush(stdout))
			return err_sys(e, "cannot write");
	}
	return 0;
}

/* ---- on a terminal ---- */

static void write_screen(const void *view, size_t columns, size_t lines, FILE *out)
{
	const struct view *v = view;
	const struct live_frame frame = frame_of(v);

	live_screen_write(&frame, columns, lines, v->options->colour, out);
}

/* Of a row that is a sum, its largest stack. */
static void choose_whole(struct view *v)
{
	const struct live_stack *stack = live_rows_largest(&v->heap, &v->names, &v->rows.list[v->choice.chosen]);

	v->choice.whole = stack;
	v->whole = stack ? (size_t)(stack - v->heap.list) : 0;
}

static int rows_changed(struct view *v, const struct live_choice *before, bool anew, struct err *e)
{
	if (!anew && before->by == v->choice.by && before->sort == v->choice.sort &&
	    !strcmp(before->filter, v->choice.filter))
		return 0;
	int r = make_rows(v, false);
	return r ? err_set(e, -r, "out of memory") : 0;
}

/* A byte of the filter's text. */
static int type(void *arg, char byte, struct err *e)
{
	struct view *v = arg;
	const struct live_choice before = v->choice;

	live_choice_type(&v->choice, byte);
	return rows_changed(v, &before, false, e);
}

static int apply_key(void *arg, enum live_key key, struct err *e)
{
	struct view *v = arg;
	const struct live_choice before = v->choice;
	size_t lines = v->rows.count;

	if (before.whole)
		lines = live_names_whole(&v->heap, &v->heap.list[v->whole], 0, 0, NULL, NULL);
	live_choice_apply(&v->choice, key, lines, page_of());
	if (v->choice.whole && !before.whole)
		choose_whole(v);
	if (key == LIVE_KEY_RESTART)
		live_heap_restart(&v->heap);
	return rows_changed(v, &before, key == LIVE_KEY_RESTART, e);
}

static int run_view(struct view *v, struct err *e)
{
	struct live_keyboard keyboard = { .typing = &v->choice.typing,
		                          .paused = &v->choice.paused,
		                          .quit = &v->choice.quit,
		                          .type = type,
		                          .apply = apply_key,
		                          .arg = v };
	int r = 0;

	live_keyboard_catch_resize();
	while (!r && !v->choice.quit) {
		if (!v->choice.paused && now_ns(CLOCK_MONOTONIC) >= v->due_ns) {
			r = look(v, e);
			if (r)
				return r;
			plan_next(v);
			v->read = true;
			if (has_ended(v) && !v->options->stays)
				return 0;
			if (has_ended(v))
				v->due_ns = UINT64_MAX; /* there is nothing new to come */
		}
		r = terminal_draw(write_screen, v, e);
		r = r ?: live_keyboard_await(&keyboard, v->due_ns, e);
	}
	return r;
}

/* In the child of the guard. What the session ended with stays on the screen that was there before. */
static int child_main(void *arg, struct err *e)
{
	struct view *v = arg;

	setpriority(PRIO_PROCESS, 0, LOWER_PRIORITY);
	int r = run_view(v, e);
	if (r || !has_ended(v))
		return r;
	terminal_leave();
	const struct live_frame frame = frame_of(v);
	live_screen_last(&frame, stdout);
	fflush(stdout);
	return LIVE_GUARD_LEFT;
}

int live_run(const struct live_options *o, struct err *e)
{
	struct view v;
	int r = view_open(&v, o);

	if (r)
		r = err_set(e, -r, "out of memory");
	else if (o->batch)
		r = run_batch(&v, e);
	else
		r = live_guard_run(child_main, &v, e);
	view_close(&v);
	return r;
}

int live_show(const struct live_options *o, struct err *e)
{
	struct view v;
	int r = view_open(&v, o);

	r = r ? err_set(e, -r, "out of memory") : run_view(&v, e);
	view_close(&v);
	return r;
}
