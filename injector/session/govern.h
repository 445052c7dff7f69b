/* SPDX-License-Identifier: MIT */
/* The governor of a session: measures what sampling costs, changes the rate, and records it. */
#ifndef MEMATTACH_GOVERN_H
#define MEMATTACH_GOVERN_H

#include "session.h"

/* When recording has begun. */
void govern_start(struct session *s);
/* From time to time. */
void govern_look(struct session *s);
/* Another least rate, in force already: the governor goes on from it and not below. */
void govern_least(struct session *s, uint64_t rate);
/* Puts into the dump what CPU time the target has used, and how much of it sampling took. */
void govern_note_cost(struct session *s);

#endif
