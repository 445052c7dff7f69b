/* SPDX-License-Identifier: MIT */
#include "cli/options.h"
#include "cli/wanted.h"
#include "host/own_memory.h"
#include "host/start_state.h"

int main(int argc, char **argv)
{
	struct wanted w = { 0 };

	own_memory_keep_small();
	start_state_settle();
	if (options_parse(argc, argv, &w.options, &w.command, &w.selection) < 0)
		return EXIT_USAGE;
	return w.command == COMMAND_NONE ? EXIT_DONE : wanted_run(&w);
}
