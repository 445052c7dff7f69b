/* SPDX-License-Identifier: MIT */
#include "recording/dump_copy.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "recording/dump_writer_internal.h"
#include "files/whole_io.h"

#define CHUNK_RECORDS 4096u
#define CHUNK_BYTES (CHUNK_RECORDS * sizeof(struct dump_live_record))
#define HOLE_BYTES 4096u
#define READS_MAX 8

_Static_assert(CHUNK_BYTES % HOLE_BYTES == 0 && CHUNK_BYTES % DUMP_HISTORY_BLOCK_BYTES == 0, "chunks");

struct copy {
	const struct dump_source *source;
	struct dump_header header; /* of the copy */
	int fd;
	_Alignas(16) char chunk[CHUNK_BYTES];
	_Alignas(16) char again[CHUNK_BYTES]; /* of live records, read a second time */
};

/*
 * Word after word, each acquired: the key of a live record is read before its fields, the head of a block of the
 * history before its records, whatever the machine does (docs/porting.md). Words are all that regions are made of.
 */
static int read_writer(const struct dump_source *source, uint64_t offset, void *buffer, size_t bytes, struct err *e)
{
	const struct dump_writer *w = source->context;
	const _Atomic uint64_t *from = (const void *)((const char *)w->shared + offset);
	uint64_t *to = buffer;

	(void)e;
	for (size_t i = 0; i < bytes / sizeof *to; i++)
		to[i] = atomic_load_explicit(&from[i], memory_order_acquire);
	return 0;
}

/* What memattach knows now, and what only the payload can tell. */
static void header_of_writer(const struct dump_source *source, struct dump_header *h)
{
	const struct dump_writer *w = source->context;
	/* Pairs with the release in dump_writer.c: a child sees regions that memattach has added since it was made. */
	uint32_t count = atomic_load_explicit(dump_writer_u32(&w->own->region_count), memory_order_acquire);

	*h = *w->own;
	h->region_count = count;
	memcpy(h->counters, w->shared->counters, sizeof h->counters);
	h->history_next = w->shared->history_next;
	h->frees_unseen = w->shared->frees_unseen;
	h->frees_unseen_bytes = w->shared->frees_unseen_bytes;
	h->mapping_cycles = w->shared->mapping_cycles;
	h->state = dump_writer_state(w);
	if (h->state == DUMP_STATE_RUNNING)
		h->clock_latest = clock_dump_now();
	h->lease_realtime_ns += source->longer_ns;
}

void dump_source_of_writer(struct dump_source *source, const struct dump_writer *w)
{
	*source = (struct dump_source){
		.read = read_writer, .update = header_of_writer, .context = w, .fd = w->fd, .sparse = true
	};
	header_of_writer(source, &source->header);
}

int dump_source_check(const struct dump_source *source, uint64_t bytes, struct err *e)
{
	const struct dump_header *h = &source->header;
	uint64_t end = DUMP_HEADER_BYTES;

	if (h->region_count > DUMP_REGION_MAX)
		return err_set(e, EPROTO, "the recording is damaged: it has %u regions", h->region_count);
	for (uint32_t i = 0; i < h->region_count; i++) {
		const struct dump_region *r = &h->regions[i];
		bool fits = r->offset >= end && r->offset <= bytes && r->bytes <= bytes - r->offset &&
		            r->offset % DUMP_REGION_ALIGN == 0 && r->bytes % DUMP_REGION_ALIGN == 0;
		if (!fits || (r->kind == DUMP_REGION_LIVE && (r->entries > r->bytes / DUMP_LIVE_ENTRY_BYTES ||
		                                              DUMP_LIVE_BYTES(r->entries) > r->bytes)))
			return err_set(e, EPROTO, "the recording is damaged: region %u is not within it", i);
		end = r->offset + r->bytes;
	}
	return 0;
}

uint64_t dump_source_bytes(const struct dump_source *source)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < source->header.region_count; i++)
		bytes += source->header.regions[i].bytes;
	return bytes;
}

static bool is_zero(const char *data, size_t bytes)
{
	return bytes == 0 || (data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0);
}

static size_t piece_at(size_t at, size_t bytes)
{
	return bytes - at < HOLE_BYTES ? bytes - at : HOLE_BYTES;
}

/* Writes runs of pieces that are not all zero. */
static int write_sparse(const struct copy *c, const char *data, size_t bytes, uint64_t offset, struct err *e)
{
	for (size_t begin = 0, end; begin < bytes; begin = end + HOLE_BYTES) {
		for (end = begin; end < bytes && !is_zero(data + end, piece_at(end, bytes));)
			end += piece_at(end, bytes);
		if (end > begin && !whole_io_pwrite(c->fd, data + begin, end - begin, offset + begin))
			return err_sys(e, "cannot write the dump");
	}
	return 0;
}

