/* SPDX-License-Identifier: MIT */
/*
 * The stub of a memattach that died, in the padding of some module (remote.h). A thread may still be in it. Before an
 * attach it is waited for, and what it did is looked at anew; a detach clears the padding.
 */
#pragma once

#include "session/session.h"

/* A stub that an earlier memattach left in the padding of some module: that place is used again. Its frame is 0 where
 * the stub names none that could be one: it is the program's memory, which may hold anything. */
bool old_stub_cave(const struct session *s, struct stub_place *cave);
/* Looks for a payload as payload_place_find, after a thread that a dead memattach left on its way has come to its
 * end. */
int old_stub_settle(struct session *s, struct err *e) WARN_UNUSED;
/* Clears the padding that stubs of earlier memattachs are in. */
int old_stub_erase_caves(struct session *s, struct err *e) WARN_UNUSED;
