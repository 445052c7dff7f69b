/* SPDX-License-Identifier: MIT */
/*
 * From the command line to sessions: finds the process that is meant, or starts it, and decides whether one session
 * runs in this process, or one or several in processes of their own.
 */
#pragma once

#include "cli/options.h"

struct wanted {
	struct session_options options;
	struct selection selection;
	enum command command;
};

/* Anything but COMMAND_NONE. Returns the exit status, which may be that of a program that was started. */
int wanted_run(struct wanted *wanted);
