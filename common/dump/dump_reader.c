/* SPDX-License-Identifier: MIT */
/* Opens a dump: header, region table, clock, end of the session. */
#include "dump/dump_internal.h"
#include "base/now.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "files/regular_file.h"

/* The least that makes a header: without one region descriptor there is nothing to report. */
#define HEADER_MIN_BYTES offsetof(struct dump_header, regions)
#define LEASE_READS 16

size_t dump_read(struct dump *dump, uint64_t offset, void *buffer, size_t length)
{
	size_t done = 0;

	if (offset > INT64_MAX - length)
		return 0;
	while (done < length) {
		ssize_t n = pread(dump->fd, (char *)buffer + done, length - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			dump_skip(dump, n < 0 ? DUMP_SKIP_read_error : DUMP_SKIP_short_file);
			break;
		}
		done += (size_t)n;
	}
	return done;
}

static int check_header(const struct dump_header *h, size_t got, struct err *e)
{
	if (!got)
		return err_set(e, EPROTO, "it is empty: a memattach that is about to begin has written nothing yet");
	if (got < sizeof h->magic || memcmp(h->magic, DUMP_MAGIC, sizeof h->magic))
		return err_set(e, EPROTO, "not a dump of memattach");
	if (got < HEADER_MIN_BYTES)
		return err_set(e, EPROTO, "the dump is cut off within its header: nothing in it can be read");
	if (h->version > DUMP_VERSION)
		return err_set(e, ENOTSUP, "made by a newer memattach (format %u, this is %u)", h->version,
		               DUMP_VERSION);
	if (h->features & ~DUMP_FEATURES_KNOWN)
		return err_set(e, ENOTSUP, "made by a newer memattach (unknown features 0x%llx)",
		               (unsigned long long)(h->features & ~DUMP_FEATURES_KNOWN));
	if (h->version && h->version < DUMP_VERSION)
		return err_set(e, ENOTSUP,
		               "made by an older memattach (format %u, this is %u): its own memanalyze reads it",
		               h->version, DUMP_VERSION);
	if (h->version != DUMP_VERSION || h->header_bytes != DUMP_HEADER_BYTES)
		return err_set(e, EPROTO, "the header of the dump is damaged");
	return 0;
}

/* clock_latest is guarded by lease_sequence: odd while it changes. */
static void read_lease(struct dump *dump)
{
	struct dump_header *h = &dump->header;

	for (int i = 0; i < LEASE_READS; i++) {
		uint32_t before, after;
		struct dump_clock clock;
		if (dump_read(dump, offsetof(struct dump_header, lease_sequence), &before, sizeof before) !=
		            sizeof before ||
		    dump_read(dump, offsetof(struct dump_header, clock_latest), &clock, sizeof clock) != sizeof clock ||
		    dump_read(dump, offsetof(struct dump_header, lease_sequence), &after, sizeof after) != sizeof after)
			return;
		if (before == after && !(before & 1)) {
			h->clock_latest = clock;
			return;
		}
	}
	/* A writer that died half-way leaves it odd for good. The start is always whole. */
	if (h->clock_latest.monotonic_ns < h->clock_start.monotonic_ns)
		h->clock_latest = h->clock_start;
}

/* Makes the copy of the header safe to use as it is. */
static void repair_header(struct dump *dump)
{
	struct dump_header *h = &dump->header;
	bool begun = h->state != DUMP_STATE_PREPARING;

	h->command[sizeof h->command - 1] = 0;
	h->program[sizeof h->program - 1] = 0;
	h->host[sizeof h->host - 1] = 0;
	if (!h->rate_bytes || h->rate_bytes > DUMP_SIZE_LIMIT) {
		h->rate_bytes = 1;
		if (begun)
			dump_skip(dump, DUMP_SKIP_header);
	}
	if (!h->first_rate_bytes || h->first_rate_bytes > DUMP_SIZE_LIMIT) {
		h->first_rate_bytes = h->rate_bytes;
		if (begun)
			dump_skip(dump, DUMP_SKIP_header);
	}
	if (h->region_count > DUMP_REGION_MAX) {
		h->region_count = DUMP_REGION_MAX;
		dump_skip(dump, DUMP_SKIP_header);
	}
}

