/* SPDX-License-Identifier: MIT */
#include "stats/trust.h"

#include <math.h>

#include "stats/gamma.h"

void free_sum_add(struct free_sum *sum, double bytes, double p, double rest)
{
	sum->value += bytes / p;
	sum->variance += estimate_part_variance(bytes, p, rest);
	sum->samples++;
}

void free_tally_add_pair(struct free_tally *tally, uint64_t size, double p, double later)
{
	double both = p * later;

	free_sum_add(&tally->missed, (double)size, both, 0);
	if (both < 1)
		tally->rarest = fmax(tally->rarest, 1 / fmin(p, later));
}

static void free_sum_merge(struct free_sum *into, const struct free_sum *from)
{
	into->value += from->value;
	into->variance += from->variance;
	into->samples += from->samples;
}

void free_tally_merge(struct free_tally *into, const struct free_tally *from)
{
	free_sum_merge(&into->missed, &from->missed);
	free_sum_merge(&into->seen, &from->seen);
	free_sum_merge(&into->live, &from->live);
	into->replaced += from->replaced;
	into->rarest = fmax(into->rarest, from->rarest);
}

static struct estimate interval_of(const struct free_sum *sum, double next)
{
	const struct estimate_sum s = {
		.value = sum->value, .variance = sum->variance, .next = next, .samples = sum->samples
	};

	return estimate_interval(&s, ESTIMATE_CONFIDENCE);
}

static double part(double missed, double seen)
{
	return missed + seen > 0 ? missed / (missed + seen) : 0;
}

struct trust_share trust_share(const struct free_tally *t, uint64_t rate)
{
	if (!t->missed.samples)
		return (struct trust_share){ 0 };
	struct estimate missed = interval_of(&t->missed, (double)rate * t->rarest);
	struct estimate seen = interval_of(&t->seen, rate > 1 ? (double)rate : 0);
	return (struct trust_share){ .value = part(missed.value, seen.value),
		                     .low = part(missed.low, seen.high),
		                     .high = part(missed.high, seen.low),
		                     .pairs = t->missed.samples };
}

bool trust_share_matters(const struct trust_share *share)
{
	return share->pairs >= TRUST_PAIRS_MIN && share->low > TRUST_SHARE_MIN;
}

/* The bytes whose free was seen or missed, if so many of the latter were. */
static double freed_bytes(const struct free_tally *t, double share)
{
	return t->seen.value + t->replaced + share * t->live.value;
}

static void add_stratum(struct trust_shares *s, const struct free_tally *t, uint64_t rate)
{
	struct trust_share own = trust_share(t, rate);
	double freed = freed_bytes(t, own.value);

	s->missed += own.value * freed;
	s->missed_low += own.low * freed;
	s->missed_high += own.high * freed;
	s->squares += own.value * own.value * freed;
	s->all += freed;
	s->pairs += own.pairs;
}

void trust_shares_add(struct trust_shares *s, const struct free_tally *t, uint64_t rate)
{
	if (t->missed.samples >= TRUST_STRATUM_PAIRS)
		add_stratum(s, t, rate);
	else
		free_tally_merge(&s->rest, t);
}

struct trust_share trust_shares_total(const struct trust_shares *shares, uint64_t rate)
{
	struct trust_shares s = *shares;

	add_stratum(&s, &shares->rest, rate);
	if (!s.pairs || !(s.all > 0))
		return (struct trust_share){ 0 };
	double value = s.missed / s.all;
	double error = rate > 1 ? (double)rate * fmax(0, s.squares - value * s.missed) / (s.all * s.all) : 0;
	double z = stats_normal_quantile((1 + ESTIMATE_CONFIDENCE) / 2);
	double below = sqrt(pow(value - s.missed_low / s.all, 2) + z * z * error);
	double above = sqrt(pow(s.missed_high / s.all - value, 2) + z * z * error);
	struct trust_share share = { .value = value, .pairs = s.pairs };
	share.low = fmax(0, value - below);
	share.high = fmin(1, value + above);
	share.missed_low = share.low * s.all;
	return share;
}

static bool frees_missed(const struct trust_evidence *e)
{
	double effect = fmin(e->share.missed_low, e->share.low * e->live);

	return trust_share_matters(&e->share) && effect > e->live_half;
}

static uint32_t reason(enum trust_reason which, bool holds)
{
	return holds ? 1u << which : 0;
}

static enum trust_value value_of(uint32_t over, uint32_t under, bool blind)
{
	if (blind || (over && under))
		return TRUST_UNKNOWN;
	return over ? TRUST_UPPER_BOUND : under ? TRUST_LOWER_BOUND : TRUST_MEASURED;
}

struct trust trust_decide(const struct trust_evidence *e)
{
	uint32_t over = reason(TRUST_FREES_MISSED, frees_missed(e)) |
	                reason(TRUST_MORE_THAN_MEMORY, e->fit_live > e->fit_private) |
	                reason(TRUST_HOOKS_LOST, e->hooks_lost);
	uint32_t under = reason(TRUST_ALLOCATOR_INSIDE, e->allocator_inside) |
	                 reason(TRUST_NOT_PATCHED, e->not_patched) | reason(TRUST_MEMORY_UNSEEN, e->memory_unseen) |
	                 reason(TRUST_NOTHING_HOOKED, e->nothing_hooked) | reason(TRUST_HOOKS_LOST, e->hooks_lost);
	bool blind = !e->samples && under;

	return (struct trust){ .live = { value_of(over, under, blind), over | under },
		               .allocated = { value_of(0, under, blind), under },
		               .share = e->share,
		               .fit_live = e->fit_live,
		               .fit_private = e->fit_private };
}

bool trust_live_doubtful(const struct trust *t)
{
	return t->live.reasons & (1u << TRUST_FREES_MISSED | 1u << TRUST_MORE_THAN_MEMORY);
}

const char *trust_value_name(enum trust_value value)
{
	static const char *const names[] = { [TRUST_MEASURED] = "measured",
		                             [TRUST_UPPER_BOUND] = "upper_bound",
		                             [TRUST_LOWER_BOUND] = "lower_bound",
		                             [TRUST_UNKNOWN] = "unknown" };

	return names[value];
}

const char *trust_reason_name(enum trust_reason which)
{
	static const char *const names[] = { [TRUST_FREES_MISSED] = "frees_missed",
		                             [TRUST_MORE_THAN_MEMORY] = "more_than_memory",
		                             [TRUST_ALLOCATOR_INSIDE] = "allocator_inside",
		                             [TRUST_NOT_PATCHED] = "not_patched",
		                             [TRUST_MEMORY_UNSEEN] = "memory_unseen",
		                             [TRUST_NOTHING_HOOKED] = "nothing_hooked",
		                             [TRUST_HOOKS_LOST] = "hooks_lost" };

	return names[which];
}
