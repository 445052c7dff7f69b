/* SPDX-License-Identifier: MIT */
#include "base/size.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads digits, with a decimal point or without, into *value. Returns what follows them; NULL: there are none, or what
 * strtold would take besides, an exponent or hexadecimal digits. 64 bits of mantissa hold each size. */
static const char *take_number(const char *text, long double *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return NULL;
	*value = strtold(text, &end);
	return end == text + strspn(text, "0123456789.") ? end : NULL;
}

int size_parse(const char *text, uint64_t *bytes, struct err *e)
{
	static const char units[] = "kmgt";
	long double value = 0;
	const char *end = take_number(text, &value);
	const char *unit = end && *end ? strchr(units, tolower((unsigned char)*end)) : NULL;

	if (unit) {
		value = ldexpl(value, 10 * (int)(unit - units + 1));
		end++;
		if (*end == 'i')
			end++;
	}
	if (end && (*end == 'B' || *end == 'b'))
		end++;
	if (!end || *end || (!unit && value != floorl(value)))
		return err_set(e, EINVAL, "'%s' is not a size; write it as 4096, 64k, 64KiB or 1.5M", text);
	if (value >= 0x1p64L)
		return err_set(e, ERANGE, "size '%s' is too large", text);
	*bytes = (uint64_t)value;
	return 0;
}

/* The largest first, as the parts of a time are written. */
static const struct time_unit {
	const char *name;
	long double ns;
} time_units[] = { { "d", 86400e9L }, { "h", 3600e9L }, { "m", 60e9L }, { "s", 1e9L }, { "ms", 1e6L }, { NULL, 0 } };

/* The first of these units that begins the text as a whole word of letters; that without a name: none. */
static const struct time_unit *find_unit(const struct time_unit *unit, const char *text)
{
	size_t letters = strcspn(text, "0123456789");

	while (unit->name && (strlen(unit->name) != letters || strncmp(text, unit->name, letters) != 0))
		unit++;
	return unit;
}

/* Nanoseconds; 0: the text is no time, or none that is above 0. */
static long double sum_of_parts(const char *text, bool *well_formed)
{
	long double total = 0, value;
	const struct time_unit *unit = time_units;

	*well_formed = true;
	for (const char *rest = text; rest == text || *rest; unit++) {
		rest = take_number(rest, &value);
		if (rest && !*rest && unit == time_units)
			return value * 1e9L;
		unit = rest ? find_unit(unit, rest) : NULL;
		if (!unit || !unit->name) {
			*well_formed = false;
			return 0;
		}
		total += value * unit->ns;
		rest += strlen(unit->name);
	}
	return total;
}

int size_parse_time(const char *text, uint64_t *ns, struct err *e)
{
	bool well_formed;
	long double total = sum_of_parts(text, &well_formed);

	if (!well_formed)
		return err_set(e, EINVAL, "'%s' is not a time; write it as 250ms, 30s, 1m30s or 1.5h", text);
	if (total < 1 || total > 9e18L)
		return err_set(e, ERANGE, "time '%s' is out of range", text);
	*ns = (uint64_t)total;
	return 0;
}

int size_parse_percent(const char *text, double *fraction)
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

const char *size_format_change(double bytes, char buffer[SIZE_TEXT + 1])
{
	char size[SIZE_TEXT];

	snprintf(buffer, SIZE_TEXT + 1, "%s%s", bytes > 0 ? "+" : bytes < 0 ? "-" : "", size_format(fabs(bytes), size));
	return buffer;
}
