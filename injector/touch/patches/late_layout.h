/* SPDX-License-Identifier: MIT */
/*
 * What the payload is told of a language after the start: a layout that could not be proved before, as of an
 * interpreter that had not begun. Hooks may read it at once, so it is written only where there is none, all of it
 * before the word that says so.
 */
#pragma once

#include "session/session.h"

/* Is it still the program that was attached to? By a descriptor of its memory: after execve what is read by its number
 * is another program's. */
bool late_layout_is_same_program(const struct session *s);
/* May so many bytes be written there? Only in the payload. -EINVAL. */
int late_layout_check(const struct session *s, uint64_t address, uint64_t bytes, struct err *e) WARN_UNUSED;

/* Of HotSpot; the dump says so before any frame is recorded. */
int late_layout_java(struct session *s, const struct java_layout *layout, uint32_t version, struct err *e) WARN_UNUSED;
