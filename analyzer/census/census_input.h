/* SPDX-License-Identifier: MIT */
/* A census that memattach has written (census_format.h), read as hostile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "census_format.h"

struct census_input {
	void *data; /* owns all */
	const struct census_header *header;
	const struct census_row *rows; /* those of known tables may be anywhere among them */
	const char *strings;
};

/* Does a regular file begin like one? */
bool census_input_is(const char *path);
/* census_input_done afterwards. -EBADMSG: it is none, or damaged; -errno. */
int census_input_open(struct census_input *c, const char *path, struct err *e) WARN_UNUSED;
/* The same from memory, which is copied. */
int census_input_parse(struct census_input *c, const void *data, size_t bytes, struct err *e) WARN_UNUSED;
void census_input_done(struct census_input *c);
