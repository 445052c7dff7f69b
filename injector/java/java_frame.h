/* SPDX-License-Identifier: MIT */
/*
 * What a frame of Java code that a walk has recorded (arch/java_frame.h: JAVA_FRAME) is called, read from outside
 * while the JVM runs. The walk has read nothing but words, so between it and this the JVM may have freed what they
 * point to and put something else there. A name is right only if that has not happened:
 *
 * - Compiled code must be in use, of the same compile_id and have a method, before all else and again when all has been
 *   read: HotSpot takes code away, and its Method out of it, before it frees the Method or one that is inlined. Of the
 *   compile_id 16 bits are compared: another code at this address would have to be compiled 65536 compilations later,
 *   or a multiple of it.
 * - A Method must be one that its class has, and have that bytecode. Whether it still is the one of the walk the caller
 *   must know: by java_unloads.h, no class was unloaded since before the walk.
 *
 * Where a return address has no debug information, the frame is that of the method that was compiled, without a line.
 */
#pragma once

#include "java/java_method.h"

struct java_called {
	uint64_t method; /* 0: no method but code of HotSpot's own, whose name is in place.function */
	struct java_place place;
};

/* Is it in the code cache? Else the interpreter runs it. */
bool java_frame_is_compiled(const struct java_view *v, uint64_t frame);

/*
 * Innermost first: list[JAVA_INLINED_MAX], *count >= 1. -ENOENT: what was there is gone. Other errors as in
 * java_code.h: it may succeed a moment later. v->heaps are brought up to date.
 */
int java_frame_read(struct java_view *v, uint64_t frame, struct java_called *list, uint32_t *count,
                    struct err *e) WARN_UNUSED;
