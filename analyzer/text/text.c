/* SPDX-License-Identifier: MIT */
#include "text/text.h"

#include <math.h>
#include <string.h>

#include "base/printable.h"
#include "base/size.h"

const char *text_grouped(double value, char buffer[40])
{
	char digits[32];
	size_t used = 0;

	if (value < -0.5) {
		buffer[used++] = '-';
		value = -value;
	}
	snprintf(digits, sizeof digits, "%.0f", value < 0.5 ? 0 : value < 1e18 ? value : 1e18);
	size_t n = strlen(digits);
	for (size_t i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			buffer[used++] = ',';
		buffer[used++] = digits[i];
	}
	buffer[used] = 0;
	return buffer;
}

const char *text_amount(enum report_figure f, double value, char buffer[40])
{
	if (!report_is_bytes(f))
		return text_grouped(value, buffer);
	if (value >= 0)
		return size_format(value, buffer);
	buffer[0] = '-';
	size_format(-value, buffer + 1);
	return buffer;
}

const char *text_interval(enum report_figure f, const struct estimate *x, char buffer[96])
{
	char low[40], high[40];

	if (x->low == x->high)
		snprintf(buffer, 96, x->exact ? TEXT_EXACT : TEXT_COUNTED);
	else
		snprintf(buffer, 96, "%s .. %s", text_amount(f, x->low, low), text_amount(f, x->high, high));
	return buffer;
}

const char *text_percent(double share, char buffer[16])
{
	snprintf(buffer, 16, "%.*f %%", share > 0 && share < 0.0995 ? 2 : 1, 100 * share);
	return buffer;
}

const char *text_plural(double n, const char *one, const char *many)
{
	return n >= 0.5 && n < 1.5 ? one : many;
}

const char *text_unit(enum report_figure f, double value)
{
	return report_is_bytes(f) ? "" : text_plural(fabs(value), " block", " blocks");
}

const char *text_title(enum report_figure f)
{
	static const char *const titles[] = { "live bytes", "live blocks", "allocated bytes", "allocated blocks" };

	return titles[f];
}

const char *text_source(const struct images *images, uint64_t place, const struct location *l, char out[LINE_TEXT])
{
	const char *slash = l->file ? strrchr(l->file, '/') : NULL;
	const char *file = slash ? slash + 1 : l->file;

	if (l->file && source_places_have(images, place))
		file = source_places_short(&images->sources, l->file);
	out[0] = 0;
	if (source_places_jdk(images, place))
		snprintf(out, LINE_TEXT, "%s", source_places_jdk(images, place));
	else if (l->file && l->line)
		snprintf(out, LINE_TEXT, "%.*s:%d", LINE_TEXT - 16, file, l->line);
	else if (l->file)
		snprintf(out, LINE_TEXT, "%s", file);
	printable_copy(out, out, LINE_TEXT);
	return out;
}

void text_module(const struct image *image, char out[LINE_TEXT])
{
	image_short_name(image, out, LINE_TEXT);
	printable_copy(out, out, LINE_TEXT);
}

bool text_is_program(const struct report *r, const struct image *image)
{
	for (size_t i = 0; i < r->session_count; i++)
		if (!image->path ||
		    strncmp(image->path, r->sessions[i].program, sizeof r->sessions[i].program - 1) != 0)
			return false;
	return true;
}

const char *text_short_path(const char *path)
{
	const char *p = path + strlen(path);

	for (int slashes = 0; p > path; p--)
		if (p[-1] == '/' && ++slashes == 2)
			break;
	return p;
}

void text_label(const struct text *t, const char *name)
{
	if (t->labels)
		++*t->labels;
	if (t->gap && *t->gap)
		putc('\n', t->out);
	if (t->gap)
		*t->gap = false;
	fprintf(t->out, "  %s%-10s%s ", t->dim, name, t->plain);
}

void text_warning(const struct text *t, const char *what, const char *text)
{
	char clean[LINE_TEXT];

	printable_copy(text, clean, sizeof clean);
	text_label(t, what);
	fprintf(t->out, "%s%s%s\n", t->warn, clean, t->plain);
}
