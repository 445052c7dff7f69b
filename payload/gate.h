/* SPDX-License-Identifier: MIT */
/* The gates (include/control.h): mapped by CONTROL_START, set by CONTROL_PATCH, made inert by CONTROL_INERT. Only the control
 * thread calls these. */
#ifndef MEMATTACH_PAYLOAD_GATE_H
#define MEMATTACH_PAYLOAD_GATE_H

#include <stdint.h>

#include "control.h"

/* Maps the gates' code from payload_fd and a page of struct gate; fills the session's gates_* and text_* words. 0 or -errno. */
int64_t gates_map(int payload_fd);
void gates_unmap(void);
/* Sets gates [session.gate_count, count) and counts them in. 0 or -errno. */
int64_t gates_set(const struct control_gate *gates, uint32_t count);
void gates_inert(void);
/* What a slot holds that is patched to gate i. */
uint64_t gate_address(uint32_t i);

#endif
