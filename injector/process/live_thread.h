/* SPDX-License-Identifier: MIT */
/*
 * Files of /proc that tell of the whole process (maps, mem, fd, pagemap), read in the directory of a thread. That of
 * the first thread is empty once it has ended, and any other thread may end while its files are read: another one is
 * taken then.
 */
#pragma once

#include "maps/maps.h"
#include "process/target.h"
#include "process/target_read.h"

/* directory: of a live thread, "/proc/PID/task/TID". -ESRCH: it has ended meanwhile. */
typedef int (*live_thread_fn)(const char *directory, void *context, struct err *e);
/* Calls look until it returns something else than -ESRCH, or the process has ended. */
int live_thread_look(const struct target *t, live_thread_fn look, void *context, struct err *e) WARN_UNUSED;

/* maps_read() and maps_at_read() of a live thread. */
int live_thread_maps(const struct target *t, struct maps *maps, struct err *e) WARN_UNUSED;
int live_thread_maps_at(const struct target *t, struct maps *maps, const uint64_t *addresses, size_t count,
                        struct err *e) WARN_UNUSED;
/* A file of that directory. *fd: to be closed. */
int live_thread_open(const struct target *t, const char *name, int *fd, struct err *e) WARN_UNUSED;
/* Both ways to the memory: reading, and a descriptor to write with, which nobody here does. They stay valid when that
 * thread ends. */
int live_thread_memory(const struct target *t, struct target_memory *memory, int *writable_fd,
                       struct err *e) WARN_UNUSED;
