/* SPDX-License-Identifier: MIT */
#include "input/python_files.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Behind the last place where the word is in the text. */
static const char *after_last(const char *text, const char *word)
{
	const char *found = NULL;

	for (const char *s = text; (s = strstr(s, word)); s += strlen(word) - 1)
		found = s + strlen(word);
	return found;
}

/* "3.11/" and the like at s: what is behind it. */
static const char *after_version(const char *s)
{
	size_t n = s && !strncmp(s, "3.", 2) ? 2 + strspn(s + 2, "0123456789") : 0;

	return n > 2 && s[n] == '/' ? s + n + 1 : NULL;
}

const char *python_file_root(const char *file)
{
	static const char *const packages[] = { "/site-packages/", "/dist-packages/" };
	const char *found = NULL;

	for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++) {
		const char *below = after_last(file, packages[i]);
		if (below > found)
			found = below;
	}
	if (!found)
		found = after_version(after_last(file, "/lib/python"));
	if (!found)
		found = after_version(after_last(file, "/lib64/python"));
	return found && *found ? found : NULL;
}

static bool drop_end(char *name, const char *end)
{
	size_t have = strlen(name), n = strlen(end);

	if (have <= n || strcmp(name + have - n, end) != 0)
		return false;
	name[have - n] = 0;
	return true;
}

void python_file_module(const char *file, const char *below, char name[PYTHON_MODULE_TEXT])
{
	static const char frozen[] = "<frozen ";

	snprintf(name, PYTHON_MODULE_TEXT, "%s", below ? below : file);
	if (!file[0]) {
		strcpy(name, "python");
	} else if (!strncmp(file, frozen, strlen(frozen))) {
		snprintf(name, PYTHON_MODULE_TEXT, "%s", file + strlen(frozen));
		drop_end(name, ">");
	} else if (below && drop_end(name, ".py")) {
		for (char *s = name; (s = strchr(s, '/'));)
			*s = '.';
		drop_end(name, ".__init__");
	} else {
		snprintf(name, PYTHON_MODULE_TEXT, "%s", file);
	}
}
