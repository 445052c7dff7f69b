/* SPDX-License-Identifier: MIT */
/*
 * Was a signal sent to memattach alone, or to all of its process group? In the second case the program that memattach
 * has started has got it, too, and it must not be passed on. The kernel does not tell; the sender does not show it,
 * because who is in the group may mean either, and who is not, too.
 *
 * So there is one process more in the group, which does nothing: it blocks all signals, and what is sent to the group
 * is pending there. It is made after memattach, and the kernel signals the members of a group from the youngest on: a
 * signal that memattach hears is there already. It has no descriptors, and ends with memattach. When it has been asked
 * for a signal it is replaced; of others that it has got meanwhile a note is kept. The same signal, sent to the group a
 * second time before the witness of the first is replaced, may reach the program twice.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct group_witness {
	pid_t pid;       /* 0: there is none, and no signal counts as the group's */
	uint64_t others; /* signals that one before this had got, and that nobody has asked for yet */
};

void group_witness_start(struct group_witness *w);
/* Has the group got this signal, which memattach has just heard? Asked once for each: afterwards it is forgotten. */
bool group_witness_has(struct group_witness *w, int number);
void group_witness_end(struct group_witness *w);
