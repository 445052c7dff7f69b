/* SPDX-License-Identifier: MIT */
#include "maps/maps.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/sorted.h"
#include "host/watchdog.h"

#define DELETED " (deleted)"
#define READ_TRIES 20
#define TEXT_MAX (96u << 20) /* a million mappings; their names can be made longer */

/* Text that is consumed from the left; every step checks the end. */
struct cursor {
	char *at;
	char *end;
};

static bool take_char(struct cursor *c, char wanted)
{
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

static bool take_number(struct cursor *c, unsigned base, uint64_t limit, uint64_t *value)
{
	uint64_t v = 0;
	unsigned digits = 0;

	for (; c->at < c->end; c->at++, digits++) {
		char ch = *c->at;
		unsigned d = ch >= '0' && ch <= '9'   ? (unsigned)(ch - '0')
		             : ch >= 'a' && ch <= 'f' ? (unsigned)(ch - 'a') + 10
		                                      : 99;
		if (d >= base)
			break;
		if (v > (limit - d) / base)
			return false;
		v = v * base + d;
	}
	*value = v;
	return digits > 0;
}

static bool take_flag(struct cursor *c, char on, char off, bool *set)
{
	if (c->at == c->end || (*c->at != on && *c->at != off))
		return false;
	*set = *c->at++ == on;
	return true;
}

/* The kernel writes newlines in names as \012. */
static void unescape(char *path)
{
	char *out = path;

	for (char *in = path; *in; out++) {
		if (!strncmp(in, "\\012", 4)) {
			*out = '\n';
			in += 4;
		} else {
			*out = *in++;
		}
	}
	*out = 0;
}

/* Parses one line; its newline has been replaced by NUL at line.end. */
static bool parse_line(struct cursor line, struct mapping *m)
{
	uint64_t major, minor;
	bool r, w, x, shared;

	if (!take_number(&line, 16, UINT64_MAX, &m->start) || !take_char(&line, '-') ||
	    !take_number(&line, 16, UINT64_MAX, &m->end) || !take_char(&line, ' ') || !take_flag(&line, 'r', '-', &r) ||
	    !take_flag(&line, 'w', '-', &w) || !take_flag(&line, 'x', '-', &x) ||
	    !take_flag(&line, 's', 'p', &shared) || !take_char(&line, ' ') ||
	    !take_number(&line, 16, UINT64_MAX, &m->offset) || !take_char(&line, ' ') ||
	    !take_number(&line, 16, UINT32_MAX, &major) || !take_char(&line, ':') ||
	    !take_number(&line, 16, UINT32_MAX, &minor) || !take_char(&line, ' ') ||
	    !take_number(&line, 10, UINT64_MAX, &m->inode))
		return false;
	if (m->start >= m->end || (line.at < line.end && *line.at != ' '))
		return false;
	while (take_char(&line, ' '))
		;
	m->dev_major = (uint32_t)major;
	m->dev_minor = (uint32_t)minor;
	m->prot = (r ? PROT_READ : 0u) | (w ? PROT_WRITE : 0u) | (x ? PROT_EXEC : 0u);
	m->shared = shared;
	m->path = line.at;
	size_t length = (size_t)(line.end - line.at);
	m->deleted = m->inode && length > strlen(DELETED) && !strcmp(line.end - strlen(DELETED), DELETED);
	if (m->deleted)
		line.end[-(ptrdiff_t)strlen(DELETED)] = 0;
	unescape(line.at);
	return true;
}

static size_t count_lines(const char *text, size_t bytes)
{
	size_t n = 1;

	for (size_t i = 0; i < bytes; i++)
		n += text[i] == '\n';
	return n;
}

/* What of next lies after the mapping before it; false: nothing. */
static bool clip(struct mapping *next, const struct mapping *before)
{
	if (next->end <= before->end)
		return false;
	if (next->inode)
		next->offset += before->end - next->start;
	next->start = before->end;
	return true;
}

/* Takes over text, which has bytes and one more for a NUL. may_overlap: lines may overlap. */
static int parse_owned(struct maps *m, char *text, size_t bytes, bool may_overlap, struct err *e)
{
	struct maps out = { .text = text };
	size_t line_number = 0;

	text[bytes] = 0;
	out.list = calloc(count_lines(text, bytes), sizeof *out.list);
	if (!out.list) {
		free(text);
		return err_set(e, ENOMEM, "no memory for the list of mappings");
	}
	for (char *at = text, *end = text + bytes; at < end;) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		struct cursor line = { at, newline ? newline : end };
		struct mapping *next = &out.list[out.count];

		line_number++;
		*line.end = 0;
		at = line.end + 1;
		bool ok = !memchr(line.at, 0, (size_t)(line.end - line.at)) && parse_line(line, next);
		/* The vsyscall page comes last and is above everything: sorted all the same. */
		bool overlaps = ok && out.count && next->start < out.list[out.count - 1].end;
		if (overlaps && may_overlap && !clip(next, next - 1))
			continue;
		if (!ok || (overlaps && !may_overlap)) {
			maps_free(&out);
			return err_set(e, EINVAL, "line %zu of the list of mappings makes no sense", line_number);
		}
		out.count++;
	}
	*m = out;
	return 0;
}

int maps_parse(struct maps *m, const char *text, size_t bytes, struct err *e)
{
	char *copy = malloc(bytes + 1);

	if (!copy)
		return err_set(e, ENOMEM, "no memory for the list of mappings");
	memcpy(copy, text, bytes);
	return parse_owned(m, copy, bytes, false, e);
}

