/* SPDX-License-Identifier: MIT */
/*
 * An interpreter that is none: structures as one release of CPython has them, in the data of this program, with one
 * thread that has a few frames. Tests change them and look at them from outside.
 */
#pragma once

#include "python/python_proof.h"

#define FAKE_FRAMES 3u

struct python_fake {
	const struct python_release *release;
	uint8_t *runtime, *interpreter, *state;
	uint8_t *frames[FAKE_FRAMES], *codes[FAKE_FRAMES]; /* innermost first */
	uint8_t *name, *file, *lines;                      /* of the innermost: str, str, bytes */
	uint8_t *meta, *code_type, *none_type, *frame_type, *string_type, *bytes_type;
	uint8_t *cframe; /* 3.11, 3.12 */
};

/* What the calling thread works with, in 3.12 and later: an exported function tells where it is, if the program
 * exports. */
extern __thread uint64_t python_fake_attached;

/* Made anew; the key of the calling thread leads to its state, and it works with no state now. */
void python_fake_make(struct python_fake *f, const struct python_release *release);
/* A further object, all zero behind its type. */
uint8_t *python_fake_object(struct python_fake *f, enum python_kind kind, size_t bytes);
/* The key is made anew, with the same number or another one: the thread's value is that of the key before. */
void python_fake_make_key_again(struct python_fake *f, bool same_number);
/* … and leads to the thread's state, as after python_fake_make. */
void python_fake_bind(struct python_fake *f);
/* A further str, of so many bytes a character. */
uint8_t *python_fake_string(struct python_fake *f, const void *characters, size_t count, unsigned width, bool ascii);
uint8_t *python_fake_bytes(struct python_fake *f, const void *bytes, size_t count);
void python_fake_put(uint8_t *object, uint32_t offset, uint64_t word);
void python_fake_put_pointer(uint8_t *object, uint32_t offset, const void *pointer);
/* Frames of its thread: the words at which the instruction is, for an offset in bytes. */
void python_fake_put_instruction(struct python_fake *f, unsigned frame, int32_t offset);
void python_fake_put_code(struct python_fake *f, unsigned frame, const uint8_t *code);
/* Memory of the fake, zeroed. */
uint8_t *python_fake_new(size_t bytes);
