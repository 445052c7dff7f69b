/* SPDX-License-Identifier: MIT */
/* What a walk inside of the process is told of a HotSpot that is proved: include/java_layout.h. */
#pragma once

#include "java/java_code.h"

#define JAVA_CONTINUATIONS_SINCE 21u /* version: virtual threads */

/* Code of continuations was seen: walks end there. */
void java_inside_barrier(struct java_view *v, const struct java_code *code);
/* -EINVAL: something does not lie where a walk may read it. */
int java_inside_layout(struct java_layout *layout, struct java_view *v, struct err *e) WARN_UNUSED;
