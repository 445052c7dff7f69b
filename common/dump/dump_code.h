/* SPDX-License-Identifier: MIT */
/*
 * Code objects of Python in a dump (struct dump_code in dump_format.h): name, file and lines. A copy that was read
 * holds together; what its texts and its table hold is anything.
 */
#pragma once

#include "dump/dump_reader.h"

#define DUMP_CODE_DATA_MAX (DUMP_CODE_NAME_MAX + DUMP_CODE_FILE_MAX + DUMP_CODE_TABLE_MAX)
/* As UTF-8 a character of one byte takes up to two, or three where it is no character of a text; and the end. */
#define DUMP_CODE_NAME_TEXT (3 * DUMP_CODE_NAME_MAX + 4)
#define DUMP_CODE_FILE_TEXT (3 * DUMP_CODE_FILE_MAX + 4)

/* With room for the largest. */
struct dump_code_copy {
	union {
		struct {
			uint64_t head_[sizeof(struct dump_code) / sizeof(uint64_t)];
			uint8_t data[DUMP_CODE_DATA_MAX];
		};
		struct dump_code code;
	};
};

/* Reads the code of a reference: 0, or -EPROTO and counted if there is none that holds together. */
int dump_read_code(struct dump *dump, uint32_t reference, struct dump_code_copy *copy) WARN_UNUSED;

/*
 * As UTF-8, with "…" at the end if only the first characters are there. What is no character, as half of a surrogate
 * pair, becomes U+FFFD, and so does NUL. Control characters stay: who prints them has to see to that.
 */
void dump_code_name(const struct dump_code_copy *copy, char text[DUMP_CODE_NAME_TEXT]);
void dump_code_file(const struct dump_code_copy *copy, char text[DUMP_CODE_FILE_TEXT]);
/* Of the instruction at an offset as DUMP_PYTHON_OFFSET has it; 0: not known. */
int32_t dump_code_line(const struct dump_code_copy *copy, int32_t offset);
