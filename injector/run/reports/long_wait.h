/* SPDX-License-Identifier: MIT */
/* Work that may take seconds: says on a terminal how far it is, and ends when a user sends a signal. */
#pragma once

#include "recording/dump_file.h"
#include "session/session.h"

struct long_wait {
	struct patience patience; /* for those who do the work: shows how far it is, by say_status() */
	const struct session *s;
	const char *what; /* "writing the dump" */
	const char *note; /* after the percentage, "" none */
	uint64_t since_ns;
	unsigned asked; /* signals of users that had come before: for the detach */
};

void long_wait_begin(struct long_wait *w, const struct session *s, const char *what, const char *note);
