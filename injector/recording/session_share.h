/* SPDX-License-Identifier: MIT */
/*
 * What a session has from one budget for all of a memattach --system, and what it tells that memattach of itself:
 * memory that both have mapped, so nothing has to be asked for or answered. Each word has one writer, but for the room
 * that is left, which sessions take from and the supervisor puts back into.
 *
 * Room is for the memory of dumps. A part of it is kept back for sessions that are to come: dumps that grow cannot take
 * it, so that a process which starts late finds room for its first regions.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "recording/file_identity.h"

struct shared_room {
	_Atomic int64_t left;
	int64_t kept_back;
};

struct session_share {
	struct shared_room *room;
	int event;                      /* eventfd: written to when the session has attached */
	_Atomic uint32_t limit_ppm;     /* by the supervisor: the governor's limit; 0: none */
	_Atomic bool attached;          /* by the session, as all that follows */
	_Atomic uint64_t bytes;         /* of room that it has taken */
	_Atomic uint64_t cost_ns;       /* of sampling, since it attached */
	_Atomic uint64_t cpu_ns;        /* that its process has used since then */
	_Atomic uint64_t private_bytes; /* of its process */
	_Atomic bool failing;           /* its dump cannot be written; trouble, which is written before, says why */
	char trouble[256];
	/* Written before it ends, read after that. */
	char why[256];   /* it has not attached; or what went wrong after that */
	bool elsewhere;  /* the dump is in another directory, which had room */
	unsigned after;  /* enum session_after */
	char path[4096]; /* of the dump, "": there is none */
	struct file_identity identity;
};

/* False: there is not so much left. first: for the first regions, which may come from what is kept back. */
bool session_share_take(struct session_share *share, uint64_t bytes, bool first);
void session_share_attached(struct session_share *share);
/* The dump cannot be written on the disk; NULL: it can again. */
void session_share_fails(struct session_share *share, const char *why);
