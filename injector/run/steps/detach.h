/* SPDX-License-Identifier: MIT */
/* The end of a session, see detach.c. */
#pragma once

#include "session/session.h"

/* Restores, proves, unloads, verifies. -EBUSY and the like: still attached. What had to stay is in residue. */
int detach_session(struct session *s, struct err *e) WARN_UNUSED;
