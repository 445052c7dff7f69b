/* SPDX-License-Identifier: MIT */
/*
 * The stub: the only code of ours that runs on a borrowed thread outside of the payload. It is copied into the cave
 * (unused padding of an executable page), with struct stub_data behind it, and must be able to bring the thread back to
 * exactly where it was without a tracer, whenever memattach dies. See remote.h for the order of operations.
 *
 *   struct stub_data   what the stub reads: where and how the thread goes on, the signal masks, the area
 *   struct stub_frame  what the kernel reads for it, where only the kernel can bring a thread back, else empty. It is
 * in unused padding of any kind (touch/remote/cave.h), and stub_data_frame() is its address struct stub_area   at the
 * start of the area that it maps: the calls that it is to make (struct stub_call), those that clean up, what is to be
 * put into errno, the channel SA_*               places in the area, all of which is struct work_area
 * (touch/remote/work_area.h): SA_EXTENDED (of SA_EXTENDED_MAX bytes: vector registers, if the stub saves them), SA_DATA
 *   SD_*               places in struct stub_data that others read as well
 *   STUB_CHECKPOINT_*  first argument of the getpid calls at which a living tracer takes over
 *   stub_code          to stub_code_end: the code, which runs at any address
 */
#pragma once

#if defined(__x86_64__)
#include "arch/x86_64/stub.h"
#elif defined(__aarch64__)
#include "arch/aarch64/stub.h"
#else
#error "memattach has no stub for this architecture yet"
#endif
