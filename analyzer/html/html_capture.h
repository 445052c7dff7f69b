/* SPDX-License-Identifier: MIT */
/* What a part of the text report writes, as a string of the page: of limited length, however much there is. */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "text/text.h"

struct html_capture {
	char *text;
	size_t bytes;
	FILE *out;
	struct text put; /* that parts are written to */
};

/* False: out of memory. */
bool html_capture_begin(struct html_capture *capture, const struct report *report);
/* To be freed; NULL: out of memory. */
char *html_capture_end(struct html_capture *capture);
/* As a string. -ENOMEM. */
int html_capture_put(struct html_capture *capture, const char *name, struct json *json) WARN_UNUSED;
