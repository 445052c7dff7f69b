/* SPDX-License-Identifier: MIT */
/* The live view that memattach asks for (include/view_request.h). */
#ifndef MEMATTACH_REQUESTED_VIEW_H
#define MEMATTACH_REQUESTED_VIEW_H

#include <stdbool.h>

/* The arguments after VIEW_REQUEST_OPTION. Returns the exit status. */
int requested_view_main(int argc, char **argv, bool colour);

#endif
