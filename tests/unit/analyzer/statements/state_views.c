/* SPDX-License-Identifier: MIT */
/* The stack that the first line calls the largest; the intervals of all moments of a timeline together, and the highest
 * of them; what was live when most was. */
#include "statements.h"

#define VIEW_RATE 65536u
#define BLOCK 4096u
#define STACKS_MAX 300
#define SPAN 30.0 /* seconds of a session of dump_builder */
#define MOMENTS 20
#define STREAM_MAX 65536u

/* Whether it is called the largest, and whether it is. */
static void name_largest(const uint64_t *blocks, unsigned stacks, bool *named, bool *right,
                         struct random_source *random)
{
	struct dump_builder b;
	struct report r;
	uint64_t most = 0;

	session_begin(&b, VIEW_RATE, 32768, 1);
	for (unsigned i = 0; i < stacks; i++) {
		session_blocks(&b, random, session_stack(&b, i), BLOCK, blocks[i], VIEW_RATE);
		most = blocks[i] > most ? blocks[i] : most;
	}
	session_report(&r, &b, 1, (struct report_options){ 0 });
	*named = report_first_is_largest(&r, r.options.sort);
	*right = *named && blocks[stack_of_row(r.rows.list)] == most;
	report_done(&r);
	dump_builder_done(&b);
}

/* Of equal stacks the first has one block more than the others. */
static void state_equal(unsigned stacks, uint64_t samples, const char *name, struct random_source *random)
{
	uint64_t blocks[STACKS_MAX];
	bool named, right;

	for (unsigned i = 0; i < stacks; i++)
		blocks[i] = samples * VIEW_RATE / BLOCK + !i;
	name_largest(blocks, stacks, &named, &right, random);
	count_statement(name, FALSE_ALARM, 0, named && !right);
}

static void state_lognormal(const char *name, struct random_source *random)
{
	uint64_t blocks[STACKS_MAX];
	bool named, right;

	for (unsigned i = 0; i < STACKS_MAX; i++) {
		double normal = sqrt(-2 * log(random_unit(random))) * cos(2 * M_PI * random_unit(random));
		blocks[i] = 1 + (uint64_t)fmin(10 * exp(2 * normal), 20000);
	}
	name_largest(blocks, STACKS_MAX, &named, &right, random);
	count_statement(name, FALSE_ALARM, 0, named && !right);
}

static void state_first(const char *name, struct random_source *random)
{
	uint64_t blocks[STACKS_MAX];
	bool named, right;

	for (unsigned i = 0; i < 100; i++)
		blocks[i] = (i ? 50 : 150) * VIEW_RATE / BLOCK;
	name_largest(blocks, 100, &named, &right, random);
	count_statement(name, POWER, 0.9, right);
}

/* Blocks of a quarter of R come at a steady rate and live for so long on average; so many samples are live. What of the
 * blocks lives at one time is asked for afterwards. */
struct stream {
	double born[STREAM_MAX], freed[STREAM_MAX];
	size_t count;
};

static double live_in(const struct stream *s, double at)
{
	double sum = 0;

	for (size_t i = 0; i < s->count; i++)
		sum += s->born[i] <= at && s->freed[i] > at ? VIEW_RATE / 4 : 0;
	return sum;
}

static void state_peak(double samples, double lifetime, const char *name, const char *row_name,
                       struct random_source *random)
{
	static struct stream stream;
	const uint64_t size = VIEW_RATE / 4;
	double p = estimate_probability(size, VIEW_RATE), pace = samples / p / lifetime;
	struct dump_builder b;
	struct report r;

	session_begin(&b, VIEW_RATE, 4096, 8192);
	uint32_t stack = session_stack(&b, 0);
	stream.count = 0;
	for (double born = -log(random_unit(random)) / pace; born < SPAN && stream.count < STREAM_MAX;
	     born -= log(random_unit(random)) / pace) {
		double freed = born - log(random_unit(random)) * lifetime;
		stream.born[stream.count] = born;
		stream.freed[stream.count++] = freed;
		if (random_unit(random) < p)
			sample(&b, stack, size, VIEW_RATE, born, freed < SPAN ? freed : 0);
	}
	session_report(&r, &b, 1, (struct report_options){ .peak = true });
	double truth = live_in(&stream, (double)r.options.at_ns / 1e9);
	holds(name, report_estimate(&r, &r.total, FIGURE_LIVE_BYTES), truth);
	if (r.rows.count && r.rows.list[0].sum[FIGURE_LIVE_BYTES].samples)
		holds(row_name, report_estimate(&r, &r.rows.list[0], FIGURE_LIVE_BYTES), truth);
	report_done(&r);
	dump_builder_done(&b);
}

