/* SPDX-License-Identifier: MIT */
/* The command line of memattach. */
#ifndef MEMATTACH_OPTIONS_H
#define MEMATTACH_OPTIONS_H

#include "session.h"

enum command {
	COMMAND_PROFILE, /* attach, follow, detach */
	COMMAND_DETACH,  /* --detach: end the session that another memattach runs or left */
	COMMAND_DOCTOR,  /* --doctor: look and tell */
	COMMAND_LAUNCH,  /* -- COMMAND: start it, then as COMMAND_PROFILE */
	COMMAND_NONE,    /* --help, --version: done */
};

/* Parses; messages about wrong usage go to stderr, then -EINVAL. *program: for COMMAND_LAUNCH, what follows "--". */
int options_parse(int argc, char **argv, struct session_options *options, enum command *command,
                  char ***program) WARN_UNUSED;

#endif
