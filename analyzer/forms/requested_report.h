/* SPDX-License-Identifier: MIT */
/* A report that memattach asks for (include/report_request.h): of one dump, with the defaults, to one descriptor. */
#ifndef MEMATTACH_REQUESTED_REPORT_H
#define MEMATTACH_REQUESTED_REPORT_H

/* The arguments after REPORT_REQUEST_OPTION. Returns the exit status. */
int requested_report_main(int argc, char **argv);

#endif
