/* SPDX-License-Identifier: MIT */
/* Work that may take seconds: says on a terminal how far it is, and ends when a user sends a signal. */
#ifndef MEMATTACH_LONG_WAIT_H
#define MEMATTACH_LONG_WAIT_H

#include "session/session.h"

struct long_wait {
	const struct session *s;
	const char *what; /* "writing the dump" */
	const char *note; /* after the percentage, "" none */
	uint64_t since_ns;
	unsigned asked; /* signals of users that had come before: for the detach */
};

void long_wait_begin(struct long_wait *w, const struct session *s, const char *what, const char *note);
/* For those who do the work: done is a part of 1, shown by say_status. False: end. */
bool long_wait_goes_on(void *wait, double done);

#endif
