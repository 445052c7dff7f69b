/* SPDX-License-Identifier: MIT */
#include "python/python_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "python/python_containers.h"
#include "python/python_stack.h"

#define DIRECTORY_MAX 4096u

static int add(struct python_paths *p, const char *text, struct err *e)
{
	size_t bytes = strlen(text) + 1;

	for (uint32_t i = 0; i < p->count; i++)
		if (strcmp(p->list[i], text) == 0)
			return 0;
	if (p->count == DUMP_PATHS_MAX || bytes > DUMP_PATHS_BYTES_MAX - p->bytes)
		return 0;
	char *copy = grow_list(p->list, p->count) ? strdup(text) : NULL;
	if (!copy)
		return err_set(e, ENOMEM, "no memory for sys.path");
	p->list[p->count++] = copy;
	p->bytes += (uint32_t)bytes;
	return 0;
}

static int add_entry(struct python_paths *p, const char *entry, const char *directory, struct err *e)
{
	char text[DIRECTORY_MAX + PYTHON_FILE_TEXT];

	int rc = add(p, entry, e);
	if (rc || entry[0] == '/' || !directory[0])
		return rc;
	snprintf(text, sizeof text, "%.*s/%s", (int)DIRECTORY_MAX - 2, directory, entry);
	return add(p, text, e);
}

static int read_list(struct python_paths *p, struct python_view *v, uint64_t list, const char *directory, struct err *e)
{
	uint64_t items[DUMP_PATHS_MAX];
	char text[PYTHON_FILE_TEXT];
	uint32_t count = 0;

	int rc = python_list_read(v, list, items, DUMP_PATHS_MAX, &count, e);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		rc = python_string_whole(v, items[i], text, PYTHON_FILE_CHARS, e);
		if (rc == 0)
			rc = add_entry(p, text, directory, e);
		else if (python_is_of_objects(rc))
			rc = 0;
	}
	return rc;
}

static int read_interpreter(struct python_paths *p, struct python_view *v, uint64_t interpreter, const char *directory,
                            struct err *e)
{
	uint64_t sys, list = 0;

	int rc = target_read_u64(&v->memory, interpreter + v->release->interpreter_sys, &sys, e);
	rc = rc ?: python_dict_find(v, sys, "path", &list, e);
	if (rc == 0 && !list)
		rc = err_set(e, EINVAL, "sys has no path");
	return rc ?: read_list(p, v, list, directory, e);
}

int python_paths_read(struct python_paths *p, struct python_view *v, const char *directory, struct err *e)
{
	const struct python_release *r = v->release;
	uint64_t main_one, interpreter;

	int rc = target_read_u64(&v->memory, v->runtime + r->runtime_main, &main_one, e);
	rc = rc ?: read_interpreter(p, v, main_one, directory, e);
	if (rc && !python_is_of_objects(rc))
		return rc;
	int next = target_read_u64(&v->memory, v->runtime + r->runtime_interpreters, &interpreter, ERR_IGNORED);
	for (uint32_t i = 0; next == 0 && interpreter && i < PYTHON_INTERPRETERS_MAX; i++) {
		if (interpreter != main_one)
			next = read_interpreter(p, v, interpreter, directory, ERR_IGNORED);
		if (next == 0 || python_is_of_objects(next))
			next = target_read_u64(&v->memory, interpreter + r->interpreter_next, &interpreter,
			                       ERR_IGNORED);
	}
	return rc;
}

void python_paths_done(struct python_paths *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		free(p->list[i]);
	free(p->list);
	*p = (struct python_paths){ 0 };
}
