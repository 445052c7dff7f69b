/* SPDX-License-Identifier: MIT */
#include "process/target_read.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "process/task.h"
#include "host/watchdog.h"

#define PIECES_PER_CALL 1024u /* IOV_MAX */
#define CALL_COST 1024u       /* units of the budget: as long as copying so many bytes */
#define PIECE_COST 64u

int target_memory_open(struct target_memory *tm, pid_t pid, struct err *e)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		if (errno == ENOENT)
			return err_set(e, ESRCH, "no process or thread %d", (int)pid);
		return err_sys(e, "cannot open %s", path);
	}
	*tm = (struct target_memory){ .pid = pid, .mem_fd = fd };
	return 0;
}

pid_t target_memory_thread(const struct target_memory *tm)
{
	return tm->process ? task_alive(tm->process) : tm->pid;
}

void target_memory_close(struct target_memory *tm)
{
	if (tm->mem_fd >= 0)
		close(tm->mem_fd);
	tm->mem_fd = -1;
}

/* -1: it cannot be read so. */
static ssize_t read_vectors(const struct target_memory *tm, const struct iovec *local, const struct iovec *remote,
                            size_t count)
{
	if (!tm->pid) {
		errno = EFAULT;
		return -1;
	}
	watchdog_call_begin();
	ssize_t n = process_vm_readv(tm->pid, local, count, remote, count, 0);
	watchdog_call_end();
	return n;
}

/* Reads as much as /proc/PID/mem gives from the start; the count. */
static size_t read_mem_file(const struct target_memory *tm, uint64_t address, char *buffer, size_t bytes)
{
	size_t done = 0;

	if (tm->mem_fd < 0 || address > INT64_MAX)
		return 0;
	while (done < bytes) {
		watchdog_call_begin();
		ssize_t n = pread(tm->mem_fd, buffer + done, bytes - done, (off_t)(address + done));
		watchdog_call_end();
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

/* Reads what can be read from the start; the count, less than bytes with errno set. */
static size_t read_some(const struct target_memory *tm, uint64_t address, char *buffer, size_t bytes)
{
	size_t done = read_mem_file(tm, address, buffer, bytes);

	while (done < bytes) {
		struct iovec local = { buffer + done, bytes - done };
		struct iovec remote = { (void *)(uintptr_t)(address + done), bytes - done };
		ssize_t n = read_vectors(tm, &local, &remote, 1);
		if (n <= 0) {
			errno = n < 0 ? errno : EFAULT;
			break;
		}
		done += (size_t)n;
	}
	return done;
}

int target_read(const struct target_memory *tm, uint64_t address, void *buffer, size_t bytes, struct err *e)
{
	if (bytes == 0)
		return 0;
	int rc = budget_work(tm->budget, bytes + CALL_COST, e);
	if (rc < 0)
		return rc;
	errno = 0;
	if (address + bytes < address || read_some(tm, address, buffer, bytes) != bytes) {
		if (errno == 0)
			errno = EFAULT;
		return err_sys(e, "cannot read %zu bytes at 0x%" PRIx64 " of process %d", bytes, address, (int)tm->pid);
	}
	return 0;
}

int target_read_u64(const struct target_memory *tm, uint64_t address, uint64_t *value, struct err *e)
{
	uint64_t word;
	int r = target_read(tm, address, &word, sizeof word, e);

	if (r == 0)
		*value = word;
	return r;
}

int target_read_string(const struct target_memory *tm, uint64_t address, char *buffer, size_t size, struct err *e)
{
	size_t done = 0;

	/* Page by page, so that a string at the end of a mapping is read. */
	while (done < size) {
		uint64_t at = address + done;
		size_t chunk = 4096 - (size_t)(at & 4095);

		if (chunk > size - done)
			chunk = size - done;
		if (chunk > 256)
			chunk = 256;
		int r = target_read(tm, at, buffer + done, chunk, e);
		if (r)
			return r;
		if (memchr(buffer + done, 0, chunk))
			return 0;
		done += chunk;
	}
	return err_set(e, ENAMETOOLONG, "no string of less than %zu bytes at 0x%" PRIx64, size, address);
}

/* A partial result would not tell which piece has failed. */
static int read_each(const struct target_memory *tm, const struct target_piece *pieces, size_t count, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = target_read(tm, pieces[i].address, pieces[i].buffer, pieces[i].bytes, e);
	return rc;
}

int target_read_batch(const struct target_memory *tm, const struct target_piece *pieces, size_t count, struct err *e)
{
	struct iovec local[PIECES_PER_CALL], remote[PIECES_PER_CALL];

	while (count > 0) {
		const size_t n = count < PIECES_PER_CALL ? count : PIECES_PER_CALL;
		size_t total = 0;
		int rc = 0;

		for (size_t i = 0; i < n; i++) {
			local[i] = (struct iovec){ pieces[i].buffer, pieces[i].bytes };
			remote[i] = (struct iovec){ (void *)(uintptr_t)pieces[i].address, pieces[i].bytes };
			total += pieces[i].bytes;
		}
		if (tm->mem_fd < 0)
			rc = budget_work(tm->budget, total + CALL_COST + n * PIECE_COST, e);
		if (rc == 0 && (tm->mem_fd >= 0 || read_vectors(tm, local, remote, n) != (ssize_t)total))
			rc = read_each(tm, pieces, n, e);
		if (rc < 0)
			return rc;
		pieces += n;
		count -= n;
	}
	return 0;
}
