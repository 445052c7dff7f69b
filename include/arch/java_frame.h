/* SPDX-License-Identifier: MIT */
/*
 * Frames of Java code of HotSpot: where the interpreter keeps what in those of this machine, and how they are recorded.
 * HotSpot's tables do not say where; its sources do (frame_<machine>.hpp), the same from JDK 11 to 25.
 *
 *   JAVA_SENDER_SP, JAVA_METHOD, JAVA_BYTECODE
 *                         words from the frame pointer of a frame of the interpreter on: the caller's stack pointer,
 *                         the Method, the address of the bytecode that runs
 *   JAVA_SENDER_MAY_BE_BELOW
 *                         1: where the interpreter calls itself, the caller's stack pointer may be below its callee's
 *                         frame, as it has a pointer to its operands beside it. The caller has its frame pointer
 *   JAVA_ENTRY_WRAPPER    words from the frame pointer of what native code calls (call stub) on: its JavaCallWrapper,
 *                         if HotSpot's tables do not say it
 *   JAVA_FRAME_FEATURE, JAVA_FRAME_MARK, JAVA_FRAME(address, tag)
 *                         that one of the two forms of dump_format.h which sessions on this machine record
 *   JAVA_FRAME_END        only addresses below it can be recorded; all that programs have are
 *   JAVA_FRAME_ADDRESS(f), JAVA_FRAME_TAG(f)
 *                         what it was made of
 *   JAVA_FRAME_AGE_MAX, JAVA_FRAME_AGED(method, age), JAVA_FRAME_AGE(f), JAVA_FRAME_METHOD(f)
 *                         ages that a Method of the interpreter can be recorded with; the address to record, and back
 *   JAVA_FRAME_NATIVE(f)  the address of native code that a frame is of, or, if it is one of Java code, none that is
 *   JAVA_FRAME_MODULES    the ids of modules are below it, so that no other frame has the mark
 */
#pragma once

#include "dump_format.h"

#if defined(__x86_64__)
#include "arch/x86_64/java_frame.h"
#elif defined(__aarch64__)
#include "arch/aarch64/java_frame.h"
#else
#error "memattach knows no frames of Java code of this architecture yet"
#endif
