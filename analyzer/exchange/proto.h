/* SPDX-License-Identifier: MIT */
/*
 * Messages in the encoding of protocol buffers (protobuf.dev, "Encoding"): as much of it as a profile needs. Fields
 * that are 0 or "" are left out, as the encoding wants it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message that is being put together. Starts as zero; used again after proto_clear. */
struct proto {
	unsigned char *bytes;
	size_t used, room;
	bool failed; /* out of memory */
};

void proto_clear(struct proto *p);
void proto_done(struct proto *p);
/* uint64, bool; int64 goes as its two's complement. */
void proto_number(struct proto *p, unsigned field, uint64_t value);
/* fixed64: eight bytes, also of 0. */
void proto_fixed(struct proto *p, unsigned field, uint64_t value);
void proto_bytes(struct proto *p, unsigned field, const void *bytes, size_t count);
/* Strings of a table, where even the empty one counts. */
void proto_string(struct proto *p, unsigned field, const char *text);
void proto_message(struct proto *p, unsigned field, const struct proto *message);
/* All fields of another message. */
void proto_append(struct proto *p, const struct proto *fields);
/* An element of a packed list, which proto_message then puts into its field. */
void proto_element(struct proto *list, uint64_t value);
