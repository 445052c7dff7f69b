/* SPDX-License-Identifier: MIT */
/*
 * Finds a virtual machine of Java in a process, and tells which one it is: HotSpot (OpenJDK and what is built from it),
 * whose frames can be read, or one of the others that are known by their files and symbols: OpenJ9, Zing, programs
 * that GraalVM has compiled ahead of time, and GraalVM's HotSpot, whose compiler has not been tried.
 */
#pragma once

#include "elf/modules.h"

enum java_machine {
	JAVA_NONE,
	JAVA_HOTSPOT,
	JAVA_GRAALVM, /* HotSpot with the compiler of GraalVM */
	JAVA_NATIVE_IMAGE,
	JAVA_OPENJ9,
	JAVA_ZING,
	JAVA_UNKNOWN, /* a libjvm.so that describes nothing */
};

struct java_runtime {
	const struct elf_module *module;
	enum java_machine machine;
};

/* The first one. The modules must stay. */
struct java_runtime java_find(const struct modules *modules);
/* "HotSpot". */
const char *java_machine_name(enum java_machine machine);
/* NULL: its frames can be tried; else why they are not. */
const char *java_machine_refusal(enum java_machine machine);
