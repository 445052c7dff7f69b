/* SPDX-License-Identifier: MIT */
#include "maps/maps_at.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "host/watchdog.h"
#include "base/order.h"

/* struct procmap_query of <linux/fs.h>, which is younger than the headers of some distributions. */
struct query {
	uint64_t size;
	uint64_t flags;
	uint64_t address;
	uint64_t start;
	uint64_t end;
	uint64_t protection;
	uint64_t page_bytes;
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t name_bytes;
	uint32_t build_id_bytes;
	uint64_t name;
	uint64_t build_id;
};

#define QUERY _IOWR('f', 17, struct query)
#define QUERY_READABLE 1u
#define QUERY_WRITABLE 2u
#define QUERY_EXECUTABLE 4u
#define QUERY_SHARED 8u

/* 1: found; 0: nothing is mapped there. */
static int ask(int fd, uint64_t address, struct mapping *m, struct err *e)
{
	struct query q = { .size = sizeof q, .address = address };

	if (ioctl(fd, QUERY, &q) < 0)
		return errno == ENOENT
		               ? 0
		               : err_sys(e, "cannot ask for the mapping at 0x%llx", (unsigned long long)address);
	*m = (struct mapping){
		.start = q.start,
		.end = q.end,
		.offset = q.offset,
		.inode = q.inode,
		.dev_major = q.dev_major,
		.dev_minor = q.dev_minor,
		.prot = (q.protection & QUERY_READABLE ? PROT_READ : 0u) |
		        (q.protection & QUERY_WRITABLE ? PROT_WRITE : 0u) |
		        (q.protection & QUERY_EXECUTABLE ? PROT_EXEC : 0u),
		.shared = q.protection & QUERY_SHARED,
		.path = "",
	};
	return 1;
}

ORDER_BY(by_start, struct mapping, start);

/* False: two answers contradict each other, because the program changed its mappings in between. */
static bool sort(struct maps *m)
{
	size_t used = 0;

	qsort(m->list, m->count, sizeof *m->list, by_start);
	for (size_t i = 0; i < m->count; i++) {
		if (used && m->list[i].start < m->list[used - 1].end) {
			if (m->list[i].start != m->list[used - 1].start || m->list[i].end != m->list[used - 1].end)
				return false;
			continue;
		}
		m->list[used++] = m->list[i];
	}
	m->count = used;
	return true;
}

/* *whole: it has to be read as a whole. */
static int query_all(struct maps *m, int fd, const uint64_t *addresses, size_t count, bool *whole, struct err *e)
{
	m->list = calloc(count + 1, sizeof *m->list);
	if (!m->list)
		return err_set(e, ENOMEM, "no memory for the list of mappings");
	for (size_t i = 0; i < count; i++) {
		const struct mapping *last = m->count ? &m->list[m->count - 1] : NULL;
		if (last && addresses[i] >= last->start && addresses[i] < last->end)
			continue;
		int found = ask(fd, addresses[i], &m->list[m->count], e);
		*whole = found == -ENOTTY || found == -EINVAL;
		if (found < 0)
			return *whole ? 0 : found;
		m->count += (size_t)found;
	}
	*whole = !sort(m);
	return 0;
}

int maps_at_read(struct maps *m, const char *file, const uint64_t *addresses, size_t count, struct err *e)
{
	struct maps out = { 0 };
	bool whole = false;
	watchdog_call_begin(); /* an execve keeps it waiting */
	AUTO_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC);
	watchdog_call_end();

	if (fd < 0)
		return errno == ENOENT ? err_set(e, ESRCH, "no %s: the process or thread is gone", file)
		                       : err_sys(e, "cannot open %s", file);
	int rc = query_all(&out, fd, addresses, count, &whole, e);
	if (rc < 0 || whole) {
		maps_free(&out);
		return rc < 0 ? rc : maps_read(m, file, e);
	}
	*m = out;
	return 0;
}
