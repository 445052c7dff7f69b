/* SPDX-License-Identifier: MIT */
/*
 * Makes room in a live table that cannot grow (common/stats/thinning.h has the statistics). memattach does it from
 * outside, by the protocol that the payload uses among its own threads: a key goes from the address to busy, then to
 * free. The target spends nothing on it, and a hook that looks for a block whose key is busy or gone finds no sample,
 * which is what it is. Only the payload's filter of free does not learn of it: a free of such a block looks into the
 * table once, in vain.
 */
#pragma once

#include "recording/dump_writer.h"

/* The table is crowded and cannot grow. */
bool thinner_is_needed(const struct dump_writer *w);
/* It may soon be: look again in a moment. */
bool thinner_is_near(const struct dump_writer *w);
/* So much room that a smaller rate would not fill it at once. */
bool thinner_has_much_room(const struct dump_writer *w);
/*
 * Gives up live samples until at most a quarter of the table is in use, and lengthens the interval to the one that they
 * are thinned to. *rate is the rate that they have then. -ERANGE: no rate is large enough. -ENOSPC: no room to record
 * it.
 */
int thinner_make_room(struct dump_writer *w, uint64_t *rate, uint64_t *given_up, struct err *e) WARN_UNUSED;
