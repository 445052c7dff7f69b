/* SPDX-License-Identifier: MIT */
#include "census/census_input.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "files/regular_file.h"
#include "files/whole_io.h"

bool census_input_is(const char *path)
{
	char magic[8];
	AUTO_CLOSE int fd = regular_file_open(path, ERR_IGNORED);

	return fd >= 0 && whole_io_pread(fd, magic, sizeof magic, 0) && !memcmp(magic, CENSUS_MAGIC, sizeof magic);
}

static bool lies_within(uint64_t offset, uint64_t bytes, uint64_t size)
{
	return offset <= size && bytes <= size - offset;
}

/* All names together are no longer than a file may be: many rows may share one long name, each of which is compared,
 * and written out. */
static int check_names(const struct census_input *c, struct err *e)
{
	const uint64_t bytes = c->header->strings_bytes;
	uint64_t left = CENSUS_FILE_MAX;

	for (uint32_t i = 0; i < c->header->row_count; i++) {
		const struct census_row *r = &c->rows[i];
		if (r->kind >= bytes || r->name >= bytes)
			return err_set(e, EBADMSG, "the census has a row without a name");
		const uint64_t length = strlen(c->strings + r->kind) + strlen(c->strings + r->name);
		if (length > left)
			return err_set(e, EBADMSG, "the names of the census are longer than any census");
		left -= length;
	}
	return 0;
}

static int check(struct census_input *c, size_t bytes, struct err *e)
{
	const struct census_header *h = c->data;

	if (bytes < sizeof *h || memcmp(h->magic, CENSUS_MAGIC, sizeof h->magic) != 0)
		return err_set(e, EBADMSG, "this is no census");
	if (h->version != CENSUS_VERSION)
		return err_set(e, EBADMSG, "a census of version %u, which this memanalyze does not know", h->version);
	if (h->header_bytes != sizeof *h || h->file_bytes != bytes || h->rows_offset % 8 ||
	    !lies_within(h->rows_offset, (uint64_t)h->row_count * sizeof(struct census_row), bytes) ||
	    !lies_within(h->strings_offset, h->strings_bytes, bytes) || !memchr(h->command, '\0', sizeof h->command))
		return err_set(e, EBADMSG, "the census is damaged or cut off");
	c->header = h;
	c->rows = (const struct census_row *)((const char *)c->data + h->rows_offset);
	c->strings = (const char *)c->data + h->strings_offset;
	if (h->row_count && (!h->strings_bytes || c->strings[h->strings_bytes - 1]))
		return err_set(e, EBADMSG, "the census has names without an end");
	return check_names(c, e);
}

int census_input_parse(struct census_input *c, const void *data, size_t bytes, struct err *e)
{
	*c = (struct census_input){ .data = malloc(bytes + 1) };
	if (!c->data)
		return err_set(e, ENOMEM, "out of memory");
	if (bytes)
		memcpy(c->data, data, bytes);
	int rc = check(c, bytes, e);
	if (rc < 0)
		census_input_done(c);
	return rc;
}

int census_input_open(struct census_input *c, const char *path, struct err *e)
{
	AUTO_CLOSE int fd = regular_file_open(path, e);
	AUTO_FREE void *data = NULL;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(e, "cannot be read");
	if (st.st_size < 0 || st.st_size > (off_t)CENSUS_FILE_MAX)
		return err_set(e, EBADMSG, "larger than any census");
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return err_set(e, ENOMEM, "out of memory");
	if (!whole_io_pread(fd, data, (size_t)st.st_size, 0))
		return err_set(e, EBADMSG, "cannot be read");
	return census_input_parse(c, data, (size_t)st.st_size, e);
}

void census_input_done(struct census_input *c)
{
	free(c->data);
	*c = (struct census_input){ 0 };
}
