/* SPDX-License-Identifier: MIT */
#include "exchange/proto.h"

#include <stdlib.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED = 1, WIRE_LENGTH = 2 };

void proto_clear(struct proto *p)
{
	p->used = 0;
}

void proto_done(struct proto *p)
{
	free(p->bytes);
	*p = (struct proto){ 0 };
}

static void put(struct proto *p, const void *bytes, size_t count)
{
	if (count > p->room - p->used) {
		size_t room = 2 * (p->used + count) + 64;
		unsigned char *more = realloc(p->bytes, room);
		if (!more) {
			p->failed = true;
			return;
		}
		p->bytes = more;
		p->room = room;
	}
	memcpy(p->bytes + p->used, bytes, count);
	p->used += count;
}

void proto_element(struct proto *p, uint64_t value)
{
	unsigned char text[10];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		text[n++] = (unsigned char)(value | 0x80);
	text[n++] = (unsigned char)value;
	put(p, text, n);
}

void proto_number(struct proto *p, unsigned field, uint64_t value)
{
	if (!value)
		return;
	proto_element(p, field << 3 | WIRE_VARINT);
	proto_element(p, value);
}

void proto_fixed(struct proto *p, unsigned field, uint64_t value)
{
	unsigned char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	proto_element(p, field << 3 | WIRE_FIXED);
	put(p, bytes, sizeof bytes);
}

void proto_append(struct proto *p, const struct proto *fields)
{
	if (fields->used)
		put(p, fields->bytes, fields->used);
	p->failed |= fields->failed;
}

void proto_bytes(struct proto *p, unsigned field, const void *bytes, size_t count)
{
	proto_element(p, field << 3 | WIRE_LENGTH);
	proto_element(p, count);
	if (count)
		put(p, bytes, count);
}

void proto_string(struct proto *p, unsigned field, const char *text)
{
	proto_bytes(p, field, text, strlen(text));
}

void proto_message(struct proto *p, unsigned field, const struct proto *message)
{
	proto_bytes(p, field, message->bytes, message->used);
	p->failed |= message->failed;
}
