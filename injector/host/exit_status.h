/* SPDX-License-Identifier: MIT */
/* With what memattach ends; also what a session in a process of its own tells its parent by it. */
#pragma once

enum exit_status {
	EXIT_DONE = 0,
	EXIT_NOT_ATTACHED = 1,
	EXIT_RESIDUE = 2, /* something had to stay in the process */
	EXIT_DUMP = 3,    /* the end of the recording could not be written */
	EXIT_USAGE = 64
};
