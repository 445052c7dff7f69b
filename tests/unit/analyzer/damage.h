/* SPDX-License-Identifier: MIT */
/* Sends bytes that claim to be a dump through the reader, the report and both of its forms. */
#ifndef MEMATTACH_DAMAGE_H
#define MEMATTACH_DAMAGE_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"
#include "report_json.h"
#include "report_text.h"

enum { DAMAGE_NONE, DAMAGE_PARTIAL, DAMAGE_REFUSED };

static inline int damage_report(const void *bytes, size_t size)
{
	struct report_options options = { .confidence = 0.95, .symbols = true };
	struct dump *dump = NULL;
	struct report report;
	struct err e;
	int result = DAMAGE_REFUSED;
	int fd = memfd_create("dump", MFD_CLOEXEC);
	FILE *null = fopen("/dev/null", "we");

	if (fd < 0 || !null || write(fd, bytes, size) != (ssize_t)size)
		abort();
	if (!dump_open_fd(fd, &dump, &e)) {
		if (report_make(&report, dump, "damaged", &options, &e))
			abort();
		report_text(&report, "damaged", null, true);
		report_json(&report, null);
		result = report.whole ? DAMAGE_NONE : DAMAGE_PARTIAL;
		report_done(&report);
		dump_close(dump);
	}
	fclose(null);
	close(fd);
	return result;
}

#endif
