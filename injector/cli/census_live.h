/* SPDX-License-Identifier: MIT */
/*
 * --census --live: the census on the terminal, again and again, with what has changed since the first look. A child
 * looks and draws; the guard (live_guard.h) gives the terminal back however it ends. Nothing is held of the process.
 *
 * Looks are as far apart as --every says (2 s), and further where one takes more than a 20th of that of CPU time: so
 * 5 % of a processor at most go into them, however large the heap is.
 */
#pragma once

#include "process/target.h"
#include "session/session.h"

/* *ended: the process has, in which case the last look is left on the terminal. -errno with a text: it could not be
 * looked at. Does not return where a signal ends it. */
int census_live(const struct target *t, const struct session_options *o, bool *ended, struct err *e) WARN_UNUSED;
