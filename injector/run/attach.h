/* SPDX-License-Identifier: MIT */
/* Loading the payload and starting the recording, see attach.c. */
#ifndef MEMATTACH_ATTACH_H
#define MEMATTACH_ATTACH_H

#include "session/session.h"

/* Loads the payload, starts recording, patches. On failure the target is as before. */
int session_attach(struct session *s, struct err *e) WARN_UNUSED;
/* Patches what modules that were loaded later brought with them. */
int session_patch_more(struct session *s, struct err *e) WARN_UNUSED;
/* The allocator's malloc_usable_size, 0 if it does not serve every block that the trampolines of the plans see. */
uint64_t session_usable_size(const struct session *s);

#endif
