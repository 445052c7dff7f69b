/* SPDX-License-Identifier: MIT */
/*
 * Which CPython a module holds: what _PyRuntime says of itself (3.13 and later), the variable Py_Version (3.11 and
 * later), and its constant data. There the name of extension modules is, ".cpython-311-x86_64-linux-gnu.so", with the
 * build's flags after the version, d for debug and t for free-threaded; a debug build of Debian has the plain name too.
 * All that is found must agree. Before 3.11 the patch level is only in the text "3.9.2", and known where there is one.
 */
#pragma once

#include "python/python_find.h"

/* Fills in r->version. -E2BIG: beyond the budget. */
int python_version_read(struct python_runtime *r, const struct maps *maps, const struct target_memory *tm,
                        struct err *e) WARN_UNUSED;