static void state_timeline(double samples, double lifetime, const char *name, const char *highest,
                           struct random_source *random)
{
	const uint64_t size = VIEW_RATE / 4;
	double p = estimate_probability(size, VIEW_RATE), pace = samples / p / lifetime, truth[MOMENTS] = { 0 };
	struct dump_builder b;
	struct report r;
	double most = 0;
	bool all = true;

	session_begin(&b, VIEW_RATE, 4096, 8192);
	uint32_t stack = session_stack(&b, 0);
	for (double born = -log(random_unit(random)) / pace; born < SPAN; born -= log(random_unit(random)) / pace) {
		double freed = born - log(random_unit(random)) * lifetime;
		for (size_t i = 0; i < MOMENTS; i++) {
			double at = SPAN * (double)(i + 1) / MOMENTS;
			truth[i] += born <= at && freed > at ? (double)size : 0;
		}
		if (random_unit(random) < p)
			sample(&b, stack, size, VIEW_RATE, born, freed < SPAN ? freed : 0);
	}
	session_report(&r, &b, 1, (struct report_options){ .timeline = MOMENTS });
	for (size_t i = 0; i < MOMENTS; i++) {
		struct estimate x = report_at_moment(&r, &r.timeline.points[i].live, true);
		all &= x.low <= truth[i] && truth[i] <= x.high;
		most = fmax(most, truth[i]);
	}
	count_statement(name, HOLDS, 0, all);
	holds(highest, report_highest(&r), most);
	report_done(&r);
	dump_builder_done(&b);
}

/* --since in a steady heap: what its rows, the first one and the total say of growth, and whether any is called grown.
 */
static void state_since(struct random_source *random)
{
	enum { STACKS = 20 };
	const uint64_t size = VIEW_RATE / 4;
	const double since = 20, lifetime = 3, samples = 10;
	double p = estimate_probability(size, VIEW_RATE), pace = samples / p / lifetime, truth[STACKS] = { 0 }, all = 0;
	struct dump_builder b;
	struct report r;
	bool any = false;

	session_begin(&b, VIEW_RATE, 4096, 8192);
	for (unsigned i = 0; i < STACKS; i++) {
		uint32_t stack = session_stack(&b, i);
		for (double born = -log(random_unit(random)) / pace; born < SPAN;
		     born -= log(random_unit(random)) / pace) {
			double freed = born - log(random_unit(random)) * lifetime;
			truth[i] += (double)size * ((freed > SPAN) - (born <= since && freed > since));
			if (random_unit(random) < p)
				sample(&b, stack, size, VIEW_RATE, born, freed < SPAN ? freed : 0);
		}
		all += truth[i];
	}
	session_report(&r, &b, 1, (struct report_options){ .since_ns = (uint64_t)(since * 1e9) });
	for (size_t i = 0; i < r.rows.count; i++) {
		struct estimate x = report_growth(&r, &r.rows.list[i], FIGURE_LIVE_BYTES);
		double grown = truth[stack_of_row(&r.rows.list[i])];
		holds("--since, 20 steady stacks of 10 samples: rows", x, grown);
		if (!i)
			holds("--since, 20 steady stacks of 10 samples: first row", x, grown);
		any |= r.rows.list[i].grown && grown <= 0;
	}
	holds("--since, 20 steady stacks of 10 samples: total", report_growth(&r, &r.total, FIGURE_LIVE_BYTES), all);
	count_statement("--since, 20 steady stacks: a row is called grown, and is not", FALSE_ALARM, 0, any);
	report_done(&r);
	dump_builder_done(&b);
}

void state_views(unsigned runs, struct random_source *random)
{
	for (unsigned run = 0; run < runs; run++) {
		state_equal(100, 50, "100 equal stacks of 50 samples: one is called the largest", random);
		state_equal(10, 5, "10 equal stacks of 5 samples: one is called the largest", random);
		state_equal(2, 20, "2 equal stacks of 20 samples: the smaller is called the largest", random);
		state_lognormal("300 lognormal stacks: another one is called the largest", random);
		state_first("a stack of 150 samples, 99 of 50: it is called the largest", random);
		state_timeline(5, 0.5, "--timeline, 5 live samples: all of its intervals",
		               "--timeline, 5 live samples: the highest", random);
		state_timeline(50, 1, "--timeline, 50 live samples: all of its intervals",
		               "--timeline, 50 live samples: the highest", random);
		state_timeline(50, 10, "--timeline, up to 50 live samples, long lives: all",
		               "--timeline, up to 50 live samples, long lives: the highest", random);
		state_since(random);
		state_peak(5, 0.3, "--peak, 5 live samples of 0.3 s", "--peak, 5 live samples of 0.3 s: first row",
		           random);
		state_peak(20, 1, "--peak, 20 live samples of 1 s", "--peak, 20 live samples of 1 s: first row",
		           random);
		state_peak(100, 1, "--peak, 100 live samples of 1 s", "--peak, 100 live samples of 1 s: first row",
		           random);
	}
}
