/* SPDX-License-Identifier: MIT */
/*
 * dlopen of a descriptor, where no file system that the target sees has a name for it: without /proc in its root
 * directory or mount namespace there is no /proc/thread-self/fd/N.
 *
 * glibc must load the payload by itself: only what it has loaded it lets resolve an IFUNC under its lock, which is how
 * GOT entries are patched and restored (include/control.h). The lock that dl_iterate_phdr() takes while it calls back
 * would not do: glibc holds it while it changes its list, not while it relocates a library or makes pages read-only, so
 * that a library that is closed and opened again in place could get a protection of before.
 *
 * So the thread calls dlopen with a name that does not exist, and is stopped at each of its system calls. At the entry
 * of openat() with that name the call becomes fcntl(fd, F_DUPFD_CLOEXEC), whose result is what the loader takes for its
 * file: it reads, maps and closes it. At the exit the three argument registers get back what they held.
 *
 * If memattach dies before the entry, the name is not found and dlopen fails. After it, the loader goes on with its
 * file, as after any death during dlopen; the three registers are then those of a function's arguments, in a wrapper of
 * a system call that returns next. Never more than this one call is changed.
 */
#pragma once

#include "touch/remote/remote.h"

#define HANDED_NAME_BYTES 64

/* A name that no file has; unique numbers give different names. */
void handed_open_name(char name[HANDED_NAME_BYTES], uint64_t unique);
/*
 * Makes the call, and answers the first openat() of name with a duplicate of remote_fd. *handed: there was one. Errors
 * as of remote_call.
 */
int handed_open_call(struct remote *r, struct stub_call *call, const char *name, int remote_fd, bool *handed,
                     uint64_t deadline_ns, struct err *e) WARN_UNUSED;
