/* SPDX-License-Identifier: MIT */
/*
 * A census as a page for browsers: what is resident, by kind and by name, as an icicle, and the live blocks by type,
 * holder and size, each as a bar with a table. The page has no script: all is drawn here, and names of the process
 * become text, never markup.
 */
#pragma once

#include <stdio.h>

#include "census/census_input.h"

/* name: of the file, as the user called it. -ENOMEM. */
int census_page(const struct census_input *census, const char *name, FILE *out) WARN_UNUSED;
