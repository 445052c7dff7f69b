/* SPDX-License-Identifier: MIT */
/*
 * The program files behind the modules of a dump. A module is one mapping of a file at one address; an image is the
 * file, or a module of Python or a package of Java (source_places.h). Frames become places (image, offset from the load
 * bias): the same in every process and after every dlopen, so stacks compare equal where the code is the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dump/dump_reader.h"
#include "base/map.h"
#include "input/source_places.h"

/* Image in the upper 16 bits, 0: none; offset in the lower 48, the plain address if there is no image. */

#define PLACE(image, offset) ((uint64_t)(image) << 48 | ((offset)&0xffffffffffffu))
#define PLACE_IMAGE(p) ((uint32_t)((p) >> 48))
#define PLACE_OFFSET(p) ((p)&0xffffffffffffu)

/* The offset of the call before a return address. */
static inline uint64_t image_place_call(uint64_t place)
{
	uint64_t offset = PLACE_OFFSET(place);

	return offset ? offset - 1 : 0;
}

/* "/proc/PID/root", "/proc/self/fd/N" */
#define IMAGE_ROOT_TEXT 32u

struct image {
	char *path; /* as the target's memory map named it, without " (deleted)" */
	bool deleted;
	enum image_language language; /* not NATIVE: no file but a module, path is what it is called (python_files.h) */
	uint32_t flags;               /* DUMP_MODULE_* */
	uint32_t build_id_bytes;
	uint8_t build_id[DUMP_BUILD_ID_MAX];
	uint64_t low, high;         /* the addresses of the file that were mapped, less the load bias; 0: not known */
	int file;                   /* a descriptor of it, if one was opened in time; 0: none */
	char root[IMAGE_ROOT_TEXT]; /* a directory below which the path is that of the file, "": none but / */
};

/* The images of all dumps that were read; equal build-ids are one image, wherever each was loaded. */
struct images {
	struct image *list; /* list[0] stands for no image */
	uint32_t count;
	struct map image_of;   /* hash of the build-id, or of the path -> index in list; collisions step by one */
	uint32_t module_count; /* of those that are no files */
	struct source_places sources;
};

/* Where one dump had them. */
struct image_map {
	uint16_t *image_of; /* by module id, 0: no such module */
	uint64_t *bias_of;
	uint64_t got_entries; /* GOT entries of allocation functions, of all its modules */
	uint64_t java_mark;   /* the bit of frames of Java code; 0: there are none */
};

/* -ENOMEM. */
int images_init(struct images *images) WARN_UNUSED;
void images_done(struct images *images);

/*
 * Adds the modules of a dump and says in map where they are; to be freed by image_map_done, whatever is returned. root:
 * of the target, "" if it is gone (target_root.h). -ENOMEM.
 */
int images_add(struct images *images, struct dump *dump, const char *root, struct image_map *map) WARN_UNUSED;
void image_map_done(struct image_map *map);

/* The image of a module of a language that is not native, a new one if there is none yet; where there are too many, one
 * that stands for the rest. 0: no memory, or no room. */
uint32_t images_add_module(struct images *images, enum image_language language, const char *module);

/* Is it a frame of Java code? */
bool images_is_java(const struct image_map *map, uint64_t frame);
/* The place of a frame word of that dump. */
uint64_t images_place(const struct image_map *map, uint64_t frame);
/* Is any image that this dump has like that? */
bool images_any(const struct images *images, const struct image_map *map, bool (*is)(const struct image *image));
/* The last component of the path. */
const char *image_name(const struct image *image);
/* Without what all modules of Python have: "_json" of _json.cpython-311-x86_64-linux-gnu.so. */
void image_short_name(const struct image *image, char *name, size_t size);
