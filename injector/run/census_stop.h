/* SPDX-License-Identifier: MIT */
/*
 * The moment in which a process stands still for its census (reach.h): while a clone of it is made, which is read then
 * (census_clone.h), or where that cannot be, or is not wanted, while its memory is read. Frozen so, all threads are
 * stopped by ptrace (stop_all.h), registers and memory are read, and they go on: nothing of the process is written to,
 * and nothing is in it that would have to be undone. If memattach is killed meanwhile the kernel resumes them.
 *
 * That moment is not had where a thread is in malloc, or the registers of one cannot be read: it sleeps in a call that
 * a stop would harm (blocked_call.h). Other moments are tried then.
 */
#pragma once

#include "census/census.h"
#include "session/session.h"

/*
 * Finds out what nothing points to, or why that is not known (census_lost). If more than max_stop_ns of the options is
 * foreseen it is not stopped at all; reading ends then in any case, a clone that is being made does not. *left: a
 * zombie of a clone is left in it. -EINTR: a signal came; -ESRCH, -ENOMEM.
 */
int census_stop(struct census *c, const struct session_options *o, bool *left, struct err *e) WARN_UNUSED;
