/* SPDX-License-Identifier: MIT */
/* Calls of the payload's control function by a borrowed thread (include/control.h). */
#ifndef MEMATTACH_CONTROL_CALL_H
#define MEMATTACH_CONTROL_CALL_H

#include "touch/remote/remote.h"
#include "session/session.h"

/* What the payload could not do is in e. what completes "the payload could not …". */
int control_call(struct session *s, struct remote *r, enum control_op op, uint64_t argument, const char *what,
                 uint64_t deadline_ns, struct err *e) WARN_UNUSED;

#endif
