/* SPDX-License-Identifier: MIT */
/*
 * What dlerror() would still tell the borrowed thread. dlopen, dlsym and dlclose clear it, so the thread's pointer to
 * it is taken away before the first of them and put back after the last. If memattach dies in between, the message is
 * lost. glibc from 2.34 on; musl's calls clear nothing.
 */
#ifndef MEMATTACH_PENDING_ERROR_H
#define MEMATTACH_PENDING_ERROR_H

#include "elf/libc.h"
#include "touch/remote/remote.h"

struct pending_error {
	uint64_t address; /* of the thread's pointer, 0: nothing is pending, or unknown */
	int row;          /* of the table of changes */
};

/* The thread is at a checkpoint. Best effort: a message that cannot be kept is none that may stop an attach. */
void pending_error_hide(struct pending_error *p, const struct libc *libc, struct remote *r);
/* The same, before it is resumed. */
void pending_error_show(const struct pending_error *p, const struct libc *libc, struct remote *r, uint64_t deadline_ns);

#endif
