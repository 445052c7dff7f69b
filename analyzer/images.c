/* SPDX-License-Identifier: MIT */
#include "images.h"

#include <stdlib.h>
#include <string.h>

#define MODULE_IDS 65536u
#define DELETED " (deleted)"

static bool same_image(const struct image *image, const struct dump_module *m, const char *path)
{
	if (image->build_id_bytes != m->build_id_bytes)
		return false;
	if (m->build_id_bytes)
		return !memcmp(image->build_id, m->build_id, m->build_id_bytes);
	return !strcmp(image->path, path);
}

static int add_module(void *arg, const struct dump_module *m)
{
	struct images *images = arg;
	char *path = strdup(m->path);
	uint32_t i = 1;

	if (!path)
		return -ENOMEM;
	size_t length = strlen(path);
	size_t suffix = strlen(DELETED);
	bool deleted = length > suffix && !strcmp(path + length - suffix, DELETED);
	if (deleted)
		path[length - suffix] = 0;
	if (images->image_of[m->id])
		goto done; /* the first one is the one that the frames knew */
	while (i < images->count && !same_image(&images->list[i], m, path))
		i++;
	if (i == MODULE_IDS)
		goto done;
	if (i == images->count) {
		struct image *more = realloc(images->list, (i + 1) * sizeof *more);
		if (!more) {
			free(path);
			return -ENOMEM;
		}
		images->list = more;
		more[i] = (struct image){ .path = path, .deleted = deleted, .build_id_bytes = m->build_id_bytes };
		memcpy(more[i].build_id, m->build_id, m->build_id_bytes);
		images->count++;
		path = NULL;
	}
	images->list[i].flags |= m->flags;
	images->image_of[m->id] = (uint16_t)i;
	images->bias_of[m->id] = m->bias;
done:
	free(path);
	return 0;
}

int images_load(struct images *images, struct dump *dump)
{
	*images = (struct images){ .count = 1 };
	images->list = calloc(1, sizeof *images->list);
	images->image_of = calloc(MODULE_IDS, sizeof *images->image_of);
	images->bias_of = calloc(MODULE_IDS, sizeof *images->bias_of);
	if (!images->list || !images->image_of || !images->bias_of)
		return -ENOMEM;
	return dump_each_module(dump, add_module, images);
}

void images_done(struct images *images)
{
	for (uint32_t i = 0; i < images->count && images->list; i++)
		free(images->list[i].path);
	free(images->list);
	free(images->image_of);
	free(images->bias_of);
	*images = (struct images){ 0 };
}

uint64_t images_place(const struct images *images, uint64_t frame)
{
	uint32_t id = DUMP_FRAME_MODULE(frame);
	uint32_t image = images->image_of[id];

	if (!image)
		return PLACE(0, frame);
	return PLACE(image, DUMP_FRAME_ADDRESS(frame) - images->bias_of[id]);
}

const char *image_name(const struct image *image)
{
	const char *slash = strrchr(image->path, '/');

	return slash && slash[1] ? slash + 1 : image->path;
}
