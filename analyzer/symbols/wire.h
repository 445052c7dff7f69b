/* SPDX-License-Identifier: MIT */
/*
 * Messages between memanalyze and its jail (jail.h), over a stream: the number of bytes, then those. The parent
 * believes nothing that it receives: takes are checked, and after one that does not fit all others fail.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAX_BYTES (16u << 20)

/* Bytes that are put, or were received and are taken. Starts as zero. */
struct wire {
	char *bytes;
	size_t used, room;
	size_t taken;
	bool failed; /* no memory, or what was to be taken is not there */
};

void wire_done(struct wire *w);
void wire_clear(struct wire *w);

void wire_put(struct wire *w, const void *bytes, size_t count);
void wire_put_number(struct wire *w, uint64_t number);
void wire_put_string(struct wire *w, const char *text); /* NULL is another one than "" */

/* NULL: there are not so many. Valid until the message is cleared. */
const void *wire_take(struct wire *w, size_t count);
uint64_t wire_take_number(struct wire *w);
const char *wire_take_string(struct wire *w);

/* False: the other side is gone, or more than WIRE_MAX_BYTES are to be sent. */
bool wire_send(int fd, const struct wire *w);
/* Blocks. The message replaces what w had. */
bool wire_receive(int fd, struct wire *w);
