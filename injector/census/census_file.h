/* SPDX-License-Identifier: MIT */
/* A census as a file (census_format.h), to be compared with a later one by memanalyze --diff. */
#pragma once

#include "census/census.h"

/* Writes it, whole or not at all; what is there is replaced. */
int census_file_write(const struct census *c, const char *path, struct err *e) WARN_UNUSED;
