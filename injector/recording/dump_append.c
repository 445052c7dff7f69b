/* SPDX-License-Identifier: MIT */
#include "recording/dump_append.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "files/whole_io.h"
#include "recording/dump_writer_internal.h"

uint64_t dump_append_room(const struct dump_writer *w)
{
	return w->own->region_count < DUMP_REGION_MAX && w->used < w->max_bytes ? w->max_bytes - w->used : 0;
}

static int read_header(int fd, struct dump_header *h, struct stat *st, struct err *e)
{
	if (fstat(fd, st) || !whole_io_pread(fd, h, sizeof *h, 0))
		return err_sys(e, "cannot read the dump again");
	return h->region_count < DUMP_REGION_MAX ? 0
	                                         : err_set(e, ENOSPC, "the dump has as many regions as it can have");
}

static int write_region(int fd, const struct dump_header *h, const struct dump_region *r,
                        const struct dump_symbols *symbols, struct err *e)
{
	uint32_t count = h->region_count + 1;
	uint64_t at = offsetof(struct dump_header, regions) + h->region_count * sizeof *r;

	if (!whole_io_pwrite(fd, symbols, symbols->bytes, r->offset) || ftruncate(fd, (off_t)(r->offset + r->bytes)) ||
	    !whole_io_pwrite(fd, r, sizeof *r, at) ||
	    !whole_io_pwrite(fd, &count, sizeof count, offsetof(struct dump_header, region_count)))
		return err_sys(e, "cannot write them");
	return 0;
}

static int append(const struct dump_file *f, const void *what, struct err *e)
{
	const struct dump_symbols *symbols = what;
	AUTO_CLOSE int fd = dump_file_reopen(f, O_RDWR);
	struct dump_header h = { 0 };
	struct stat st = { 0 };

	if (fd < 0)
		return err_set(e, -fd, "the dump could not be opened again");
	int rc = read_header(fd, &h, &st, e);
	if (rc < 0)
		return rc;
	struct dump_region r = { .kind = DUMP_REGION_SYMBOLS,
		                 .offset = dump_writer_align((uint64_t)st.st_size, DUMP_REGION_ALIGN),
		                 .bytes = dump_writer_align(symbols->bytes, DUMP_REGION_ALIGN) };
	if (r.offset > h.max_bytes || r.bytes > h.max_bytes - r.offset)
		return err_set(e, ENOSPC, "the limit of the dump (--max-size) leaves no room");
	rc = write_region(fd, &h, &r, symbols, e);
	if (rc < 0 && ftruncate(fd, st.st_size) < 0)
		return rc; /* what is beyond the regions is of no importance */
	return rc;
}

int dump_append_symbols(struct dump_file *f, const struct dump_symbols *symbols, const struct patience *patience,
                        struct err *e)
{
	return dump_file_change(f, append, symbols, patience, e);
}
