/* SPDX-License-Identifier: MIT */
/*
 * The dump that memanalyze shows when none is named: the one in the current directory that was written last. Names end
 * in .dump, as those that memattach makes do; what is no regular file, or does not begin as a dump does, is passed
 * over, so that dumps of databases and the like are not taken for ours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Is this file of a directory a dump of ours, by its name and its first bytes? */
bool newest_dump_is(int directory, const char *name);
/* *path is to be freed. older: how many there are besides. -ENOENT: there is none; or -errno. */
int newest_dump_find(char **path, size_t *older, struct err *e) WARN_UNUSED;
