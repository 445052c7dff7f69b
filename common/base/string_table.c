/* SPDX-License-Identifier: MIT */
#include "base/string_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* *hash: where it is, or belongs. */
static bool find(const struct string_table *t, const char *text, uint32_t *number, uint64_t *hash)
{
	const uint32_t *known;

	*hash = 0;
	for (const char *s = text; *s; s++)
		*hash = map_mix(*hash ^ (unsigned char)*s);
	for (; (known = map_find(&t->number_of, *hash)); ++*hash) {
		if (!strcmp(t->list[*known], text)) {
			*number = *known;
			return true;
		}
	}
	return false;
}

bool string_table_find(const struct string_table *t, const char *text, uint32_t *number)
{
	uint64_t hash;

	return find(t, text, number, &hash);
}

int string_table_add(struct string_table *t, const char *text, uint32_t *number)
{
	uint64_t hash;

	if (find(t, text, number, &hash))
		return 0;
	if (t->count == UINT32_MAX || !grow_list(t->list, t->count))
		return -ENOMEM;
	char *copy = strdup(text);
	if (!copy || map_put(&t->number_of, hash, t->count)) {
		free(copy);
		return -ENOMEM;
	}
	t->list[t->count] = copy;
	*number = t->count++;
	return 0;
}

void string_table_done(struct string_table *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		free(t->list[i]);
	free(t->list);
	map_done(&t->number_of);
	*t = (struct string_table){ 0 };
}
