/* SPDX-License-Identifier: MIT */
/* The receipt: what a session did to the target, and what of it is left. */
#ifndef MEMATTACH_RECEIPT_H
#define MEMATTACH_RECEIPT_H

#include "session/session.h"

/* Compares the target with the snapshot from before attach; adds what is left of memattach to the residue. */
int receipt_verify(struct session *s, struct err *e) WARN_UNUSED;
/* Writes the JSON (memattach(1), "RECEIPT") to the file of --receipt, if there is one. */
int receipt_write(const struct session *s, struct err *e) WARN_UNUSED;

#endif
