/* SPDX-License-Identifier: MIT */
/*
 * Two states of one session: a block that is live in both changes nothing, but for what has gone of a mapping. The
 * blocks of the earlier state are put down first, then the later state is read, then the earlier one. A mapping may be
 * whole in the one and in parts in the other, so all mappings are told as parts (parts.h).
 */
#pragma once

#include "base/map.h"
#include "dump/dump_reader.h"
#include "input/parts/parts.h"

/* The live blocks of the earlier state. -ENOMEM. */
int sample_pairs_keys(struct dump *dump, struct map *kept) WARN_UNUSED;
/* Adds a live block of the later state to what came, one of the earlier state to what went: pair. -ENOMEM. */
int sample_pairs_add(struct map *kept, bool later, struct estimate_sum pair[2], const struct sample *sample,
                     double p) WARN_UNUSED;
