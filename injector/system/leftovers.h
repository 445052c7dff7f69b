/* SPDX-License-Identifier: MIT */
/*
 * --detach --all: whatever memattach has in processes of this machine, of sessions that last and of those whose
 * memattach died, is taken out of four processes at a time.
 *
 * Who has something is told by its mappings: memory of ours by its name; and code that was written to at the end of a
 * file's mapping, where the stub may be that is there before anything of ours is mapped. Such code may be the program's
 * own doing: the detach looks, and changes nothing then. A memattach that supervises such sessions is told to end
 * first, and waited for, so that it begins no others.
 */
#pragma once

#include "choose/chosen.h"
#include "host/exit_status.h"

struct leftovers_options {
	const char *what; /* NULL: of all processes; else as chosen_fits has it */
	enum chosen_by by;
	bool quiet;
	/* Runs in a process of its own. */
	enum exit_status (*detach)(void *context, const struct chosen *target);
	void *context;
};

/* The worst exit status; 0 where there was nothing. */
enum exit_status leftovers_take_out(const struct leftovers_options *options);
