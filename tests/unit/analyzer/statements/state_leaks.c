/* SPDX-License-Identifier: MIT */
/* What --leaks calls a leak, where there is none and where there is one; beside ten stacks of short-lived churn. */
#include "statements.h"

#define SESSION 30.0 /* of dump_builder */
#define LEAK_RATE 65536u
#define BLOCK 4096u
#define CHURN 2000.0

static double exponential(struct random_source *random, double mean)
{
	return -mean * log(random_unit(random));
}

static double normal(struct random_source *random)
{
	return sqrt(-2 * log(random_unit(random))) * cos(2 * M_PI * random_unit(random));
}

/* Lifetimes, in sessions. */
enum life { EXPONENTIAL, UNIFORM, CONSTANT, LOGNORMAL, PARETO };

static double draw(enum life kind, double a, struct random_source *random)
{
	switch (kind) {
	case EXPONENTIAL: return exponential(random, a);
	case UNIFORM: return a * random_unit(random);
	case CONSTANT: return a;
	case LOGNORMAL: return exp(2 * normal(random)) / a;
	default: return pow(random_unit(random), -1 / a) / 60;
	}
}

static void block(struct dump_builder *b, uint32_t stack, double born, double life)
{
	sample(b, stack, BLOCK, LEAK_RATE, SESSION * born, born + life < 1 ? SESSION * (born + life) : 0);
}

static void steady(struct dump_builder *b, uint32_t stack, double samples, enum life kind, double a,
                   struct random_source *random)
{
	for (double born = exponential(random, 1 / samples); born < 1; born += exponential(random, 1 / samples))
		block(b, stack, born, draw(kind, a, random));
}

static void leak(struct dump_builder *b, uint32_t stack, double from, double samples, struct random_source *random)
{
	double gap = (1 - from) / samples;

	for (double born = from + exponential(random, gap); born < 1; born += exponential(random, gap))
		block(b, stack, born, 10);
}

/* Which is called a leak: the first stack, any other one; whether the first one grows. */
struct called {
	bool first, other, grows;
};

/* With the stack that it is about. */
static uint32_t begin(struct dump_builder *b, struct random_source *random)
{
	session_begin(b, LEAK_RATE, 8192, 128);
	uint32_t stack = session_stack(b, 0);
	for (unsigned i = 1; i <= 10; i++)
		steady(b, session_stack(b, i), CHURN / 10, EXPONENTIAL, 0.005, random);
	return stack;
}

static struct called look(struct dump_builder *b)
{
	struct called called = { 0 };
	struct report r;

	session_report(&r, b, 1, (struct report_options){ .leaks = true });
	for (size_t i = 0; i < r.rows.count; i++) {
		const struct report_row *row = &r.rows.list[i];
		bool first = stack_of_row(row) == 0;
		called.first |= first && row->grown;
		called.grows |= first && row->grows;
		called.other |= !first && row->grown;
	}
	report_done(&r);
	dump_builder_done(b);
	return called;
}

static const struct {
	const char *name;
	double samples;
	enum life kind;
	double a;
} states[] = {
	{ "no leak: exponential lifetimes, mean T/20, 3000 samples", 3000, EXPONENTIAL, 1 / 20.0 },
	{ "no leak: exponential, T/8, 3000", 3000, EXPONENTIAL, 1 / 8.0 },
	{ "no leak: exponential, T/4, 300", 300, EXPONENTIAL, 1 / 4.0 },
	{ "no leak: exponential, T/4, 3000", 3000, EXPONENTIAL, 1 / 4.0 },
	{ "no leak: exponential, T/3, 3000", 3000, EXPONENTIAL, 1 / 3.0 },
	{ "no leak: exponential, T/2, 3000", 3000, EXPONENTIAL, 1 / 2.0 },
	{ "no leak: uniform up to 0.9 T, 3000", 3000, UNIFORM, 0.9 },
	{ "no leak: all 0.8 T, 1000", 1000, CONSTANT, 0.8 },
	{ "no leak: lognormal, median T/60, sigma 2, 3000", 3000, LOGNORMAL, 60 },
	{ "no leak: Pareto 1.2 from T/60, 3000", 3000, PARETO, 1.2 },
};

static const struct {
	const char *name;
	double from, samples, churn, mean, least;
} leaks[] = {
	{ "leak of 30 samples from the start", 0, 30, 0, 0, 0.6 },
	{ "leak of 40", 0, 40, 0, 0, 0.85 },
	{ "leak of 100", 0, 100, 0, 0, 0.95 },
	{ "leak of 100 that begins at 0.2 T", 0.2, 100, 0, 0, 0.95 },
	{ "leak of 100 that begins at 0.33 T", 1 / 3.0, 100, 0, 0, 0.9 },
	{ "leak of 1000 that begins at 0.5 T", 0.5, 1000, 0, 0, 0.95 },
	{ "leak of 40, its stack has 1000 of churn, T/200", 0, 40, 1000, 0.005, 0.85 },
	{ "leak of 600, its stack has 3000 of churn, T/8", 0, 600, 3000, 0.125, 0.95 },
};

void state_leaks(unsigned runs, struct random_source *random)
{
	struct dump_builder b;
	uint32_t stack;

	for (unsigned run = 0; run < runs; run++) {
		bool other = false;
		for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
			stack = begin(&b, random);
			steady(&b, stack, states[i].samples, states[i].kind, states[i].a, random);
			struct called called = look(&b);
			count_statement(states[i].name, FALSE_ALARM, 0, called.first);
			other |= called.other;
		}
		count_statement("no leak: any of ten stacks of churn beside them", FALSE_ALARM, 0, other);
		for (size_t i = 0; i < sizeof leaks / sizeof leaks[0]; i++) {
			stack = begin(&b, random);
			leak(&b, stack, leaks[i].from, leaks[i].samples, random);
			if (leaks[i].churn > 0)
				steady(&b, stack, leaks[i].churn, EXPONENTIAL, leaks[i].mean, random);
			count_statement(leaks[i].name, POWER, leaks[i].least, look(&b).first);
		}
		stack = begin(&b, random);
		leak(&b, stack, 0.5, 100, random);
		count_statement("leak of 100 that begins at 0.5 T: it grows, at least", POWER, 0.9, look(&b).grows);
		stack = begin(&b, random);
		for (int i = 0; i < 300; i++)
			block(&b, stack, fmin(0.999, exponential(random, 1 / 3.0)), 10);
		count_statement("a cache that fills is called a leak", FALSE_ALARM, 0, look(&b).first);
	}
}
