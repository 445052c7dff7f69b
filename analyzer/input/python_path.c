/* SPDX-License-Identifier: MIT */
#include "input/python_path.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "input/python_files.h"

static bool is_up(const char *part, size_t n)
{
	return n == 2 && part[0] == '.' && part[1] == '.';
}

/* Where the last part of a text begins. */
static size_t last_part(const char *text, size_t used)
{
	while (used && text[used - 1] != '/')
		used--;
	return used;
}

/* No part of it is empty, "." or, but in front of a relative one, "..". It becomes no longer. */
static void normalise(const char *path, char *out)
{
	const bool absolute = path[0] == '/';
	size_t used = absolute, n;

	out[0] = '/';
	for (const char *part = path; *part; part += n + (part[n] == '/')) {
		n = strcspn(part, "/");
		if (n == 0 || (n == 1 && part[0] == '.'))
			continue;
		size_t last = last_part(out, used);
		if (is_up(part, n) && used > absolute && !is_up(out + last, used - last)) {
			used = last > absolute ? last - 1 : last;
			continue;
		}
		if (is_up(part, n) && absolute)
			continue;
		if (used > absolute)
			out[used++] = '/';
		memcpy(out + used, part, n);
		used += n;
	}
	out[used] = 0;
}

int python_path_add(struct python_path *p, const char *entry)
{
	size_t n = strlen(entry) + 1;

	if (p->count == DUMP_PATHS_MAX || n > DUMP_PATHS_BYTES_MAX - p->bytes)
		return 0;
	char *text = grow_list(p->list, p->count) ? malloc(n) : NULL;
	if (!text)
		return -ENOMEM;
	normalise(entry, text);
	p->list[p->count++] = text;
	p->bytes += n;
	return 0;
}

static int on_entry(void *arg, const char *text)
{
	return python_path_add(arg, text);
}

int python_path_read(struct python_path *p, struct dump *dump)
{
	return dump_each_path(dump, on_entry, p);
}

void python_path_done(struct python_path *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		free(p->list[i]);
	free(p->list);
	*p = (struct python_path){ 0 };
}

/* What of a file is below an entry; NULL: it is not. */
static const char *below_entry(const char *file, const char *entry)
{
	size_t n = strlen(entry);

	if (!strcmp(entry, "/"))
		return NULL;
	if (!n)
		return file[0] != '/' && strncmp(file, "../", 3) != 0 ? file : NULL;
	return !strncmp(file, entry, n) && file[n] == '/' ? file + n + 1 : NULL;
}

bool python_path_below(const struct python_path *p, const char *file, char below[DUMP_CODE_FILE_TEXT])
{
	char text[DUMP_CODE_FILE_TEXT];

	if (!file[0] || file[0] == '<' || strlen(file) >= sizeof text - 1) /* <string>, <frozen os> */
		return false;
	normalise(file, text);
	const char *found = python_file_root(text);
	for (uint32_t i = 0; i < p->count; i++) {
		const char *rest = below_entry(text, p->list[i]);
		if (rest && (!found || rest > found))
			found = rest;
	}
	if (!found || !*found)
		return false;
	strcpy(below, found);
	return true;
}
