/* SPDX-License-Identifier: MIT */
/*
 * How much the target can still map (RLIMIT_AS), write to (RLIMIT_DATA), and lock (RLIMIT_MEMLOCK, where it locks all
 * that it maps).
 *
 * The dump and the unwind tables are mapped for their greatest size at once. That is nothing but addresses, but it
 * counts. What is left is the target's: memattach takes at most half, with a smaller dump and smaller tables if need
 * be. The same holds for its data, and for the number of its mappings (vm.max_map_count), of which the payload needs a
 * fixed amount.
 */
#pragma once

#include "session/session.h"

/*
 * Makes options.max_bytes and *tables_bytes fit, and says so in a line. -ENOMEM: even the least does not; nothing was
 * touched, and the text says how much is missing.
 */
int address_space_fit(struct session *s, uint64_t *tables_bytes, struct err *e) WARN_UNUSED;

/* The pure part. room: bytes left; text_bytes: code of the modules. -ENOMEM: *missing more would do. */
struct address_space {
	uint64_t dump_bytes;
	uint64_t tables_bytes;
};
int address_space_share(struct address_space *wish, uint64_t room, uint64_t text_bytes, uint64_t *missing) WARN_UNUSED;
