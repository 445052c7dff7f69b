/* SPDX-License-Identifier: MIT */
/*
 * What of a process can be seen from outside and must be the same after detach: mappings with protections, descriptors,
 * threads' signal masks, dispositions. A living program changes much of that by itself; so the comparison names only
 * what memattach could have caused.
 */
#pragma once

#include "maps/maps.h"
#include "process/target.h"

struct snapshot_descriptor {
	int number;
	char target[96];
	uint64_t inode; /* of a file in memory, else 0 */
	uint32_t dev_major, dev_minor;
};

struct snapshot_thread {
	pid_t tid;
	uint64_t blocked; /* SigBlk */
};

struct snapshot {
	struct maps maps;
	struct snapshot_descriptor *descriptors;
	size_t descriptor_count;
	struct snapshot_thread *threads;
	size_t thread_count;
	uint64_t ignored; /* SigIgn */
	uint64_t caught;  /* SigCgt */
};

int snapshot_take(struct snapshot *s, const struct target *t, struct err *e) WARN_UNUSED;
/* SigBlk of a thread, 0 if it has ended. */
uint64_t snapshot_blocked_now(const struct target *t, pid_t tid);
void snapshot_free(struct snapshot *s);
