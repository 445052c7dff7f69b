/* SPDX-License-Identifier: MIT */
#include "java/java_loaded.h"

#include <inttypes.h>

#define LOADERS_MAX (1u << 18)
#define CLASSES_MAX (1u << 20) /* of all loaders that were asked for */

/* From one element to the next: each is put into the map, with the number of the attempt. */
static int chain_read(struct map *to, struct java_view *v, uint64_t at, const struct java_field *next, size_t most,
                      uint32_t attempt, struct err *e)
{
	while (at) {
		const uint32_t *known = map_find(to, at);
		if (known ? *known == attempt : to->count == most)
			return err_set(e, EINVAL, "the list at 0x%" PRIx64 " has no end", at);
		if (map_put(to, at, attempt))
			return err_set(e, ENOMEM, "no memory for classes");
		int rc = java_field_read(&v->memory, at, next, &at, e);
		if (rc)
			return rc;
	}
	return 0;
}

int java_loaded_read(struct java_loaded *l, struct java_view *v, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t head;

	*l = (struct java_loaded){ 0 };
	if (!s->loaders.bytes || !s->loader_next.bytes || !s->loader_classes.bytes || !s->class_loader.bytes ||
	    !s->class_next.bytes)
		return err_set(e, ENOENT, "it does not say which classes are loaded");
	int rc = java_field_read(&v->memory, 0, &s->loaders, &head, e);
	return rc ?: chain_read(&l->loaders, v, head, &s->loader_next, LOADERS_MAX, 0, e);
}

void java_loaded_done(struct java_loaded *l)
{
	map_done(&l->loaders);
	map_done(&l->classes);
}

int java_loaded_has(struct java_loaded *l, struct java_view *v, uint64_t class, bool *has, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t loader, first;

	int rc = java_field_read(&v->memory, class, &s->class_loader, &loader, e);
	const uint32_t *known = rc ? NULL : map_find(&l->loaders, loader);
	if (known && !*known) {
		rc = java_field_read(&v->memory, loader, &s->loader_classes, &first, e);
		rc = rc ?: chain_read(&l->classes, v, first, &s->class_next, CLASSES_MAX, ++l->attempts, e);
		if (rc == 0 && map_put(&l->loaders, loader, 1))
			rc = err_set(e, ENOMEM, "no memory for classes");
	}
	if (rc == 0)
		*has = known && map_find(&l->classes, class);
	return rc;
}
