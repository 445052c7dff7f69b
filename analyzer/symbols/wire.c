/* SPDX-License-Identifier: MIT */
#include "symbols/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void wire_done(struct wire *w)
{
	free(w->bytes);
	*w = (struct wire){ 0 };
}

void wire_clear(struct wire *w)
{
	w->used = w->taken = 0;
	w->failed = false;
}

static bool make_room(struct wire *w, size_t count)
{
	if (w->failed || count > WIRE_MAX_BYTES - w->used) {
		w->failed = true;
		return false;
	}
	if (w->used + count <= w->room)
		return true;
	size_t room = 2 * (w->used + count);
	char *more = realloc(w->bytes, room);
	w->failed = !more;
	if (!more)
		return false;
	w->bytes = more;
	w->room = room;
	return true;
}

void wire_put(struct wire *w, const void *bytes, size_t count)
{
	if (!count || !make_room(w, count))
		return;
	memcpy(w->bytes + w->used, bytes, count);
	w->used += count;
}

void wire_put_number(struct wire *w, uint64_t number)
{
	wire_put(w, &number, sizeof number);
}

void wire_put_string(struct wire *w, const char *text)
{
	wire_put(w, text ? "s" : "n", 1);
	if (text)
		wire_put(w, text, strlen(text) + 1);
}

const void *wire_take(struct wire *w, size_t count)
{
	if (w->failed || count > w->used - w->taken) {
		w->failed = true;
		return NULL;
	}
	w->taken += count;
	return w->bytes + w->taken - count;
}

uint64_t wire_take_number(struct wire *w)
{
	const void *at = wire_take(w, sizeof(uint64_t));
	uint64_t number = 0;

	if (at)
		memcpy(&number, at, sizeof number);
	return number;
}

const char *wire_take_string(struct wire *w)
{
	const char *kind = wire_take(w, 1);

	if (!kind || *kind != 's')
		return NULL;
	const char *text = w->bytes + w->taken;
	const char *end = memchr(text, 0, w->used - w->taken);
	return wire_take(w, end ? (size_t)(end - text) + 1 : SIZE_MAX);
}

static bool put_all(int fd, const void *bytes, size_t count)
{
	const char *at = bytes;

	while (count) {
		ssize_t n = send(fd, at, count, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		count -= (size_t)n;
	}
	return true;
}

static bool take_all(int fd, void *bytes, size_t count)
{
	char *at = bytes;

	while (count) {
		ssize_t n = read(fd, at, count);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		count -= (size_t)n;
	}
	return true;
}

bool wire_send(int fd, const struct wire *w)
{
	uint32_t count = (uint32_t)w->used;
	char small[1024];

	if (w->failed)
		return false;
	if (count > sizeof small - sizeof count)
		return put_all(fd, &count, sizeof count) && put_all(fd, w->bytes, count);
	memcpy(small, &count, sizeof count); /* most are: one system call */
	if (count)
		memcpy(small + sizeof count, w->bytes, count);
	return put_all(fd, small, sizeof count + count);
}

bool wire_receive(int fd, struct wire *w)
{
	uint32_t count;

	wire_clear(w);
	if (!take_all(fd, &count, sizeof count) || !make_room(w, count) || !take_all(fd, w->bytes, count))
		return false;
	w->used = count;
	return true;
}
