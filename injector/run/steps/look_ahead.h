/* SPDX-License-Identifier: MIT */
/* For sessions that begin later: what would be refused now is refused now, and not at night when the time has come. */
#pragma once

#include "session/session.h"

/* As an attach would fail, by a look at the process alone; nothing of it is kept but unwind tables in the cache. */
int look_ahead(const struct session_options *options, struct err *e) WARN_UNUSED;

/* May it be attached to, by which thread, with which hooks and unwind tables: of a process that was inspected. */
int look_ahead_plan(struct session *s, struct err *e) WARN_UNUSED;
