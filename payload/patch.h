/* SPDX-License-Identifier: MIT */
/* Writes to the target's slots, and takes it back. Only the control thread calls these. */
#ifndef MEMATTACH_PAYLOAD_PATCH_H
#define MEMATTACH_PAYLOAD_PATCH_H

#include <stdint.h>

#include "control.h"

/* Appends the slots to the session's and patches each to its gate; the states are written back too. 0 or -errno;
 * -EINTR: nothing was patched, because nobody told the protections, for which it asks through the channel if that is
 * not -1 (control.h). */
int64_t patch_slots(struct slot *slots, uint32_t count, int channel);
/* Gives each patched slot its old value again, unless it holds something else than its gate by now. -EINTR and channel
 * as above. */
int64_t patch_restore(int channel);
/* Forgets all slots. */
void patch_init(void);

#endif
