/* SPDX-License-Identifier: MIT */
#include "host/page_size.h"

#include <unistd.h>

#define PAGE_BYTES 4096

int page_size_check(struct err *e)
{
	const long bytes = sysconf(_SC_PAGESIZE);

	return bytes == PAGE_BYTES
	               ? 0
	               : err_set(e, ENOTSUP,
	                         "this kernel has pages of %ld KiB, and memattach works with those of 4 KiB "
	                         "only; nothing was changed",
	                         bytes / 1024);
}
