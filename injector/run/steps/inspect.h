/* SPDX-License-Identifier: MIT */
/* What a session knows of the target before anything is touched: process, maps, modules, C library, safe points. */
#pragma once

#include "session/session.h"

/* Finds the process; nothing is read of its memory. */
int inspect_open(struct session *s, struct err *e) WARN_UNUSED;
/* Looks at the target: process, maps, modules, C library. Touches nothing. */
int inspect_session(struct session *s, struct err *e) WARN_UNUSED;
/* The same again after modules came or went; ids are kept. */
int inspect_session_again(struct session *s, struct err *e) WARN_UNUSED;
/* Would dlopen crash on a library that the program has torn apart? -EFAULT, named. */
int inspect_check_loader(const struct session *s, struct err *e) WARN_UNUSED;
/* Would a hook kill a thread, because it may not read the cycle counter? Only what can be seen from outside. -EPERM,
 * named. */
int inspect_check_threads(const struct session *s, struct err *e) WARN_UNUSED;
/* Chooses cave, safe points. */
int inspect_choose(struct session *s, struct err *e) WARN_UNUSED;
