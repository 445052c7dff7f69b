/* SPDX-License-Identifier: MIT */
/* Dumps of processes that have ended: they take room until it is short, then the oldest are removed. */
#pragma once

#include "recording/kept_dumps.h"
#include "recording/session_share.h"

struct ended_dumps {
	struct kept_dumps kept;
	uint64_t *bytes; /* of each, on the disk */
	size_t count;
	unsigned removed;
};

/* The session has ended: its memory is room again, its dump takes some. */
void ended_dumps_add(struct ended_dumps *d, const struct session_share *share);
/* Until what is kept back is there. */
void ended_dumps_make_room(struct ended_dumps *d, struct shared_room *room);
void ended_dumps_free(struct ended_dumps *d);
