/* SPDX-License-Identifier: MIT */
/* Lines on stdin: "load" loads the library (argument 1), "go" lets it allocate, "drop" frees, "end" ends. */
#include "victim.h"

#include <dlfcn.h>
#include <string.h>

#include "plugin.h"

int main(int argc, char **argv)
{
	int (*keep)(void) = NULL;
	int (*drop)(void) = NULL;
	void *library = NULL;
	char line[32];

	victim_start("late_module");
	if (argc < 2)
		return 2;
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end")) {
		if (!strcmp(line, "load") && !library) {
			library = dlopen(argv[1], RTLD_NOW);
			if (!library) {
				victim_wrong("dlopen: %s", dlerror());
				break;
			}
			keep = (int (*)(void))dlsym(library, "plugin_keep");
			drop = (int (*)(void))dlsym(library, "plugin_drop");
			victim_say("LOADED");
		} else if (!strcmp(line, "go") && keep) {
			if (keep())
				victim_wrong("no memory");
			victim_say("TRUTH {\"function\":\"plugin_keep\",\"live_count\":%d,\"live_bytes\":%d}",
			           PLUGIN_BLOCKS, PLUGIN_BLOCKS * PLUGIN_BYTES);
			victim_say("TRUTH-END");
		} else if (!strcmp(line, "drop") && drop) {
			if (drop())
				victim_wrong("the library's blocks changed");
			victim_say("DROPPED");
		}
		victim_round();
	}
	if (drop && drop())
		victim_wrong("the library's blocks changed");
	if (library && dlclose(library))
		victim_wrong("dlclose: %s", dlerror());
	victim_round();
	return victim_report();
}
