/* SPDX-License-Identifier: MIT */
#include "python/python_names.h"

#include <stdlib.h>
#include <string.h>

#include "dump/dump_code.h"
#include "base/grow.h"

#define UNKNOWN "(unknown Python function)"
/* A large service has some 100 000 lines that allocate, each with a table of some hundred bytes. */
#define WORK_BYTES_MAX (256ull << 20)

int python_names_init(struct python_names *n, struct images *images, struct dump *dump)
{
	*n = (struct python_names){ .images = images, .dump = dump, .code = malloc(sizeof *n->code) };
	return n->code ? python_path_read(&n->path, dump) : -ENOMEM;
}

void python_names_done(struct python_names *n)
{
	python_path_done(&n->path);
	map_done(&n->place_of);
	free(n->places);
	free(n->code);
	*n = (struct python_names){ 0 };
}

static bool read_code(struct python_names *n, uint32_t reference)
{
	if (reference == n->reference)
		return true;
	n->reference = 0;
	if (n->work > WORK_BYTES_MAX || dump_read_code(n->dump, reference, n->code))
		return false;
	n->reference = reference;
	return true;
}

static uint64_t look_up(struct python_names *n, uint64_t frame)
{
	char function[DUMP_CODE_NAME_TEXT], file[DUMP_CODE_FILE_TEXT];

	n->work += sizeof(struct dump_code);
	if (!DUMP_PYTHON_REFERENCE(frame) || !read_code(n, DUMP_PYTHON_REFERENCE(frame)))
		return 0; /* there was no room for it, or the dump is damaged */
	n->work += n->code->code.data_bytes;
	dump_code_name(n->code, function);
	dump_code_file(n->code, file);
	return source_places_add_python(n->images, &n->path, function, file,
	                                dump_code_line(n->code, DUMP_PYTHON_OFFSET(frame)));
}

uint64_t python_names_place(struct python_names *n, uint64_t frame, bool *known)
{
	uint64_t key = frame & ~(uint64_t)DUMP_PYTHON_FRAME(0, 1, -2);
	const uint32_t *at = map_find(&n->place_of, key);

	if (!at) {
		if (!grow_list(n->places, n->count))
			return 0;
		n->places[n->count] = look_up(n, frame);
		if (map_put(&n->place_of, key, n->count))
			return 0;
		at = map_find(&n->place_of, key);
		n->count++;
	}
	*known = n->places[*at];
	return *known ? n->places[*at] : source_places_add_python(n->images, &n->path, UNKNOWN, "", 0);
}
