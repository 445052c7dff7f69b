/* SPDX-License-Identifier: MIT */
#include "allocators/debug_data.h"

#include <lzma.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "host/clocks.h"
#include "host/watchdog.h"
#include "files/whole_io.h"
#include "sandbox/child.h"
#include "sandbox/rights.h"

#define UNPACKED_MAX (64ull << 20)
#define DECODER_MAX (80ull << 20) /* of memory: the largest preset of xz takes 65 MiB to unpack */
#define PIECE_BYTES (64u << 10)
#define CPU_SECONDS 10u
#define CLOCK_PART 4 /* of the time that goes by counts at least: others may want the processor */

/* In the child: from packed to the file. */
static bool unpack(lzma_stream *stream, int file)
{
	static uint8_t piece[PIECE_BYTES];
	uint64_t written = 0;
	lzma_ret ret = LZMA_OK;

	while (ret == LZMA_OK) {
		stream->next_out = piece;
		stream->avail_out = sizeof piece;
		ret = lzma_code(stream, LZMA_FINISH);
		size_t made = sizeof piece - stream->avail_out;
		if (made > UNPACKED_MAX - written || !whole_io_pwrite(file, piece, made, written))
			return false;
		written += made;
	}
	return ret == LZMA_STREAM_END && written > 0;
}

static _Noreturn void be_child(const uint8_t *packed, size_t bytes, int file)
{
	lzma_stream stream = LZMA_STREAM_INIT;

	rights_drop_to_compute(&file, 1, DECODER_MAX + (16u << 20), CPU_SECONDS);
	stream.next_in = packed;
	stream.avail_in = bytes;
	_exit(lzma_stream_decoder(&stream, DECODER_MAX, 0) == LZMA_OK && unpack(&stream, file) ? 0 : 1);
}

struct wait {
	uint64_t since_ns, left_ns;
};

static uint64_t used_ns(const struct rusage *use, uint64_t since_ns)
{
	const uint64_t cpu_ns = (uint64_t)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) * 1000000000u +
	                        (uint64_t)(use->ru_utime.tv_usec + use->ru_stime.tv_usec) * 1000u;
	const uint64_t passed_ns = (clock_monotonic_ns() - since_ns) / CLOCK_PART;

	return cpu_ns > passed_ns ? cpu_ns : passed_ns;
}

static bool may_go_on(void *context)
{
	const struct wait *w = context;

	return !watchdog_asked() && (clock_monotonic_ns() - w->since_ns) / CLOCK_PART < w->left_ns;
}

/* Did it end well? It is ended when somebody asks memattach to end, and when the time is over, even if somebody has
 * stopped it. */
static bool wait_for(pid_t child, uint64_t *left_ns)
{
	struct wait w = { .since_ns = clock_monotonic_ns(), .left_ns = *left_ns };
	struct rusage use = { 0 };

	int status = child_await(child, may_go_on, &w, &use);
	const uint64_t used = used_ns(&use, w.since_ns);
	*left_ns -= used < *left_ns ? used : *left_ns;
	return status == 0;
}

int debug_data_unpack(const uint8_t *packed, size_t bytes, struct budget *budget)
{
	uint64_t most_ns = BUDGET_CHILDREN_NS, *left_ns = budget ? &budget->children_ns : &most_ns;
	AUTO_CLOSE int file = memfd_create("memattach-names", MFD_CLOEXEC);

	if (file < 0 || !*left_ns || watchdog_asked())
		return -1;
	pid_t child = child_start(SIGKILL);
	if (child == 0)
		be_child(packed, bytes, file);
	return child > 0 && wait_for(child, left_ns) ? cleanup_steal_fd(&file) : -1;
}
