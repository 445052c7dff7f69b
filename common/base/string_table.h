/* SPDX-License-Identifier: MIT */
/* Strings by number, each once, in the order in which they came. */
#pragma once

#include <stdbool.h>

#include "base/map.h"

struct string_table {
	char **list;
	uint32_t count;
	struct map number_of; /* hash -> index in list; collisions step by one */
};

/* The number of a string, of which a copy is kept. -ENOMEM. */
int string_table_add(struct string_table *table, const char *text, uint32_t *number) WARN_UNUSED;
bool string_table_find(const struct string_table *table, const char *text, uint32_t *number);
void string_table_done(struct string_table *table);
