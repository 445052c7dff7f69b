/* SPDX-License-Identifier: MIT */
/*
 *   compiled_frame_made()    does an instruction in that code of HotSpot's compilers make a frame of so many bytes, the
 *                            return address and what was pushed included?
 */
#pragma once

#if defined(__x86_64__)
#include "arch/x86_64/compiled_frame.h"
#elif defined(__aarch64__)
#include "arch/aarch64/compiled_frame.h"
#else
#error "memattach knows no frames of compiled Java code of this architecture yet"
#endif
