/* SPDX-License-Identifier: MIT */
#include "report/judge.h"

#include "filter/fold.h"

/* The private memory is looked at just before the end; what the kernel has not yet accounted, and stacks, are less. */
#define FIT_SLACK_BYTES (4u << 20)
#define COLLECTOR_FRAMES 12u          /* in which the caller of the allocator is */
#define GARBAGE_MAX_BYTES (96u << 20) /* half as much again as V8 waits for */

/*
 * Only where the private memory was looked at when the recording ended: else blocks may have been allocated since. Of
 * several sessions the one with the largest excess is kept.
 */
static void judge_fit(struct trust_evidence *e, const struct recorded_session *s, struct estimate_sum fit)
{
	if (s->end != DUMP_END_DETACHED || !s->private_latest_bytes)
		return;
	fit.next = s->largest_rate_bytes > 1 ? (double)s->largest_rate_bytes : 0;
	struct estimate x = estimate_interval(&fit, ESTIMATE_CONFIDENCE);
	double most = (double)(s->private_latest_bytes > s->private_start_bytes ? s->private_latest_bytes
	                                                                        : s->private_start_bytes);
	if (x.low <= most + FIT_SLACK_BYTES || x.low - most <= e->fit_live - e->fit_private)
		return;
	e->fit_live = x.low;
	e->fit_private = most;
}

void judge_note(struct report *r, uint32_t kind)
{
	r->evidence.allocator_inside |= kind == DUMP_NOTE_STATIC;
	r->evidence.not_patched |= kind == DUMP_NOTE_NOT_PATCHED;
	r->evidence.hooks_lost |= kind == DUMP_NOTE_HOOKS_LOST;
}

void judge_session(struct report *r, const struct recorded_session *s, const struct estimate_sum *fit,
                   uint64_t got_entries)
{
	struct trust_evidence *e = &r->evidence;
	uint64_t taken = s->counters[DUMP_COUNTER_samples_taken];

	judge_fit(e, s, *fit);
	e->samples += taken;
	e->nothing_hooked |= !taken && !got_entries && s->state != DUMP_STATE_PREPARING && r->images.count > 1;
}

static void judge_frees(struct report *r)
{
	struct trust_evidence *e = &r->evidence;
	struct trust_shares shares = { 0 };
	const struct free_sum *live = &r->total.frees.live;
	const struct estimate_sum sum = { .value = live->value,
		                          .variance = live->variance,
		                          .samples = live->samples,
		                          .next = r->largest_rate > 1 ? (double)r->largest_rate : 0 };
	struct estimate x = estimate_interval(&sum, ESTIMATE_CONFIDENCE);

	for (size_t i = 0; i < r->rows.count; i++)
		trust_shares_add(&shares, &r->rows.list[i].frees, r->largest_rate);
	e->share = trust_shares_total(&shares, r->largest_rate);
	e->live = x.value;
	e->live_half = (x.high - x.low) / 2;
}

void judge(struct report *r)
{
	struct trust_evidence *e = &r->evidence;

	judge_frees(r);
	e->memory_unseen = r->memory.mostly_unseen;
	r->trust = trust_decide(e);
}

/* The array buffers of V8: it collects when 64 MiB have been added since the last time (kExternalAllocationSoftLimit).
 */
static bool may_be_garbage(const struct report *r, const struct report_row *row)
{
	size_t frames = row->frame_count < COLLECTOR_FRAMES ? row->frame_count : COLLECTOR_FRAMES;

	if (!r->symbols || estimate_interval(&row->leak->bytes, r->options.confidence).low > GARBAGE_MAX_BYTES)
		return false;
	symbols_want(r->symbols, row->frames, frames);
	for (size_t i = 0; i < frames; i++) {
		size_t count;
		const struct location *list = symbols_find(r->symbols, row->frames[i], &count);
		for (size_t k = 0; k < count; k++)
			if (fold_is_collected(list[k].function))
				return true;
	}
	return false;
}

void judge_row(const struct report *r, struct report_row *row)
{
	struct trust_share own = trust_share(&row->frees, r->largest_rate);

	if (!r->rows.leaks && !report_is_live(r->options.sort))
		return;
	row->doubtful = trust_live_doubtful(&r->trust) || trust_share_matters(&own);
	row->grown = row->grown && !row->doubtful;
	row->grows = row->grows && !row->doubtful;
	row->collected = r->rows.leaks && row->grown && may_be_garbage(r, row);
	row->grown = row->grown && !row->collected;
}
