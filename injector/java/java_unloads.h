/* SPDX-License-Identifier: MIT */
/*
 * How many classes HotSpot has unloaded: while that is the same, no Method of a loaded class has been freed, so one
 * that is read now was there before. It is the counter java.cls.unloadedClasses of the JVM's performance data, which
 * HotSpot adds to before it frees anything of a class; with -XX:-UsePerfData there is none.
 */
#pragma once

#include "java/java_code.h"

/* The address of the counter; -ENOENT: there is none. */
int java_unloads_find(struct java_view *v, uint64_t *address, struct err *e) WARN_UNUSED;
