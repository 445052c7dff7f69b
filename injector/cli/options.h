/* SPDX-License-Identifier: MIT */
/* The command line of memattach. */
#pragma once

#include "choose/chosen.h"
#include "host/exit_status.h"
#include "session/session.h"

enum command {
	COMMAND_PROFILE, /* attach, follow, detach */
	COMMAND_DETACH,  /* --detach: end the session that another memattach runs or left */
	COMMAND_DOCTOR,  /* --doctor: look and tell */
	COMMAND_CENSUS,  /* --census: look at its memory and tell */
	COMMAND_LAUNCH,  /* -- COMMAND: start it, then as COMMAND_PROFILE */
	COMMAND_NONE,    /* --help, --version: done */
};

/* Which process, where that is not said by its number. */
struct selection {
	enum chosen_by by;
	const char *what; /* NULL: by its number */
	bool all;         /* if there are several: all of them */
	bool system;      /* every process, also those that begin later; with what: that fit */
	bool children;    /* and the processes that they make */
	char **program;   /* COMMAND_LAUNCH: what follows "--" */
};

/* Parses; messages about wrong usage go to stderr, then -EINVAL. */
int options_parse(int argc, char **argv, struct session_options *options, enum command *command,
                  struct selection *selection) WARN_UNUSED;
