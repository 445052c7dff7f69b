/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions over names that strangers may have made. The time is linear in the names and the memory bounded,
 * whatever both are: back-references are refused, of a name the first PATTERN_NAME_MAX bytes are looked at, the search
 * begins at one place only (the expression is put behind "^.*", else it would be tried anew at each byte), and what the
 * C library has worked out for earlier names is given up now and then, because it keeps all of it.
 */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define PATTERN_NAME_MAX 4096u

struct pattern {
	char *text; /* NULL: there is none, which matches nothing */
	regex_t compiled;
	size_t looked_at; /* bytes, since it was compiled */
	bool failed;      /* out of memory: it matches nothing any more */
};

/* A POSIX extended regular expression, or NULL for none. -EINVAL with the reason, -ENOMEM. */
int pattern_init(struct pattern *pattern, const char *text, struct err *e) WARN_UNUSED;
/* Whether it is found anywhere in the name; NULL is no name. */
bool pattern_matches(struct pattern *pattern, const char *name);
void pattern_done(struct pattern *pattern);
