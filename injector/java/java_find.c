/* SPDX-License-Identifier: MIT */
#include "java/java_find.h"

#include <string.h>

static const struct {
	const char *name, *refusal;
} machines[] = {
	[JAVA_NONE] = { "no Java", "there is none" },
	[JAVA_HOTSPOT] = { "HotSpot", NULL },
	[JAVA_GRAALVM] = { "GraalVM", "what its compiler makes has not been tried" },
	[JAVA_NATIVE_IMAGE] = { "GraalVM native image", "it was compiled ahead of time: its frames are native ones" },
	[JAVA_OPENJ9] = { "OpenJ9", "its frames are not HotSpot's" },
	[JAVA_ZING] = { "Zing", "its compiler's frames are not described" },
	[JAVA_UNKNOWN] = { "unknown JVM", "it does not export the tables that describe HotSpot's structures" },
};

static bool defines(const struct elf_module *m, const char *symbol)
{
	struct elf_symbol s;

	return elf_module_find(m, symbol, NULL, &s);
}

static bool is_named(const struct elf_module *m, const char *begin)
{
	return !strncmp(elf_module_name(m), begin, strlen(begin));
}

/* By one module. OpenJ9 has a libjvm.so as well, which only passes calls on. */
static enum java_machine machine_of(const struct elf_module *m)
{
	if (is_named(m, "libj9vm"))
		return JAVA_OPENJ9;
	if (is_named(m, "libjvmcicompiler"))
		return JAVA_GRAALVM;
	if (defines(m, "gHotSpotVMStructs"))
		return JAVA_HOTSPOT;
	if (defines(m, "graal_create_isolate") || defines(m, "__svm_heap_begin") || defines(m, "__svm_version_info"))
		return JAVA_NATIVE_IMAGE;
	if (is_named(m, "libjvm.so"))
		return strstr(m->path, "zing") || strstr(m->path, "zulu-prime") ? JAVA_ZING : JAVA_UNKNOWN;
	return JAVA_NONE;
}

/* What a module stands for beside the others: the compiler comes with a HotSpot, OpenJ9 with a libjvm.so. */
static unsigned rank(enum java_machine machine)
{
	switch (machine) {
	case JAVA_NONE: return 0;
	case JAVA_UNKNOWN: return 1;
	case JAVA_HOTSPOT: return 2;
	default: return 3;
	}
}

struct java_runtime java_find(const struct modules *modules)
{
	struct java_runtime found = { .machine = JAVA_NONE };

	for (size_t i = 0; i < modules->count; i++) {
		const enum java_machine machine = machine_of(&modules->list[i]);
		if (rank(machine) > rank(found.machine))
			found = (struct java_runtime){ &modules->list[i], machine };
	}
	return found;
}

const char *java_machine_name(enum java_machine machine)
{
	return machines[machine].name;
}

const char *java_machine_refusal(enum java_machine machine)
{
	return machines[machine].refusal;
}
