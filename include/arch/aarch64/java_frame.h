/* SPDX-License-Identifier: MIT */
#pragma once

#define JAVA_SENDER_SP (-1)
#define JAVA_METHOD (-3)
#define JAVA_BYTECODE (-9)
#define JAVA_SENDER_MAY_BE_BELOW 1
#define JAVA_ENTRY_WRAPPER (-8)

/* Programs have addresses of 48 bits, and instructions four bytes. */
#define JAVA_FRAME_FEATURE DUMP_FEATURE_JAVA_63
#define JAVA_FRAME_MARK DUMP_JAVA_MARK_63
#define JAVA_FRAME_END (1ull << 48)
#define JAVA_FRAME(address, tag) DUMP_JAVA_FRAME_63(address, tag)
#define JAVA_FRAME_ADDRESS(f) (((f)&0x7fffffffffffull) << 1)
#define JAVA_FRAME_TAG(f) ((uint16_t)((f) >> 47))

#define JAVA_FRAME_NATIVE(f) ((f)&JAVA_FRAME_MARK ? 0 : DUMP_FRAME_ADDRESS(f))

#define JAVA_FRAME_AGE_MAX 3u
#define JAVA_FRAME_AGED(method, age) ((method) | ((age)&JAVA_FRAME_AGE_MAX) << 1)
#define JAVA_FRAME_AGE(f) ((f)&JAVA_FRAME_AGE_MAX)
#define JAVA_FRAME_METHOD(f) (JAVA_FRAME_ADDRESS(f) & ~7ull)

#define JAVA_FRAME_MODULES 32768u