/*
 * Was the record the same at two moments, and complete? The key alone does not tell: an allocator gives an address that
 * was freed to the next one who asks, and what was read between is half of one block and half of another.
 */
static bool stood_still(const struct dump_live_record *before, const struct dump_live_record *after)
{
	return memcmp(before, after, sizeof *before) == 0 && after->address != DUMP_KEY_BUSY;
}

/* Reads a live record until it stood still meanwhile; one that never does is left out, as a record that is being
 * written. */
static int settle(const struct copy *c, struct dump_live_record *record, uint64_t offset, struct err *e)
{
	for (int i = 0; i < READS_MAX; i++) {
		struct dump_live_record after = { 0 };
		int rc = c->source->read(c->source, offset, record, sizeof *record, e);
		atomic_thread_fence(memory_order_acquire);
		rc = rc ?: c->source->read(c->source, offset, &after, sizeof after, e);
		if (rc < 0)
			return rc;
		if (stood_still(record, &after))
			return 0;
	}
	*record = (struct dump_live_record){ .address = DUMP_KEY_BUSY };
	return 0;
}

/* Live records, from the first one in the chunk on: those that have changed since, or that were being written, are read
 * again. */
static int settle_chunk(struct copy *c, size_t bytes, uint64_t offset, struct err *e)
{
	struct dump_live_record *records = (void *)c->chunk;
	const struct dump_live_record *after = (const void *)c->again;

	atomic_thread_fence(memory_order_acquire);
	int rc = c->source->read(c->source, offset, c->again, bytes, e);
	for (size_t i = 0; i < bytes / sizeof *records && rc == 0; i++)
		if (!stood_still(&records[i], &after[i]))
			rc = settle(c, &records[i], offset + i * sizeof *records, e);
	return rc;
}

/* Reads a block of the history until it was one thread's all the time: with its head from before and records of who has
 * taken it since, it would be of neither. One that never is counts as empty. */
static int settle_block(const struct copy *c, struct dump_history_block *block, uint64_t offset, struct err *e)
{
	for (int i = 0; i < READS_MAX; i++) {
		uint64_t sequence = 0;
		atomic_thread_fence(memory_order_acquire);
		int rc = c->source->read(c->source, offset, &sequence, sizeof sequence, e);
		if (rc < 0 || sequence == block->sequence)
			return rc;
		rc = c->source->read(c->source, offset, block, sizeof *block, e);
		if (rc < 0)
			return rc;
	}
	block->used = 0;
	return 0;
}

/* Blocks of the history, from the first one in the chunk on. */
static int settle_blocks(struct copy *c, size_t bytes, uint64_t offset, struct err *e)
{
	struct dump_history_block *blocks = (void *)c->chunk;
	int rc = 0;

	for (size_t i = 0; i < bytes / sizeof *blocks && rc == 0; i++)
		rc = settle_block(c, &blocks[i], offset + i * sizeof *blocks, e);
	return rc;
}

static void note_progress(const struct copy *c, uint64_t bytes)
{
	if (c->source->copied)
		atomic_fetch_add_explicit(c->source->copied, bytes, memory_order_relaxed);
}

/* What was read of a region of that kind, until it is of one moment where that matters. */
static int settle_part(struct copy *c, size_t bytes, uint64_t offset, uint32_t kind, struct err *e)
{
	if ((kind != DUMP_REGION_LIVE && kind != DUMP_REGION_HISTORY) || is_zero(c->chunk, bytes))
		return 0;
	return kind == DUMP_REGION_LIVE ? settle_chunk(c, bytes, offset, e) : settle_blocks(c, bytes, offset, e);
}

/* One extent that may hold something. */
static int copy_extent(struct copy *c, uint64_t offset, uint64_t bytes, uint32_t kind, struct err *e)
{
	int rc = 0;

	while (bytes > 0 && rc == 0) {
		size_t part = bytes < CHUNK_BYTES ? (size_t)bytes : CHUNK_BYTES;
		rc = c->source->read(c->source, offset, c->chunk, part, e);
		rc = rc ?: settle_part(c, part, offset, kind, e);
		rc = rc ?: write_sparse(c, c->chunk, part, offset, e);
		offset += part;
		bytes -= part;
	}
	return rc;
}

/*
 * The next extent of [offset, end) that was ever touched: most of a young recording was not. Live records are of 48
 * bytes from `offset` on, so an extent of theirs begins with one.
 */
