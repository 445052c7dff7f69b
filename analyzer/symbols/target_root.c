/* SPDX-License-Identifier: MIT */
#include "symbols/target_root.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files/whole_io.h"

/* Field 22 of /proc/PID/stat; the name in field 2 may hold anything but ends with the last ')'. 0: no such process. */
static uint64_t start_ticks(int pid)
{
	char path[40], text[1024];
	unsigned long long ticks;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (whole_io_text(path, text, sizeof text) < 0)
		return 0;
	const char *after = strrchr(text, ')');
	return after && sscanf(after + 1,
	                       " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
	                       &ticks) == 1
	               ? ticks
	               : 0;
}

bool target_root_find(const struct dump *dump, char root[IMAGE_ROOT_TEXT])
{
	const struct dump_header *h = dump_header(dump);
	char host[sizeof h->host] = "";

	root[0] = 0;
	gethostname(host, sizeof host - 1);
	if (h->pid <= 0 || !h->target_start_ticks || strcmp(host, h->host) != 0 ||
	    start_ticks(h->pid) != h->target_start_ticks)
		return false;
	snprintf(root, IMAGE_ROOT_TEXT, "/proc/%d/root", h->pid);
	return true;
}
