/* SPDX-License-Identifier: MIT */
#include "touch/changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

struct change_row {
	enum change_class class;
	const char *what, *undone, *dead;
};

#define ROW(kind, class, what, undone, dead)                                                                           \
	[CHANGE_##kind] = { CHANGE_OF_##class, what, CHANGE_UNDONE_##undone, CHANGE_DEAD_##dead },
static const struct change_row table[CHANGE_KINDS] = { CHANGE_LIST(ROW) };
#undef ROW

const char *change_what(enum change_kind kind)
{
	return table[kind].what;
}

const char *change_undone(enum change_kind kind)
{
	return table[kind].undone;
}

const char *change_dead(enum change_kind kind)
{
	return table[kind].dead;
}

enum change_class change_class(enum change_kind kind)
{
	return table[kind].class;
}

void changes_free(struct changes *c)
{
	free(c->list);
	*c = (struct changes){ 0 };
}

int changes_add(struct changes *c, enum change_kind kind, uint64_t address, const void *old, const void *new,
                unsigned bytes, struct err *e)
{
	struct change row = { .address = address, .bytes = (uint8_t)bytes, .kind = (uint8_t)kind };

	if (bytes > CHANGE_BYTES || table[kind].class != CHANGE_OF_BYTES)
		return err_set(e, EINVAL, "a change of %u bytes of %s", bytes, table[kind].what);
	if (!grow_list(c->list, c->count))
		return err_set(e, ENOMEM, "out of memory");
	memcpy(row.old, old, bytes);
	memcpy(row.new, new, bytes);
	c->list[c->count] = row;
	c->sums[kind][CHANGE_LISTED]++;
	return (int)c->count++;
}

void changes_keep(struct changes *c, size_t count)
{
	for (; c->count > count; c->count--) {
		const struct change *row = &c->list[c->count - 1];
		c->sums[row->kind][row->state]--;
	}
}

void changes_set(struct changes *c, int row, enum change_state state)
{
	struct change *change = &c->list[row];

	c->sums[change->kind][change->state]--;
	c->sums[change->kind][state]++;
	change->state = (uint8_t)state;
}

int changes_next(const struct changes *c, enum change_kind kind, int row)
{
	for (size_t i = (size_t)(row + 1); i < c->count; i++)
		if (c->list[i].kind == kind)
			return (int)i;
	return -1;
}

int changes_before(const struct changes *c, enum change_kind kind, int row)
{
	for (size_t i = row < 0 ? c->count : (size_t)row; i-- > 0;)
		if (c->list[i].kind == kind)
			return (int)i;
	return -1;
}

void changes_made(struct changes *c, enum change_kind kind)
{
	c->sums[kind][CHANGE_MADE]++;
}

void changes_end(struct changes *c, enum change_kind kind, enum change_state state)
{
	c->sums[kind][state] += c->sums[kind][CHANGE_MADE];
	c->sums[kind][CHANGE_MADE] = 0;
	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].kind == kind && c->list[i].state == CHANGE_MADE)
			c->list[i].state = (uint8_t)state;
}

void changes_thread_is_back(struct changes *c)
{
	for (unsigned kind = 0; kind < CHANGE_KINDS; kind++)
		if (table[kind].class == CHANGE_OF_THREAD)
			changes_end(c, kind, CHANGE_UNDONE);
}

void changes_all_gone(struct changes *c)
{
	for (unsigned kind = 0; kind < CHANGE_KINDS; kind++)
		changes_end(c, kind, CHANGE_GONE);
}

void changes_forget(struct changes *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].state == CHANGE_MADE)
			c->list[kept++] = c->list[i];
	c->count = kept;
	for (unsigned kind = 0; kind < CHANGE_KINDS; kind++)
		for (unsigned state = 0; state < CHANGE_STATES; state++)
			if (state != CHANGE_MADE)
				c->sums[kind][state] = 0;
}
