/* SPDX-License-Identifier: MIT */
/* What the figures are worth, in the text report: its first lines, and a mark at each total. */
#include <string.h>

#include "base/size.h"
#include "text/text.h"

static const char *value_words(enum trust_value value)
{
	static const char *const words[] = { [TRUST_MEASURED] = "measured",
		                             [TRUST_UPPER_BOUND] = "an UPPER BOUND",
		                             [TRUST_LOWER_BOUND] = "a LOWER BOUND",
		                             [TRUST_UNKNOWN] = "UNKNOWN" };

	return words[value];
}

static const char *share_range(const struct trust_share *s, char text[64])
{
	char value[16], low[16], high[16];

	text_percent(s->value, value);
	if (s->low == s->high)
		snprintf(text, 64, "%s", value);
	else
		snprintf(text, 64, "%s (%s .. %s)", value, text_percent(s->low, low), text_percent(s->high, high));
	return text;
}

const char *text_trust_reason(const struct report *r, enum trust_reason reason, char line[LINE_TEXT])
{
	const struct trust *t = &r->trust;
	char a[64], b[40], c[40];

	switch (reason) {
	case TRUST_FREES_MISSED:
		snprintf(line, LINE_TEXT, "frees are not seen: %s of the bytes freed at reused addresses (%s %s)",
		         share_range(&t->share, a), text_grouped((double)t->share.pairs, b),
		         text_plural((double)t->share.pairs, "sample", "samples"));
		break;
	case TRUST_MORE_THAN_MEMORY:
		snprintf(line, LINE_TEXT,
		         "frees are not seen: the live blocks need at least %s of memory, the process has %s",
		         size_format(t->fit_live, b), size_format(t->fit_private, c));
		break;
	case TRUST_ALLOCATOR_INSIDE:
		snprintf(line, LINE_TEXT,
		         "a module has an allocator of its own, and what it allocates by that is not seen");
		break;
	case TRUST_NOT_PATCHED: snprintf(line, LINE_TEXT, "the allocations of some modules are not seen"); break;
	case TRUST_MEMORY_UNSEEN:
		snprintf(line, LINE_TEXT, "private memory grew by %s, seen allocations explain %s at most%s",
		         text_amount(FIGURE_LIVE_BYTES, r->memory.allocators_growth, b),
		         size_format(report_estimate(r, &r->unfiltered, FIGURE_ALLOCATED_BYTES).high, c),
		         r->memory.mmap_sampled ? "" : " (mmap by hand: memattach --mmap)");
		break;
	case TRUST_HOOKS_LOST:
		snprintf(line, LINE_TEXT,
		         "the program has undone hooks: what it allocated and freed by those functions since is not "
		         "seen");
		break;
	default: snprintf(line, LINE_TEXT, "no call of an allocation function was found to sample"); break;
	}
	return line;
}

bool text_all_measured(const struct report *r)
{
	return report_trust(r, FIGURE_LIVE_BYTES) == TRUST_MEASURED &&
	       report_trust(r, FIGURE_ALLOCATED_BYTES) == TRUST_MEASURED;
}

/* Whether a note will say the same, and of which module. */
static bool note_says(const struct report *r, enum trust_reason reason)
{
	uint32_t kind = reason == TRUST_ALLOCATOR_INSIDE ? DUMP_NOTE_STATIC
	                : reason == TRUST_NOT_PATCHED    ? DUMP_NOTE_NOT_PATCHED
	                                                 : 0;

	for (size_t i = 0; kind && i < r->note_count; i++)
		if (r->notes[i].kind == kind)
			return true;
	return false;
}

void text_trust(const struct text *t)
{
	const struct trust *trust = &t->report->trust;
	uint32_t reasons = trust->live.reasons | trust->allocated.reasons;
	char line[LINE_TEXT];

	if (text_all_measured(t->report)) {
		text_label(t, "trust");
		fputs("live and allocated figures are measured\n", t->out);
		return;
	}
	if (trust->live.value == trust->allocated.value)
		snprintf(line, sizeof line, "live and allocated figures are %s", value_words(trust->live.value));
	else
		snprintf(line, sizeof line, "live figures are %s, allocated ones are %s",
		         value_words(trust->live.value), value_words(trust->allocated.value));
	text_warning(t, "TRUST", line);
	for (int i = 0; i < TRUST_REASON_COUNT; i++)
		if (reasons & 1u << i && !note_says(t->report, (enum trust_reason)i))
			text_warning(t, "", text_trust_reason(t->report, i, line));
}

const char *text_trust_mark(const struct text *t, enum report_figure f)
{
	static const char *const marks[] = { [TRUST_MEASURED] = "",
		                             [TRUST_UPPER_BOUND] = "   upper bound",
		                             [TRUST_LOWER_BOUND] = "   lower bound",
		                             [TRUST_UNKNOWN] = "   unknown: see trust" };

	return marks[report_trust(t->report, f)];
}
