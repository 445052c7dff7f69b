/* SPDX-License-Identifier: MIT */
/* The payload's image, which is built into memattach: a memfd of it, and where its two symbols are. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "payload_image.h"

/* Offset of a dynamic symbol from the base of the image; -ENOENT. */
int payload_symbol(const char *name, uint64_t *offset, struct err *e) WARN_UNUSED;
/* A sealed memfd with the image, which may be mapped executable whatever vm.memfd_noexec is. */
int payload_symbols_memfd(int *fd, struct err *e) WARN_UNUSED;
