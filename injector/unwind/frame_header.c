/* SPDX-License-Identifier: MIT */
#include "unwind/frame_header.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/cfi_program.h"

#define HEAD_MAX 32u
#define HEAD_MIN 12u
#define TABLE_ENCODING (DW_EH_PE_datarel | DW_EH_PE_sdata4)
#define ENTRY_AT 8u /* in a description, after its length and the place of its CIE */

/* The head: version, three encodings, where .eh_frame is, the number of rows. */
bool frame_header_read(struct frame_header *h, const struct module_file *f)
{
	const struct elf_table *section = &f->module->eh_frame_hdr;
	const uint64_t bytes = section->bytes < HEAD_MAX ? section->bytes : HEAD_MAX;
	uint8_t head[HEAD_MAX];

	*h = (struct frame_header){ .base = section->address };
	if (bytes < HEAD_MIN || module_file_read(f, section->address, head, bytes, &(struct err){ 0 }) < 0 ||
	    head[0] != 1)
		return false;
	struct cfi_reader r = { head + 4, head + bytes, false };
	uint64_t frames = cfi_reader_pointer(&r, head[1], section->address + 4);
	if (!r.bad)
		h->frames = frames;
	uint64_t count = cfi_reader_pointer(&r, head[2], section->address + (uint64_t)(r.at - head));
	uint64_t used = (uint64_t)(r.at - head);
	if (r.bad || head[3] != TABLE_ENCODING || count > (section->bytes - used) / sizeof(struct frame_row))
		return true;
	h->rows = section->address + used;
	h->count = count;
	return true;
}

struct frame_row *frame_header_rows(const struct frame_header *h, const struct module_file *f)
{
	AUTO_FREE struct frame_row *rows = h->count ? calloc(h->count, sizeof *rows) : NULL;

	if (!rows || module_file_read(f, h->rows, rows, h->count * sizeof *rows, &(struct err){ 0 }) < 0)
		return NULL;
	return cleanup_steal_pointer(&rows);
}

/* Pointers of 4 bytes, relative to their place, or of 8: whichever gives the entry that is known. */
uint64_t frame_header_description(const uint8_t description[FRAME_DESCRIPTION_BYTES], uint64_t place, uint64_t entry,
                                  const uint8_t **rest)
{
	const uint8_t *at = description + ENTRY_AT;
	uint32_t bytes;
	uint64_t wide;
	int32_t near;

	memcpy(&near, at, sizeof near);
	if (place + ENTRY_AT + (uint64_t)(int64_t)near == entry) {
		memcpy(&bytes, at + sizeof near, sizeof bytes);
		*rest = at + sizeof near + sizeof bytes;
		return bytes;
	}
	memcpy(&wide, at, sizeof wide);
	if (place + ENTRY_AT + wide != entry && wide != entry)
		return 0;
	memcpy(&wide, at + sizeof wide, sizeof wide);
	*rest = at + 2 * sizeof wide;
	return wide;
}
