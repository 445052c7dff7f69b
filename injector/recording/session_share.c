/* SPDX-License-Identifier: MIT */
#include "recording/session_share.h"

#include <stdio.h>
#include <unistd.h>

bool session_share_take(struct session_share *share, uint64_t bytes, bool first)
{
	struct shared_room *room = share->room;
	int64_t left = atomic_load_explicit(&room->left, memory_order_relaxed), kept = first ? 0 : room->kept_back;

	do {
		if (left - kept < (int64_t)bytes)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&room->left, &left, left - (int64_t)bytes, memory_order_relaxed,
	                                                memory_order_relaxed));
	atomic_fetch_add_explicit(&share->bytes, bytes, memory_order_relaxed);
	return true;
}

void session_share_attached(struct session_share *share)
{
	const uint64_t one = 1;

	share->why[0] = '\0'; /* what did not keep it from attaching */
	atomic_store_explicit(&share->attached, true, memory_order_release);
	(void)!write(share->event, &one, sizeof one);
}

void session_share_fails(struct session_share *share, const char *why)
{
	if (why)
		snprintf(share->trouble, sizeof share->trouble, "%s", why);
	atomic_store_explicit(&share->failing, why != NULL, memory_order_release);
}
