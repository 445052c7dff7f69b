/* SPDX-License-Identifier: MIT */
/* A number in a file of a cgroup, of either version. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* False: the file is not there, or has no number: "max", there is no limit. */
bool cgroup_number(const char *directory, const char *name, uint64_t *value);
