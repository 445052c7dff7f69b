/* SPDX-License-Identifier: MIT */
#include "touch/patches/target_dump.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "dump_format.h"
#include "host/watchdog.h"

#define PIECE_BYTES (64ull << 20)

/* The header of the session's dump, to be freed, or NULL: that is not what is mapped there. */
static struct dump_header *read_header(const struct target_dump *d)
{
	const struct memattach_session *block = d->block;
	const struct mapping *m = maps_find(d->maps, block->dump_address);
	struct dump_header *h = malloc(sizeof *h);

	if (h && m && m->shared && m->start == block->dump_address && m->end - m->start == block->dump_bytes &&
	    target_read(d->memory, block->dump_address, h, sizeof *h, ERR_IGNORED) == 0 &&
	    memcmp(h->magic, DUMP_MAGIC, sizeof h->magic) == 0 && h->session_id == block->session_id)
		return h;
	free(h);
	return NULL;
}

/* What a reader and the recorder take for one instant. */
struct lease {
	uint64_t stamp;
	uint64_t realtime_ns;
};

_Static_assert(offsetof(struct dump_header, lease_realtime_ns) ==
                       offsetof(struct dump_header, lease_stamp) + offsetof(struct lease, realtime_ns),
               "lease");

int target_dump_end_lease(const struct target_dump *d, const struct target_writer *writer, struct err *e)
{
	AUTO_FREE struct dump_header *h = read_header(d);
	struct dump_clock now = clock_dump_now();
	const struct lease ended = { .stamp = now.stamp, .realtime_ns = now.realtime_ns };

	if (!h || (h->lease_stamp && h->lease_stamp <= now.stamp))
		return 0;
	return target_write(writer, CHANGE_RECORDING,
	                    d->block->dump_address + offsetof(struct dump_header, lease_stamp), &ended, sizeof ended,
	                    e);
}

bool target_dump_is_of_another(const struct target_dump *d, uint64_t start_ticks)
{
	AUTO_FREE struct dump_header *h = read_header(d);

	return h && h->target_start_ticks != start_ticks;
}

struct remote_dump {
	const struct target_memory *memory;
	uint64_t address;
};

static int read_remote(const struct dump_source *source, uint64_t offset, void *buffer, size_t bytes, struct err *e)
{
	const struct remote_dump *remote = source->context;

	return target_read(remote->memory, remote->address + offset, buffer, bytes, e);
}

/* The recording ended when its lease did, and the payload has said so, or ends now. */
static void end_recording(struct dump_header *h)
{
	if (h->state != DUMP_STATE_RUNNING)
		return;
	h->state = DUMP_STATE_ABANDONED;
	h->clock_latest = clock_dump_now();
}

int target_dump_save(const struct target_dump *d, uint64_t max_bytes, struct dump_file *file,
                     const struct patience *patience, struct err *e)
{
	const struct remote_dump remote = { d->memory, d->block->dump_address };
	struct dump_source source = { .read = read_remote, .context = &remote, .fd = d->memory->mem_fd };
	AUTO_FREE struct dump_header *h = read_header(d);

	if (!h)
		return err_set(e, ENOENT, "the recording is not mapped any more");
	source.header = *h;
	int rc = dump_source_check(&source, d->block->dump_bytes, e);
	if (rc == 0 && dump_source_bytes(&source) > max_bytes)
		rc = err_set(e, EFBIG, "the recording says that it is larger than --max-size");
	if (rc < 0)
		return rc;
	end_recording(&source.header);
	return dump_file_write(file, &source, patience, e);
}

/* The end of what can have been touched: of the last region. 0: this is not a dump. */
static uint64_t used_bytes(const struct target_dump *d)
{
	AUTO_FREE struct dump_header *h = read_header(d);
	uint64_t end = 0;

	if (!h)
		return 0;
	for (uint32_t i = 0; i < h->region_count && i < DUMP_REGION_MAX; i++)
		if (h->regions[i].offset <= d->block->dump_bytes &&
		    h->regions[i].bytes <= d->block->dump_bytes - h->regions[i].offset &&
		    h->regions[i].offset + h->regions[i].bytes > end)
			end = h->regions[i].offset + h->regions[i].bytes;
	return end;
}

struct piece {
	uint64_t address;
	uint64_t call_ns;
	bool refused; /* by the kernel, for example because the program locks its memory */
};

static int forget(void *context, struct remote *r, struct tracee *t, struct err *e)
{
	struct piece *p = context;
	const uint64_t arguments[6] = { p->address, PIECE_BYTES, MADV_DONTNEED };
	const uint64_t deadline = clock_monotonic_ns() + p->call_ns;
	uint64_t result = 0;

	int rc = remote_call1(r, SYS_madvise, arguments, &result, deadline, e);
	rc = rc ?: remote_leave(r, deadline, e);
	p->refused = result != 0;
	if (rc == 0) {
		tracee_detach(t);
		return 0;
	}
	remote_abandon(r);
	return rc == -ESRCH ? rc : -EINPROGRESS;
}

int target_dump_forget(const struct target_dump *d, const struct borrower *b, struct err *e)
{
	uint64_t end = used_bytes(d);
	struct piece piece = { .call_ns = b->call_ns };
	int rc = 0;

	/* No dump is larger than a reference can reach; a target may say so of anything that it has mapped. */
	if (end > DUMP_BYTES_MAX)
		return 0;
	for (uint64_t at = 0; rc == 0 && !piece.refused && end - at > PIECE_BYTES && !watchdog_asked_twice();
	     at += PIECE_BYTES) {
		piece.address = d->block->dump_address + at;
		rc = borrow_thread(b, forget, &piece, e);
	}
	return rc;
}
