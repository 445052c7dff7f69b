/* SPDX-License-Identifier: MIT */
/*
 * Which classes are loaded now. When HotSpot unloads a class it takes the class's loader out of the list of loaders,
 * then frees the memory of both, and later gives it to others: until then what was there can be read as if it were
 * still alive. So a class is one that its loader has, and the loader is one of the list.
 */
#pragma once

#include "base/map.h"
#include "java/java_code.h"

struct java_loaded {
	struct map loaders; /* of the list; 1: its classes have been read */
	struct map classes; /* of those loaders, by the attempt that has found them */
	uint32_t attempts;  /* to read the classes of a loader */
};

/* The list, as it is now; java_loaded_done() whatever is returned. -ENOENT: it is not known where it is; else as in
 * java_code.h. */
int java_loaded_read(struct java_loaded *l, struct java_view *v, struct err *e) WARN_UNUSED;
void java_loaded_done(struct java_loaded *l);

/* Is that a class that was loaded when the list was read, or a little later? */
int java_loaded_has(struct java_loaded *l, struct java_view *v, uint64_t class, bool *has, struct err *e) WARN_UNUSED;
