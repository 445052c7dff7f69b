/* SPDX-License-Identifier: MIT */
/*
 * What memattach asks for: a report (include/report_request.h), of one dump, with the defaults, to one descriptor; and
 * the live view (include/view_request.h). Each takes the arguments after its option, and returns the exit status.
 */
#pragma once

#include <stdbool.h>

int requested_report_main(int argc, char **argv);
int requested_view_main(int argc, char **argv, bool colour);