static uint64_t entry_bytes(uint32_t kind)
{
	switch (kind) {
	case DUMP_REGION_LIVE: return DUMP_LIVE_ENTRY_BYTES;
	case DUMP_REGION_STACK_INDEX: return DUMP_INDEX_ENTRY_BYTES;
	case DUMP_REGION_HISTORY: return DUMP_HISTORY_BLOCK_BYTES;
	default: return 0;
	}
}

static bool region_holds_together(const struct dump_region *r)
{
	if (r->kind < DUMP_REGION_LIVE)
		return false;
	if (r->offset % DUMP_REGION_ALIGN || r->bytes % DUMP_REGION_ALIGN || r->offset < DUMP_HEADER_BYTES)
		return false;
	if (!r->bytes || r->offset > INT64_MAX || r->bytes > INT64_MAX - r->offset)
		return false;
	uint64_t each = entry_bytes(r->kind);
	if (!each)
		return true;
	if (!r->entries || r->entries > r->bytes / each)
		return false;
	return r->kind == DUMP_REGION_HISTORY || (r->entries >= DUMP_BUCKET && !(r->entries & (r->entries - 1)));
}

/* Keeps the regions that hold together, lie in the file at least in part, and overlap none that was kept before. One of
 * a later kind is kept like the others; nothing asks for it. */
static void check_regions(struct dump *dump, size_t got)
{
	size_t have = (got - HEADER_MIN_BYTES) / sizeof(struct dump_region);

	if (dump->header.region_count > have)
		dump_skip(dump, DUMP_SKIP_short_file);
	for (uint32_t i = 0; i < dump->header.region_count && i < have; i++) {
		const struct dump_region *r = &dump->header.regions[i];
		bool good = region_holds_together(r);
		for (uint32_t k = 0; good && k < dump->region_count; k++) {
			const struct dump_region *o = &dump->regions[k];
			good = r->offset >= o->offset + o->bytes || o->offset >= r->offset + r->bytes;
		}
		if (!good) {
			dump_skip(dump, DUMP_SKIP_region);
			continue;
		}
		if (r->offset + r->bytes > dump->file_bytes)
			dump_skip(dump, DUMP_SKIP_short_file);
		if (r->offset < dump->file_bytes)
			dump->regions[dump->region_count++] = *r;
	}
}

static enum dump_end find_end(const struct dump_header *h)
{
	switch (h->state) {
	case DUMP_STATE_DETACHED: return DUMP_END_DETACHED;
	case DUMP_STATE_EXITED:
	case DUMP_STATE_EXECED: return DUMP_END_EXITED;
	case DUMP_STATE_KILLED: return DUMP_END_KILLED;
	case DUMP_STATE_ABANDONED: return DUMP_END_ABANDONED;
	default: break;
	}
	/* Nobody renews the lease any more: memattach and the target are gone, or memattach is and the target
	 * did not sample since. */
	if (h->lease_realtime_ns && h->lease_realtime_ns < now_ns(CLOCK_REALTIME))
		return DUMP_END_ABANDONED;
	return DUMP_END_RUNNING;
}

int dump_open_fd(int fd, struct dump **out, struct err *e)
{
	struct stat st;
	AUTO_FREE struct dump *dump = calloc(1, sizeof *dump);

	if (!dump)
		return err_set(e, ENOMEM, "out of memory");
	dump->fd = fd;
	if (fstat(fd, &st))
		return err_sys(e, "cannot read");
	if (S_ISDIR(st.st_mode))
		return err_set(e, EISDIR, "is a directory");
	size_t want = sizeof dump->header;
	size_t got = dump_read(dump, 0, &dump->header, want);
	if (dump->skipped[DUMP_SKIP_read_error])
		return err_set(e, S_ISREG(st.st_mode) ? EIO : ESPIPE,
		               S_ISREG(st.st_mode) ? "cannot read" : "not a regular file");
	int r = check_header(&dump->header, got, e);
	if (r)
		return r;
	/* Regions are published after the file has grown, so its size now covers every region in our copy. */
	if (fstat(fd, &st))
		return err_sys(e, "cannot read");
	dump->file_bytes = (uint64_t)st.st_size;
	dump->disk_bytes = (uint64_t)st.st_blocks * 512;
	read_lease(dump);
	repair_header(dump);
	check_regions(dump, got);
	if (dump->header.state > DUMP_STATE_EXECED)
		dump_skip(dump, DUMP_SKIP_header);
	dump->end = find_end(&dump->header);
	dump->latest_stamp = dump->header.clock_latest.stamp;
	r = dump_read_thinnings(dump);
	if (r) {
		thinning_index_done(&dump->thinnings);
		return err_set(e, -r, "out of memory");
	}
	*out = dump;
	dump = NULL;
	return 0;
}

