/* SPDX-License-Identifier: MIT */
#include "debug_data.h"

#include <fcntl.h>
#include <lzma.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "privileges.h"
#include "watchdog.h"
#include "whole_io.h"

#define UNPACKED_MAX (64ull << 20)
#define DECODER_MAX (80ull << 20) /* of memory: the largest preset of xz takes 65 MiB to unpack */
#define PIECE_BYTES (64u << 10)
#define CPU_SECONDS 10u
#define LOOK_MS 100
#define LOOKS_MAX 300

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
		if (made > UNPACKED_MAX - written || !pwrite_all(file, piece, made, written))
			return false;
		written += made;
	}
	return ret == LZMA_STREAM_END && written > 0;
}

static _Noreturn void be_child(const uint8_t *packed, size_t bytes, int file)
{
	lzma_stream stream = LZMA_STREAM_INIT;

	privileges_drop_all(&file, 1, DECODER_MAX + (16u << 20), CPU_SECONDS);
	stream.next_in = packed;
	stream.avail_in = bytes;
	_exit(lzma_stream_decoder(&stream, DECODER_MAX, 0) == LZMA_OK && unpack(&stream, file) ? 0 : 1);
}

/* Did it end well? It is ended when somebody asks memattach to end. */
static bool wait_for(pid_t child)
{
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	int status = 0;

	for (unsigned looks = 1; pidfd >= 0 && poll(&end, 1, LOOK_MS) <= 0; looks++)
		if (watchdog_asked() || looks >= LOOKS_MAX)
			kill(child, SIGKILL);
	while (waitpid(child, &status, __WALL) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int debug_data_unpack(const uint8_t *packed, size_t bytes)
{
	AUTO_CLOSE int file = memfd_create("memattach-names", MFD_CLOEXEC);

	if (file < 0)
		return -1;
	pid_t child = fork();
	if (child == 0)
		be_child(packed, bytes, file);
	return child > 0 && wait_for(child) ? steal_fd(&file) : -1;
}
