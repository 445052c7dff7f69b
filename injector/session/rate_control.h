/* SPDX-License-Identifier: MIT */
/* The governor of a session: measures what sampling costs, changes the rate, and records it. */
#pragma once

#include "session/session.h"

/* When recording has begun. */
void rate_control_start(struct session *s);
/* From time to time. */
void rate_control_poll(struct session *s);
/* Another least rate, in force already: the governor goes on from it and not below. */
void rate_control_least(struct session *s, uint64_t rate);
/* Puts into the dump what CPU time the target has used, and how much of it sampling took. */
void rate_control_note_cost(struct session *s);
/* What it took to follow mappings, as a part of the target's CPU time, as of then. */
double rate_control_mappings(const struct session *s);
