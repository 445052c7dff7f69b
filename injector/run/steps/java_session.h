/* SPDX-License-Identifier: MIT */
/*
 * The JVM of a session: finds HotSpot in the target and proves how it is laid out, from outside, while the target runs.
 * What the payload is told is in s->java afterwards, so that walks go through Java code. A JVM that is loaded during
 * the session, as in a program that memattach starts, or that cannot be proved yet, is awaited.
 */
#pragma once

#include "session/session.h"

/* Needs the modules and maps of the view. Never fails: why it does not succeed is said with --verbose, and what that
 * costs is in the dump (truncated stacks). It takes a second or two at most. */
void java_session_find(struct session *s);
/* Tries again, in each tick: of one that is there by now, and less and less often. */
void java_session_await(struct session *s);
/* Names the Java frames that are new (java_names.h): in each tick, and when the recording has ended. */
void java_session_name(struct session *s, bool last);
/* Takes back what cannot be known of a process that has ended. */
void java_session_end(struct session *s);
