/* SPDX-License-Identifier: MIT */
#include "json/json_trust.h"

#include "text/text.h"

static void put_part(struct json *j, const struct report *r, const char *key, const struct trust_part *part)
{
	char line[LINE_TEXT];

	json_object(j, key);
	json_string(j, "value", trust_value_name(part->value));
	json_array(j, "reasons");
	for (int i = 0; i < TRUST_REASON_COUNT; i++) {
		if (!(part->reasons & 1u << i))
			continue;
		json_object(j, NULL);
		json_string(j, "reason", trust_reason_name(i));
		json_string(j, "text", text_trust_reason(r, i, line));
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

/* Also where they are too few to matter. */
static void put_share(struct json *j, const struct trust_share *share)
{
	if (!share->pairs) {
		json_string(j, "missed_frees", NULL);
		return;
	}
	json_object(j, "missed_frees");
	json_unsigned(j, "samples", share->pairs);
	json_number(j, "share", share->value);
	json_number(j, "low", share->low);
	json_number(j, "high", share->high);
	json_object_end(j);
}

static void put_fit(struct json *j, const struct trust *t)
{
	if (!(t->fit_live > t->fit_private)) {
		json_string(j, "memory_fit", NULL);
		return;
	}
	json_object(j, "memory_fit");
	json_number(j, "needed_bytes", t->fit_live);
	json_number(j, "private_bytes", t->fit_private);
	json_object_end(j);
}

void json_trust(struct json *j, const struct report *r, const char *const keys[FIGURE_COUNT])
{
	const struct trust *t = &r->trust;

	json_object(j, "trust");
	for (int f = 0; f < FIGURE_COUNT; f++)
		put_part(j, r, keys[f], report_is_live(f) ? &t->live : &t->allocated);
	put_share(j, &t->share);
	put_fit(j, t);
	json_object_end(j);
}
