/* SPDX-License-Identifier: MIT */
#pragma once

#define JAVA_SENDER_SP (-1)
#define JAVA_METHOD (-3)
#define JAVA_BYTECODE (-8)
#define JAVA_SENDER_MAY_BE_BELOW 0
#define JAVA_ENTRY_WRAPPER (-6)

#define JAVA_FRAME_FEATURE DUMP_FEATURE_JAVA
#define JAVA_FRAME_MARK DUMP_JAVA_MARK_47
#define JAVA_FRAME_END DUMP_JAVA_MARK_47
#define JAVA_FRAME(address, tag) DUMP_JAVA_FRAME_47(address, tag)
#define JAVA_FRAME_ADDRESS(f) ((f) & (JAVA_FRAME_END - 1))
#define JAVA_FRAME_TAG(f) ((uint16_t)((f) >> 48))

#define JAVA_FRAME_NATIVE(f) DUMP_FRAME_ADDRESS(f)

#define JAVA_FRAME_AGE_MAX 7u
#define JAVA_FRAME_AGED(method, age) ((method) | ((age)&JAVA_FRAME_AGE_MAX))
#define JAVA_FRAME_AGE(f) ((f)&JAVA_FRAME_AGE_MAX)
#define JAVA_FRAME_METHOD(f) (JAVA_FRAME_ADDRESS(f) & ~7ull)

#define JAVA_FRAME_MODULES 65536u
