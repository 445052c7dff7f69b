/* SPDX-License-Identifier: MIT */
#include "size.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int size_parse(const char *text, uint64_t *bytes, struct err *e)
{
	static const char units[] = "kmgt";
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return err_set(e, EINVAL, "'%s' is not a size; write a number with k, M or G, such as 512k", text);
	errno = 0;
	uint64_t value = strtoull(text, &end, 10);
	if (errno)
		return err_set(e, ERANGE, "size '%s' is too large", text);
	const char *unit = *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
	unsigned shift = 0;
	if (unit) {
		shift = 10u * (unsigned)(unit - units + 1);
		end++;
		if (*end == 'i')
			end++;
	}
	if (*end == 'B')
		end++;
	if (*end)
		return err_set(e, EINVAL, "'%s' is not a size; write a number with k, M or G, such as 512k", text);
	if (value > UINT64_MAX >> shift)
		return err_set(e, ERANGE, "size '%s' is too large", text);
	*bytes = value << shift;
	return 0;
}

int time_parse(const char *text, uint64_t *ns, struct err *e)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "m", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 } };
	char *end = NULL;
	double value = isdigit((unsigned char)text[0]) ? strtod(text, &end) : 0;

	if (end && isfinite(value)) {
		for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
			if (strcmp(end, units[i].name))
				continue;
			double total = value * units[i].ns;
			if (total < 1 || total > 9e18)
				return err_set(e, ERANGE, "time '%s' is out of range", text);
			*ns = (uint64_t)total;
			return 0;
		}
	}
	return err_set(e, EINVAL, "'%s' is not a time; write a number with s, m or h, such as 30s", text);
}

int percent_parse(const char *text, double *fraction)
{
	char *end;

	errno = 0;
	double percent = strtod(text, &end);
	if (errno || end == text || !isfinite(percent) || (*end && strcmp(end, "%")))
		return -EINVAL;
	*fraction = percent / 100;
	return 0;
}

const char *size_format(double bytes, char buffer[SIZE_TEXT])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned i = 0;

	while (fabs(bytes) >= 1023.995 && i < 6) {
		bytes /= 1024;
		i++;
	}
	int decimals = i == 0 || fabs(bytes) >= 99.95 ? 0 : fabs(bytes) >= 9.995 ? 1 : 2;
	snprintf(buffer, SIZE_TEXT, "%.*f %s", decimals, bytes, units[i]);
	return buffer;
}
