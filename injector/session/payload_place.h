/* SPDX-License-Identifier: MIT */
/* Where the payload is in the target: of this session, or of one whose memattach died. */
#pragma once

#include "session/session.h"

/* Finds the payload of this session, or if it has none of its own yet, that of another one in the target; base 0 if
 * there is none. */
int payload_place_find(struct session *s, struct err *e) WARN_UNUSED;
/* The payload that this session has just loaded: notes its place, and reads its session block. */
int payload_place_set(struct session *s, uint64_t base, uint64_t end, uint64_t code_end, struct err *e) WARN_UNUSED;
/* Is it mapped where it was loaded? Not after execve; what is in it may be anything. */
bool payload_place_is_mapped(const struct session *s);
/* The payload that was found has hooks in force, or inert ones. */
bool payload_place_is_active(const struct session *s);
/*
 * What dlopen returned for the payload. A memattach that died between dlopen and CONTROL_START could not note it; then
 * the link map tells, which is what glibc uses as handle. 0: memattach has mapped the payload by itself (load.h).
 */
uint64_t payload_place_handle(const struct session *s);