int dump_open(const char *path, struct dump **out, struct err *e)
{
	AUTO_CLOSE int fd = regular_file_open(path, e);

	if (fd < 0)
		return fd;
	int r = dump_open_fd(fd, out, e);
	if (r)
		return r;
	(*out)->fd = cleanup_steal_fd(&fd);
	(*out)->owns_fd = true;
	return 0;
}

void dump_close(struct dump *dump)
{
	if (!dump)
		return;
	if (dump->owns_fd)
		close(dump->fd);
	thinning_index_done(&dump->thinnings);
	free(dump);
}

const struct dump_header *dump_header(const struct dump *dump)
{
	return &dump->header;
}

enum dump_end dump_end(const struct dump *dump)
{
	return dump->end;
}

const char *dump_end_name(enum dump_end end)
{
	static const char *const names[] = { [DUMP_END_RUNNING] = "running",
		                             [DUMP_END_DETACHED] = "detached",
		                             [DUMP_END_EXITED] = "exited",
		                             [DUMP_END_KILLED] = "killed",
		                             [DUMP_END_ABANDONED] = "abandoned" };
	return names[end];
}

uint64_t dump_disk_bytes(const struct dump *dump)
{
	return dump->disk_bytes;
}

uint64_t dump_counter(const struct dump *dump, enum dump_counter counter)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < DUMP_COUNTER_SHARDS; i++)
		sum += dump->header.counters[i][counter];
	return sum;
}

uint64_t dump_skipped(const struct dump *dump, enum dump_skip reason)
{
	return dump->skipped[reason];
}

const char *dump_skip_text(enum dump_skip reason)
{
#define DUMP_SKIP_TEXT_(name, text) text,
	static const char *const texts[] = { DUMP_SKIP_LIST(DUMP_SKIP_TEXT_) };
#undef DUMP_SKIP_TEXT_
	return texts[reason];
}

bool dump_complete(const struct dump *dump)
{
	for (int i = 0; i < DUMP_SKIP_COUNT; i++)
		if (dump->skipped[i] && i != DUMP_SKIP_busy)
			return false;
	return true;
}

uint64_t dump_stamp_realtime_ns(const struct dump *dump, uint64_t stamp)
{
	const struct dump_clock *a = &dump->header.clock_start;
	double ns_per_stamp = dump_ns_per_stamp(dump);

	if (!a->realtime_ns || ns_per_stamp <= 0)
		return 0;
	/* The monotonic clock measures, the real-time clock only says when it began: it may be set meanwhile. */
	double passed = (stamp >= a->stamp ? (double)(stamp - a->stamp) : -(double)(a->stamp - stamp)) * ns_per_stamp;
	double ns = (double)a->realtime_ns + passed;
	if (!(ns > 0) || !(ns < 1.8e19) || fabs(passed) > 9e18)
		return 0;
	return a->realtime_ns + (uint64_t)(int64_t)passed; /* the sum of doubles would round to 256 ns */
}

uint64_t dump_stamp_after(const struct dump *dump, uint64_t ns)
{
	const struct dump_clock *a = &dump->header.clock_start;
	double ns_per_stamp = dump_ns_per_stamp(dump);
	double stamps = (double)ns;

	if (ns_per_stamp > 0)
		stamps /= ns_per_stamp;
	return stamps < (double)(UINT64_MAX - a->stamp) * 0.99 ? a->stamp + (uint64_t)stamps : UINT64_MAX - 1;
}
