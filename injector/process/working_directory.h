/* SPDX-License-Identifier: MIT */
/* The directory in which the target works, as the target itself would write it: its root may be another one. */
#pragma once

#include "process/target.h"

#define WORKING_DIRECTORY_TEXT 4096u

/* "": it is not known, removed, or outside of the target's root. */
void working_directory_read(const struct target *t, char text[WORKING_DIRECTORY_TEXT]);
