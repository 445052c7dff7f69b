/* SPDX-License-Identifier: MIT */
#include "system/unseen.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/printable.h"

#define NUMBER_LEAST 3u /* digits: what has fewer is a size, a time or a version, but for those of processes */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

/* Is it the number of a process or thread, whatever its length? In a container they are small. */
static bool is_numbered(const char *why, const char *number)
{
	static const char *const before[] = { "PID ", "process ", "thread ", "-p ", "user " };

	for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
		size_t n = strlen(before[i]);
		if ((size_t)(number - why) >= n && strncmp(number - n, before[i], n) == 0)
			return true;
	}
	return false;
}

/* Numbers that stand alone become N. */
static void without_numbers(const char *why, char out[UNSEEN_WHY])
{
	size_t used = 0;

	for (const char *s = why; *s && used + 1 < UNSEEN_WHY;) {
		size_t digits = strspn(s, "0123456789");
		bool alone = digits && (digits >= NUMBER_LEAST || is_numbered(why, s)) &&
		             (s == why || !is_word(s[-1])) && !is_word(s[digits]);
		out[used++] = alone ? 'N' : *s;
		s += alone ? digits : 1;
	}
	out[used] = '\0';
}

static bool add(struct unseen *u, const struct unseen_row *row)
{
	/* When there is no room it is not known to be new. */
	bool new_reason = u->count < UNSEEN_ROWS;

	for (size_t i = 0; i < u->count; i++) {
		if (strcmp(u->list[i].why, row->why) != 0)
			continue;
		new_reason = false;
		if (strcmp(u->list[i].name, row->name) == 0) {
			u->list[i].count += row->count;
			return false;
		}
	}
	if (u->count == UNSEEN_ROWS || !grow_list(u->list, u->count)) {
		u->more += row->count;
		return new_reason;
	}
	u->list[u->count++] = *row;
	return new_reason;
}

bool unseen_add(struct unseen *u, const char *name, pid_t pid, const char *why)
{
	struct unseen_row row = { .example = pid, .count = 1 };

	printable_copy(name, row.name, sizeof row.name);
	without_numbers(why, row.why);
	printable_copy(row.why, row.why, sizeof row.why);
	return add(u, &row);
}

void unseen_merge(struct unseen *u, const struct unseen *other)
{
	for (size_t i = 0; i < other->count; i++)
		add(u, &other->list[i]);
	u->more += other->more;
}

unsigned unseen_total(const struct unseen *u)
{
	unsigned total = u->more;

	for (size_t i = 0; i < u->count; i++)
		total += u->list[i].count;
	return total;
}

static int by_count(const void *a, const void *b)
{
	const struct unseen_row *x = a, *y = b;

	return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : strcmp(x->name, y->name);
}

void unseen_sort(struct unseen *u)
{
	if (u->count)
		qsort(u->list, u->count, sizeof *u->list, by_count);
}

void unseen_free(struct unseen *u)
{
	free(u->list);
	*u = (struct unseen){ 0 };
}
