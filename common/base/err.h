/* SPDX-License-Identifier: MIT */
/*
 * One error of a fallible function: the deepest frame that knows the cause writes the text, the callers pass it up,
 * only the main files print it. A function that takes a struct err returns 0 or -errno.
 */
#pragma once

#include <errno.h>

#define WARN_UNUSED __attribute__((warn_unused_result))

struct err {
	int code;       /* positive errno, 0 if none */
	char text[480]; /* one line, no final newline: what failed, why, what would help */
};

/* For who calls and does not care why it failed: an error that ends with the block. NULL is none: callees may read it.
 */
#define ERR_IGNORED (&(struct err){ 0 })

/* Sets the text (printf) and code, returns -code. err_sys takes code from errno and appends ": " and the message of
 * errno. */
int err_set(struct err *e, int code, const char *format, ...) __attribute__((format(printf, 3, 4), cold));
int err_sys(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
/* Puts "text: " in front of what is there; returns -e->code. */
int err_prefix(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
