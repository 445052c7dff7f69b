/* SPDX-License-Identifier: MIT */
/*
 * What dicts and lists of a running CPython hold. The interpreter may change them meanwhile, and what was freed may be
 * anything by now: so an item is only an address, whose object has to be proved like any other (python_object.h, which
 * also says what the errors mean).
 */
#pragma once

#include "python/python_object.h"

#define PYTHON_DICT_SLOTS_MAX 8192u /* of a dict that is searched: that of sys has 256 */

/* The value of a key in a dict; 0: it has no such key. A dict of more slots is -EINVAL. */
int python_dict_find(struct python_view *v, uint64_t dict, const char *key, uint64_t *value, struct err *e) WARN_UNUSED;

/* The first items of a list, at most max of them. */
int python_list_read(struct python_view *v, uint64_t list, uint64_t *items, uint32_t max, uint32_t *count,
                     struct err *e) WARN_UNUSED;