static int read_once(struct maps *m, const char *file, bool may_overlap, struct err *e)
{
	watchdog_call_begin(); /* an execve keeps it waiting */
	AUTO_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC);
	watchdog_call_end();
	size_t used = 0, size = 1u << 16;

	if (fd < 0)
		return errno == ENOENT ? err_set(e, ESRCH, "no %s: the process or thread is gone", file)
		                       : err_sys(e, "cannot open %s", file);
	char *text = malloc(size + 1);
	while (text) {
		ssize_t n = read(fd, text + used, size - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int r = err_sys(e, "cannot read %s", file);
			free(text);
			return r;
		}
		if (n == 0)
			break;
		used += (size_t)n;
		if (used > TEXT_MAX) {
			free(text);
			return err_set(e, E2BIG, "%s is longer than %u MB", file, TEXT_MAX >> 20);
		}
		if (used == size) {
			size *= 2;
			char *more = realloc(text, size + 1);
			if (!more)
				free(text);
			text = more;
		}
	}
	if (!text)
		return err_set(e, ENOMEM, "no memory for the list of mappings");
	if (used == 0) {
		free(text);
		return err_set(e, ESRCH, "%s is empty: the thread has exited", file);
	}
	return parse_owned(m, text, used, may_overlap, e);
}

/*
 * Since Linux 6.17 the kernel writes the list without a lock on all of it: while the program splits and merges
 * mappings, a line may reach back into the one before. Such a list is read again; if they overlap each time, the
 * program has no other than such mappings in that place, and what the first line said counts.
 */
int maps_read(struct maps *m, const char *file, struct err *e)
{
	int rc = 0;

	for (unsigned i = 1; i <= READ_TRIES; i++) {
		rc = read_once(m, file, i == READ_TRIES, e);
		if (rc != -EINVAL)
			break;
	}
	return rc;
}

void maps_free(struct maps *m)
{
	free(m->list);
	free(m->text);
	*m = (struct maps){ 0 };
}

const struct mapping *maps_find(const struct maps *m, uint64_t address)
{
	size_t low = SORTED_UP_TO(m->list, m->count, end, address);

	return low < m->count && m->list[low].start <= address ? &m->list[low] : NULL;
}

bool mapping_same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode && a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* Do both map the same thing at address? */
static bool same_at(const struct mapping *a, const struct mapping *b, uint64_t address)
{
	if (!a || !b)
		return a == b;
	return a->prot == b->prot && a->shared == b->shared && a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor && a->deleted == b->deleted && !strcmp(a->path, b->path) &&
	       (!a->inode || a->offset + (address - a->start) == b->offset + (address - b->start));
}

/*
 * The mapping of m that holds at, starting to look at *i; *next becomes the next boundary after at, if that
 * is nearer.
 */
static const struct mapping *step(const struct maps *m, size_t *i, uint64_t at, uint64_t *next)
{
	while (*i < m->count && m->list[*i].end <= at)
		(*i)++;
	if (*i == m->count)
		return NULL;
	const struct mapping *here = &m->list[*i];
	uint64_t boundary = here->start > at ? here->start : here->end;
	if (boundary < *next)
		*next = boundary;
	return here->start <= at ? here : NULL;
}

size_t maps_diff(const struct maps *before, const struct maps *after, maps_change_fn fn, void *context)
{
	struct maps_change open = { 0 };
	size_t count = 0, b = 0, a = 0;
	uint64_t at = 0;

	for (;;) {
		uint64_t next = UINT64_MAX;
		const struct mapping *was = step(before, &b, at, &next);
		const struct mapping *is = step(after, &a, at, &next);
		bool differs = !same_at(was, is, at);

		/* A change goes on as long as both sides stay what they are. */
		if (open.end && (open.end != at || !differs || open.before != was || open.after != is)) {
			if (fn)
				fn(context, &open);
			open.end = 0;
		}
		if (differs && !open.end) {
			open = (struct maps_change){ at, next, was, is };
			count++;
		} else if (differs) {
			open.end = next;
		}
		if (next == UINT64_MAX)
			return count;
		at = next;
	}
}

static const char *flags_text(const struct mapping *m, char text[5])
{
	text[0] = m->prot & PROT_READ ? 'r' : '-';
	text[1] = m->prot & PROT_WRITE ? 'w' : '-';
	text[2] = m->prot & PROT_EXEC ? 'x' : '-';
	text[3] = m->shared ? 's' : 'p';
	text[4] = 0;
	return text;
}

static const char *mapping_name(const struct mapping *m)
{
	return m->path[0] ? m->path : "anonymous";
}

const char *maps_change_format(const struct maps_change *change, char *buffer, size_t size)
{
	const struct mapping *was = change->before, *is = change->after;
	char old_flags[5], new_flags[5];
	int n = snprintf(buffer, size, "%" PRIx64 "-%" PRIx64 " ", change->start, change->end);
	size_t used = n < 0 ? 0 : (size_t)n < size ? (size_t)n : size;

	if (!was && is)
		snprintf(buffer + used, size - used, "%s %s (new)", flags_text(is, new_flags), mapping_name(is));
	else if (was && !is)
		snprintf(buffer + used, size - used, "%s %s (gone)", flags_text(was, old_flags), mapping_name(was));
	else if (was && is)
		snprintf(buffer + used, size - used, "%s %s (was %s %s)", flags_text(is, new_flags), mapping_name(is),
		         flags_text(was, old_flags), mapping_name(was));
	return buffer;
}
