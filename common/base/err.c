/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(e->text, sizeof e->text, format, ap);
	va_end(ap);
	e->code = code;
	return -code;
}

int err_sys(struct err *e, const char *format, ...)
{
	int code = errno ? errno : EIO;
	va_list ap;

	va_start(ap, format);
	vsnprintf(e->text, sizeof e->text, format, ap);
	va_end(ap);
	size_t used = strlen(e->text);
	snprintf(e->text + used, sizeof e->text - used, ": %s", strerror(code));
	e->code = code;
	return -code;
}

int err_prefix(struct err *e, const char *format, ...)
{
	char old[sizeof e->text];
	va_list ap;

	memcpy(old, e->text, sizeof old);
	va_start(ap, format);
	vsnprintf(e->text, sizeof e->text, format, ap);
	va_end(ap);
	size_t used = strlen(e->text);
	snprintf(e->text + used, sizeof e->text - used, ": %s", old);
	return -e->code;
}
