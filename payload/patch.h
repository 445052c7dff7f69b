/* SPDX-License-Identifier: MIT */
/* Writes to the target's GOT entries, and takes it back. Only the control thread calls these. */
#ifndef MEMATTACH_PAYLOAD_PATCH_H
#define MEMATTACH_PAYLOAD_PATCH_H

#include <stdint.h>

#include "control.h"

/* Appends the GOT entries to the session's and patches each to its trampoline; the states are written back too. 0 or
 * -errno; -EINTR: nothing was patched, because nobody told the protections, for which it asks through the channel if
 * that is not -1 (control.h). */
int64_t patch_entries(struct got_entry *entries, uint32_t count, int channel);
/* Gives each patched GOT entry its old value again, unless it holds something else than its trampoline by now. -EINTR
 * and channel as above. */
int64_t patch_restore(int channel);
/* Forgets all GOT entries. */
void patch_init(void);

#endif
