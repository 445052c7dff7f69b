/* SPDX-License-Identifier: MIT */
/*
 * What a code object of Python holds: its names, its table of lines, and a hash that tells it from others.
 *
 * Why each read is of mapped memory. The calling thread's frame holds the code object (python_walk.h), and that holds
 * its name, its file name and its table of lines until it goes; all three are written when it is made. The file name
 * alone may be changed later, by the importer, on code that no frame runs yet. They are read only if they have exactly
 * the types str and bytes, and a str only if its characters follow its head; then its length says how far they reach.
 * What is something else (the file name may be of a class that a program has derived from str) is not copied, and said
 * to be cut.
 *
 * Which code is the same. Programs make code and throw it away (exec, templates, cells of a notebook), and the next
 * object is given the same address, often with names and tables at the same addresses again. So at each sample (but
 * where it is certain that no code object has gone meanwhile: known_code.h) the hash is made from what the object
 * holds: its address, the length of its code, its first line, the characters of its name and its file as far as they
 * are stored, and the length and the ends of its table of lines, CODE_TABLE_END bytes each. Code with another name, of
 * another file, or that begins on another line, is never taken for the old one. What is not told apart is code at one
 * address that has all this in common and differs inside of a long table: a function that was edited so that neither
 * its length nor the first and last lines of it changed. Its lines may then be those of before. The instructions
 * themselves are not compared: the interpreter rewrites them as it specialises.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "python/python_walk.h"

#define CODE_TABLE_END 32u

/* The characters of a str that are stored. */
struct code_text {
	uint64_t address;
	uint16_t bytes;
	uint8_t width; /* of a character */
	bool cut;      /* there are more, or they cannot be read */
};

struct code_object {
	uint64_t hash; /* not 0 */
	uint64_t address;
	struct code_text name, file;
	uint64_t table; /* where it begins */
	uint32_t table_bytes;
	uint32_t bytes; /* of the instructions */
	int32_t first_line;
	bool table_cut;
};

/* Of a frame that the calling thread holds now. */
void code_object_read(struct code_object *code, const struct python_layout *layout, const struct python_walked *frame);
