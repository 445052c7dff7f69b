/* SPDX-License-Identifier: MIT */
/*
 * Methods of Java in HotSpot: Method → ConstMethod → ConstantPool → the class that holds it, read from outside and
 * checked. A Method is believed if its class has it in its list of methods: that is a way around in a circle, which
 * nothing else closes. Errors as in java_code.h.
 */
#pragma once

#include "java/java_code.h"

#define JAVA_CLASS_TEXT 400u /* with NUL; longer names end with "…" */
#define JAVA_NAME_TEXT 200u
#define JAVA_FILE_TEXT 200u
#define JAVA_NO_LINE (-1)

struct java_method {
	uint64_t address;
	uint64_t constant, pool, holder;
	uint64_t code; /* of its bytecode */
	uint32_t code_bytes;
	bool native;
};

/* bci: which it must have; -1 and 0 are right for each, also for a native one, which has no bytecode. */
int java_method_read(struct java_view *v, uint64_t address, int32_t bci, struct java_method *m,
                     struct err *e) WARN_UNUSED;

/* As stack traces of Java have it, in UTF-8. */
struct java_place {
	char function[JAVA_CLASS_TEXT + JAVA_NAME_TEXT]; /* "java.util.zip.Deflater.deflate" */
	char file[JAVA_FILE_TEXT];                       /* "Deflater.java"; "" not known */
	int32_t line;                                    /* JAVA_NO_LINE: none is known */
};
int java_method_place(struct java_view *v, const struct java_method *m, int32_t bci, struct java_place *place,
                      struct err *e) WARN_UNUSED;
