/* SPDX-License-Identifier: MIT */
/* memattach-payload.so, embedded in memattach (CMake target memattach_payload_image). */
#pragma once

#include <stdint.h>

/* Of the memory file that the target maps it from: in /proc/PID/maps it is called /memfd:memattach-payload. */
#define PAYLOAD_MEMFD_NAME "memattach-payload"

extern const uint8_t payload_image[];
extern const uint8_t payload_image_end[]; /* after the last byte */
