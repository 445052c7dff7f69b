/* SPDX-License-Identifier: MIT */
#include "touch/remote/target_write.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "host/watchdog.h"

int target_writer_open(struct target_writer *w, pid_t tid, struct err *e)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/%d/mem", tid);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "cannot write to the memory of the target: %s", path);
	w->fd = fd;
	return 0;
}

void target_writer_close(struct target_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

int target_write(const struct target_writer *w, uint64_t address, const void *data, size_t bytes, struct err *e)
{
	const char *from = data;

	while (bytes > 0) {
		watchdog_call_begin();
		ssize_t n = pwrite(w->fd, from, bytes, (off_t)address);
		watchdog_call_end();
		if (n <= 0) {
			if (n == 0)
				errno = EFAULT;
			return err_sys(e, "cannot write %zu bytes at 0x%llx of the target", bytes,
			               (unsigned long long)address);
		}
		from += n;
		address += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}
