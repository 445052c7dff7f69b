/* SPDX-License-Identifier: MIT */
/*
 * May a process be cloned for a look at its memory, what will that cost it, and what would a clone not have?
 *
 * Not where it could harm: a filter of system calls may kill; a userfaultfd may keep a fork waiting; who waits for
 * children of any kind, as who traces others does, would be told of it; memory that devices know by its pages (VmPin,
 * mappings of devices, AIO, io_uring) may part from what they write to (older kernels: always); children may be the
 * first of a namespace of processes of their own, which ends with the first; there may be too little room for another
 * task, or for what each of the two writes. Huge pages stay split where the process writes to them while there is a
 * clone: that is for its user to decide.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/target.h"

struct apart_range {
	uint64_t start, end;
};

struct clone_prospect {
	/* Private memory that a clone has not, or empty: MADV_DONTFORK, MADV_WIPEONFORK. Ascending, none overlaps. */
	struct apart_range *apart;
	size_t apart_count;
	uint64_t small_bytes; /* of its memory, in pages whose tables have to be copied; … */
	uint64_t huge_bytes;  /* … and in huge ones */
	size_t mappings;
	uint64_t room_bytes; /* that must stay free while there is a clone */
};

/* -ENOTSUP: it is not to be cloned, for the reason in e. splits: its huge pages are no reason. Reads smaps, and stops
 * nothing. clone_prospect_free afterwards; on failure, too. */
int clone_prospect_look(struct clone_prospect *p, const struct target *t, bool splits, struct err *e) WARN_UNUSED;
void clone_prospect_free(struct clone_prospect *p);
/* Is there still so much room? */
bool clone_prospect_has_room(const struct clone_prospect *p, const struct target *t);
/* Is a mapping of private memory one that a clone has as it is? */
bool clone_prospect_keeps(const struct clone_prospect *p, uint64_t start, uint64_t end);
/* Puts in order what was added to its ranges. */
void clone_prospect_sort(struct clone_prospect *p);
/* Of a clone that there is: adds what is empty in it (MADV_WIPEONFORK) and was not known. added: there was any.
 * -ENOTSUP as above, -ENOMEM, -errno. */
int clone_prospect_add_wiped(struct clone_prospect *p, const struct target *clone, bool *added,
                             struct err *e) WARN_UNUSED;
/* How long the process stands still for that: by what was measured, and more. */
uint64_t clone_prospect_expected_ns(const struct clone_prospect *p);
