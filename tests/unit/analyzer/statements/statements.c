/* SPDX-License-Identifier: MIT */
/* statements RUNS SEED [PART]: the table, or a part of it. Exit code 1: a row is outside of what docs/statistics.md
 * promises, by more than chance allows. */
#include "statements.h"

#define ROWS 200
#define LEAST_COVERAGE 0.93
#define MOST_ALARMS 0.07
#define CHANCE 3.5 /* standard errors: one row in four thousand */

static struct statement rows[ROWS];
static size_t row_count;

struct statement *statement(const char *name, enum statement_kind kind, double least)
{
	for (size_t i = 0; i < row_count; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	if (row_count == ROWS)
		abort();
	rows[row_count] = (struct statement){ .name = name, .kind = kind, .least = least };
	return &rows[row_count++];
}

void session_begin(struct dump_builder *b, uint64_t rate, uint64_t live, uint64_t history)
{
	dump_builder_init(b, rate, live, 1024, history);
	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/usr/bin/main", NULL, 0, 0);
}

uint32_t session_stack(struct dump_builder *b, unsigned i)
{
	const uint64_t frames[] = { DUMP_FRAME(1, 0x400100 + 16ull * i) };

	return dump_builder_stack(b, frames, 1, 0);
}

int stack_of_row(const struct report_row *row)
{
	return row->frame_count ? (int)((PLACE_OFFSET(row->frames[0]) - 0x400100) / 16) : -1;
}

void session_blocks(struct dump_builder *b, struct random_source *random, uint32_t stack, uint64_t size,
                    uint64_t blocks, uint64_t rate)
{
	double p = estimate_probability(size, rate);
	double log_q = log1p(-p);

	for (double at = p < 1 ? floor(log(random_unit(random)) / log_q) : 0; at < (double)blocks;
	     at += 1 + (p < 1 ? floor(log(random_unit(random)) / log_q) : 0))
		sample(b, stack, size, (uint32_t)rate, 1, 0);
}

static struct dump *open_in_memory(struct dump_builder *b)
{
	char path[] = "/dev/shm/statements.XXXXXX";
	struct dump *dump;
	struct err e;
	int fd = mkstemp(path);

	if (fd < 0 || close(fd) || dump_builder_write(b, path) || dump_open(path, &dump, &e))
		abort();
	unlink(path);
	return dump;
}

void session_report(struct report *r, struct dump_builder *dumps, size_t count, struct report_options options)
{
	struct dump *open[4];
	struct err e;
	int s;

	options.confidence = 0.95;
	s = report_init(r, &options, &e);
	for (size_t i = 0; i < count; i++)
		open[i] = open_in_memory(&dumps[i]);
	if (!s && options.diff)
		s = report_add_pair(r, open[0], "old", open[1], "new", &e);
	for (size_t i = 0; !s && !options.diff && i < count; i++)
		s = report_add(r, open[i], "dump", &e);
	if (s || report_finish(r, &e))
		abort();
	for (size_t i = 0; i < count; i++)
		dump_close(open[i]);
}

/* Wilson's interval. */
static void print_row(const struct statement *s, double *low, double *high)
{
	static const char *const kinds[] = { "holds", "false", "power" };
	double n = s->of, p = s->true_of / n, z = 1.96, d = 1 + z * z / n;
	double middle = (p + z * z / (2 * n)) / d, half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / d;

	*low = middle - half;
	*high = middle + half;
	printf("%-58s %7u  %s %5.1f %%  [%.1f..%.1f]\n", s->name, s->of, kinds[s->kind], 100 * p, 100 * fmax(0, *low),
	       100 * fmin(1, *high));
}

static bool is_kept(const struct statement *s)
{
	double wanted = s->kind == HOLDS ? LEAST_COVERAGE : s->kind == FALSE_ALARM ? MOST_ALARMS : s->least;
	double chance = CHANCE * sqrt(wanted * (1 - wanted) / s->of);
	double p = (double)s->true_of / s->of;

	return s->kind == FALSE_ALARM ? p <= wanted + chance : p >= wanted - chance;
}

/* dear: a tenth of the runs is made. */
static const struct part {
	const char *name;
	void (*state)(unsigned runs, struct random_source *random);
	bool dear;
} parts[] = { { "comparisons", state_comparisons, false },
	      { "leaks", state_leaks, false },
	      { "figures", state_figures, false },
	      { "rows", state_rows, false },
	      { "live", state_live, true },
	      { "views", state_views, false } };

/* Each part has the seed for itself. */
int main(int argc, char **argv)
{
	unsigned runs = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	int bad = 0;

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		struct random_source random = { seed };
		if (argc < 4 || !strcmp(argv[3], parts[i].name))
			parts[i].state(parts[i].dear ? (runs + 9) / 10 : runs, &random);
	}
	for (size_t i = 0; i < row_count; i++) {
		double low, high;
		print_row(&rows[i], &low, &high);
		if (!is_kept(&rows[i])) {
			printf("^ is outside of what is promised\n");
			bad = 1;
		}
	}
	return bad;
}