static uint64_t next_extent(const struct copy *c, uint64_t offset, uint64_t end, uint32_t kind, uint64_t *until)
{
	off_t data = c->source->sparse ? lseek(c->source->fd, (off_t)offset, SEEK_DATA) : (off_t)offset;
	off_t hole = c->source->sparse && data >= 0 ? lseek(c->source->fd, data, SEEK_HOLE) : (off_t)end;
	const uint64_t unit = kind == DUMP_REGION_LIVE ? sizeof(struct dump_live_record) : 1;

	if (data < 0 && errno == ENXIO)
		return *until = end;
	if (data < (off_t)offset || hole <= data) { /* it cannot tell */
		*until = end;
		return offset;
	}
	uint64_t first = (uint64_t)data < end ? ((uint64_t)data - offset) / unit * unit + offset : end;
	uint64_t last = ((uint64_t)hole - offset + unit - 1) / unit * unit + offset;
	*until = last < end ? last : end;
	return first;
}

static int copy_bytes(struct copy *c, uint64_t offset, uint64_t bytes, uint32_t kind, struct err *e)
{
	uint64_t end = offset + bytes, until;
	int rc = 0;

	for (uint64_t at = offset; at < end && rc == 0; at = until) {
		uint64_t begin = next_extent(c, at, end, kind, &until);
		rc = copy_extent(c, begin, until - begin, kind, e);
	}
	note_progress(c, bytes);
	return rc;
}

/* Of a live table only the records: no reader needs the tags. */
static int copy_region(struct copy *c, const struct dump_region *r, struct err *e)
{
	if (r->kind != DUMP_REGION_LIVE)
		return copy_bytes(c, r->offset, r->bytes, r->kind, e);
	note_progress(c, r->bytes - r->entries * sizeof(struct dump_live_record));
	return copy_bytes(c, r->offset + DUMP_LIVE_RECORDS_AT(r->entries), r->entries * sizeof(struct dump_live_record),
	                  r->kind, e);
}

static bool comes_in_order(uint32_t kind)
{
	return kind == DUMP_REGION_LIVE || kind == DUMP_REGION_HISTORY || kind == DUMP_REGION_STACK_INDEX ||
	       kind == DUMP_REGION_STACKS;
}

/* Regions from number `from` on. kind: DUMP_REGION_NONE stands for all that have no place in the order. */
static int copy_kind(struct copy *c, uint32_t kind, uint32_t from, struct err *e)
{
	const struct dump_header *h = &c->header;
	int rc = 0;

	for (uint32_t i = from; i < h->region_count && rc == 0; i++)
		if (kind == DUMP_REGION_NONE ? !comes_in_order(h->regions[i].kind) : h->regions[i].kind == kind)
			rc = copy_region(c, &h->regions[i], e);
	return rc;
}

/* Until there is no region that came meanwhile; then the counters are those of a moment after the last record. */
static int copy_records(struct copy *c, struct err *e)
{
	uint32_t done = 0;
	int rc = 0;

	while (rc == 0 && done < c->header.region_count) {
		uint32_t from = done;
		done = c->header.region_count;
		rc = copy_kind(c, DUMP_REGION_LIVE, from, e);
		rc = rc ?: copy_kind(c, DUMP_REGION_HISTORY, from, e);
		if (c->source->update)
			c->source->update(c->source, &c->header);
	}
	return rc;
}

static uint64_t file_bytes(const struct dump_header *h)
{
	return h->region_count ? h->regions[h->region_count - 1].offset + h->regions[h->region_count - 1].bytes
	                       : DUMP_HEADER_BYTES;
}

int dump_copy(const struct dump_source *source, int fd, struct err *e)
{
	static const uint32_t rest[] = { DUMP_REGION_STACK_INDEX, DUMP_REGION_STACKS, DUMP_REGION_NONE };
	AUTO_FREE struct copy *c = malloc(sizeof *c);

	if (!c)
		return err_set(e, ENOMEM, "out of memory");
	c->source = source;
	c->header = source->header;
	c->fd = fd;
	int rc = copy_records(c, e);
	for (unsigned i = 0; i < sizeof rest / sizeof rest[0] && rc == 0; i++)
		rc = copy_kind(c, rest[i], 0, e);
	if (rc < 0)
		return rc;
	if (!whole_io_pwrite(fd, &c->header, sizeof c->header, 0) || ftruncate(fd, (off_t)file_bytes(&c->header)) < 0)
		return err_sys(e, "cannot write the dump");
	return 0;
}
