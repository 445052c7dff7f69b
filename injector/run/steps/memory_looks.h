/* SPDX-License-Identifier: MIT */
/*
 * What the resident memory of the target is, into the dump: before its first stop, and when nothing of ours is in it
 * any more (census/memory_look.h).
 *
 * A process of its own looks: what it reads may last as long as the target likes (userfaultfd, a file system that the
 * target serves), and is the target's to choose. It is ended after five seconds, and when the user asks for the end: in
 * the first look at once, in the last one, which comes after that, when asked again. The dump then says that this is
 * not known, as it does where the process has ended or executed another program meanwhile.
 */
#pragma once

#include "session/session.h"

/* Never fails: what is not known is said in the dump, or by --verbose. */
void memory_looks_take(struct session *s, enum dump_memory_moment moment);
