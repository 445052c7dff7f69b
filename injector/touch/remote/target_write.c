/* SPDX-License-Identifier: MIT */
#include "touch/remote/target_write.h"

#include <unistd.h>

#include "host/watchdog.h"

void target_writer_close(struct target_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

static int write_all(const struct target_writer *w, uint64_t address, const void *data, size_t bytes, struct err *e)
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

int target_write(const struct target_writer *w, enum change_kind ours, uint64_t address, const void *data, size_t bytes,
                 struct err *e)
{
	if (change_class(ours) == CHANGE_OF_BYTES || !w->changes->sums[ours][CHANGE_MADE])
		return err_set(e, EPERM,
		               "nothing was written at 0x%llx of the target: that is not in the table of changes",
		               (unsigned long long)address);
	return write_all(w, address, data, bytes, e);
}

int target_writer_change(const struct target_writer *w, int row, struct err *e)
{
	const struct change *c = &w->changes->list[row];

	int rc = write_all(w, c->address, c->new, c->bytes, e);
	if (rc == 0)
		changes_set(w->changes, row, CHANGE_MADE);
	return rc;
}

int target_writer_undo(const struct target_writer *w, int row, const void *instead, struct err *e)
{
	const struct change *c = &w->changes->list[row];

	int rc = write_all(w, c->address, instead ? instead : c->old, c->bytes, e);
	if (rc == 0)
		changes_set(w->changes, row, CHANGE_UNDONE);
	return rc;
}

int target_writer_add_change(const struct target_writer *w, enum change_kind kind, uint64_t address, const void *old,
                             const void *new, unsigned bytes, struct err *e)
{
	int row = changes_add(w->changes, kind, address, old, new, bytes, e);
	int rc = row < 0 ? row : target_writer_change(w, row, e);

	return rc < 0 ? rc : row;
}
