/* SPDX-License-Identifier: MIT */
/* A fake interpreter (python_fake.h) as the payload is told of it. */
#pragma once

#include "python_fake.h"

/* The test is skipped where the C library does not tell where a thread's own values are. */
void python_inside_layout(const struct python_fake *f, struct python_layout *l);
/* One fake for each release that is known. */
void python_inside_each(void (*test)(struct python_fake *f));
