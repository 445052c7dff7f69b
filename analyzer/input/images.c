/* SPDX-License-Identifier: MIT */
#include "input/images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define MODULE_IDS 65536u
/* A longer path cannot be opened, and reports name it at every frame. */
#define PATH_BYTES 4096u
#define DELETED " (deleted)"

static bool same_image(const struct image *image, const struct dump_module *m, const char *path)
{
	if (image->language || image->build_id_bytes != m->build_id_bytes)
		return false;
	if (m->build_id_bytes)
		return !memcmp(image->build_id, m->build_id, m->build_id_bytes);
	return !strcmp(image->path, path);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = map_mix(hash ^ ((const uint8_t *)bytes)[i]);
	return hash;
}

/* The number of the image of a module; images->count: it is a new one, and *hash is where it belongs. */
static uint32_t find_image(const struct images *images, const struct dump_module *m, const char *path, uint64_t *hash)
{
	const uint32_t *known;

	*hash = m->build_id_bytes ? hash_bytes(m->build_id_bytes, m->build_id, m->build_id_bytes)
	                          : hash_bytes(0, path, strlen(path));
	while ((known = map_find(&images->image_of, *hash))) {
		if (same_image(&images->list[*known], m, path))
			return *known;
		++*hash;
	}
	return images->count;
}

struct addition {
	struct images *images;
	const char *root;
	struct image_map *map;
};

/* Of all dumps. What makes no sense is left out. */
static void note_extent(struct image *image, const struct dump_module *m)
{
	uint64_t low = m->start - m->bias, high = m->end - m->bias;

	if (m->bias > m->start || low >= high || PLACE_OFFSET(high) != high)
		return;
	if (!image->high || low < image->low)
		image->low = low;
	if (high > image->high)
		image->high = high;
}

static int add_module(void *arg, const struct dump_module *m)
{
	struct images *images = ((struct addition *)arg)->images;
	struct image_map *map = ((struct addition *)arg)->map;
	const char *root = ((struct addition *)arg)->root;
	uint64_t hash;

	if (map->image_of[m->id])
		return 0; /* the first one is the one that the frames knew */
	char *path = strndup(m->path, PATH_BYTES);
	if (!path)
		return -ENOMEM;
	size_t length = strlen(path);
	size_t suffix = strlen(DELETED);
	bool deleted = length > suffix && !strcmp(path + length - suffix, DELETED);
	if (deleted)
		path[length - suffix] = 0;
	uint32_t i = find_image(images, m, path, &hash);
	if (i == MODULE_IDS)
		goto done;
	if (i == images->count) {
		if (!grow_list(images->list, i) || map_put(&images->image_of, hash, i)) {
			free(path);
			return -ENOMEM;
		}
		images->list[i] =
			(struct image){ .path = path, .deleted = deleted, .build_id_bytes = m->build_id_bytes };
		memcpy(images->list[i].build_id, m->build_id, m->build_id_bytes);
		images->count++;
		path = NULL;
	}
	if (!images->list[i].root[0])
		snprintf(images->list[i].root, sizeof images->list[i].root, "%s", root);
	images->list[i].flags |= m->flags;
	note_extent(&images->list[i], m);
	map->got_entries += m->got_entries;
	map->image_of[m->id] = (uint16_t)i;
	map->bias_of[m->id] = m->bias;
done:
	free(path);
	return 0;
}

/* A list of images has room for 65535 of all kinds. */
#define MODULES_MAX 16384u
#define OTHER_MODULES "(other modules)"

uint32_t images_add_module(struct images *images, enum image_language language, const char *module)
{
	const char *name = images->module_count < MODULES_MAX ? module : OTHER_MODULES;
	uint64_t hash = hash_bytes(language, name, strlen(name));
	const uint32_t *known;

	for (; (known = map_find(&images->image_of, hash)); hash++)
		if (images->list[*known].language == language && !strcmp(images->list[*known].path, name))
			return *known;
	if (images->count == MODULE_IDS || !grow_list(images->list, images->count))
		return 0;
	char *path = strdup(name);
	if (!path || map_put(&images->image_of, hash, images->count)) {
		free(path);
		return 0;
	}
	images->list[images->count] = (struct image){ .path = path, .language = language };
	images->module_count++;
	return images->count++;
}

int images_init(struct images *images)
{
	*images = (struct images){ 0 };
	if (!grow_list(images->list, 0))
		return -ENOMEM;
	images->list[images->count++] = (struct image){ 0 };
	return 0;
}

void images_done(struct images *images)
{
	for (uint32_t i = 0; i < images->count && images->list; i++)
		free(images->list[i].path);
	free(images->list);
	map_done(&images->image_of);
	source_places_done(&images->sources);
	*images = (struct images){ 0 };
}

int images_add(struct images *images, struct dump *dump, const char *root, struct image_map *map)
{
	struct addition addition = { images, root, map };

	map->java_mark = DUMP_JAVA_MARK(dump_header(dump)->features);

	map->image_of = calloc(MODULE_IDS, sizeof *map->image_of);
	map->bias_of = calloc(MODULE_IDS, sizeof *map->bias_of);
	if (!map->image_of || !map->bias_of)
		return -ENOMEM;
	return dump_each_module(dump, add_module, &addition);
}

void image_map_done(struct image_map *map)
{
	free(map->image_of);
	free(map->bias_of);
	*map = (struct image_map){ 0 };
}

bool images_is_java(const struct image_map *map, uint64_t frame)
{
	return frame & map->java_mark;
}

uint64_t images_place(const struct image_map *map, uint64_t frame)
{
	uint32_t id = images_is_java(map, frame) ? 0 : DUMP_FRAME_MODULE(frame);
	uint32_t image = map->image_of[id];

	if (!image)
		return PLACE(0, frame);
	return PLACE(image, DUMP_FRAME_ADDRESS(frame) - map->bias_of[id]);
}

bool images_any(const struct images *images, const struct image_map *map, bool (*is)(const struct image *image))
{
	for (uint32_t id = 1; id < MODULE_IDS; id++)
		if (map->image_of[id] && is(&images->list[map->image_of[id]]))
			return true;
	return false;
}

const char *image_name(const struct image *image)
{
	const char *slash = strrchr(image->path, '/');

	return slash && slash[1] ? slash + 1 : image->path;
}

void image_short_name(const struct image *image, char *name, size_t size)
{
	const char *full = image_name(image);
	const char *tag = strstr(full, ".cpython-");

	tag = tag ? tag : strstr(full, ".abi3.so");
	snprintf(name, size, "%.*s", (int)(tag ? tag - full : (ptrdiff_t)strlen(full)), full);
}
