/* SPDX-License-Identifier: MIT */
#include "system/ended_dumps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "host/say.h"

#define BLOCK_BYTES 512 /* of st_blocks */

void ended_dumps_add(struct ended_dumps *d, const struct session_share *share)
{
	struct stat st;

	share->room->left += (int64_t)share->bytes;
	if (!share->path[0] || lstat(share->path, &st) < 0 || !grow_list(d->bytes, d->count))
		return;
	d->kept.limit = SIZE_MAX;
	if (kept_dumps_add(&d->kept, share->path, &share->identity, ERR_IGNORED) < 0)
		return;
	d->bytes[d->count++] = (uint64_t)st.st_blocks * BLOCK_BYTES;
	share->room->left -= (int64_t)st.st_blocks * BLOCK_BYTES;
}

void ended_dumps_make_room(struct ended_dumps *d, struct shared_room *room)
{
	struct err e;

	while (d->count && room->left < room->kept_back) {
		if (kept_dumps_remove_oldest(&d->kept, &e) < 0)
			say_error(0, "%s", e.text);
		else
			d->removed++;
		room->left += (int64_t)d->bytes[0];
		memmove(d->bytes, d->bytes + 1, --d->count * sizeof *d->bytes);
	}
}

void ended_dumps_free(struct ended_dumps *d)
{
	kept_dumps_free(&d->kept);
	free(d->bytes);
	*d = (struct ended_dumps){ 0 };
}
