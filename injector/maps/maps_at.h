/* SPDX-License-Identifier: MIT */
/*
 * The mappings at some addresses. While a thread is stopped each line of /proc/PID/maps counts, and a server with many
 * libraries has hundreds of them: since Linux 6.11 the file answers for single addresses (ioctl PROCMAP_QUERY,
 * <linux/fs.h>).
 */
#pragma once

#include "maps/maps.h"

/*
 * As maps_read, but perhaps only the mappings that hold one of the addresses, and these without paths; an older kernel
 * gives all. The addresses need not be sorted; neighbours that lie in one mapping are asked for once. maps_free
 * afterwards.
 */
int maps_at_read(struct maps *m, const char *file, const uint64_t *addresses, size_t count, struct err *e) WARN_UNUSED;
