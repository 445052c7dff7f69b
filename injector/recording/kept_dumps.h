/* SPDX-License-Identifier: MIT */
/*
 * The dumps that a memattach with --every has written, the oldest of which make way for new ones. Only these are ever
 * removed, and only if the name still leads to the file that memattach wrote: what was there before, and what somebody
 * has put under the name since, stays.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "recording/file_identity.h"

struct kept_dump;

struct kept_dumps {
	struct kept_dump *list; /* the oldest first */
	size_t count;
	size_t limit; /* at least 1 */
};

/* One more, which is kept. -ENOMEM: it is not counted, so it stays for ever; -errno: the oldest cannot be removed, and
 * stays for ever. */
int kept_dumps_add(struct kept_dumps *k, const char *path, const struct file_identity *identity,
                   struct err *e) WARN_UNUSED;
/* The oldest, which there must be, makes way. */
int kept_dumps_remove_oldest(struct kept_dumps *k, struct err *e) WARN_UNUSED;
void kept_dumps_free(struct kept_dumps *k);
