/* SPDX-License-Identifier: MIT */
#include "process/clones/clone_prospect.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/order.h"
#include "base/size.h"
#include "base/sorted.h"
#include "files/whole_io.h"
#include "process/live_thread.h"
#include "process/memory_room.h"
#include "process/proc_status.h"
#include "process/clones/task_room.h"

#define SMALL_GIB_NS 45000000ull /* a GiB of pages of 4 KiB took 35 ms */
#define HUGE_GIB_NS 2000000ull
#define MAPPING_NS 4000ull     /* 60 000 of them took 0.2 to 0.4 s */
#define HUGE_FEW (64ull << 20) /* that may be split */
#define ROOM_LEAST (64ull << 20)
#define ROOM_PART 4u /* of what is private */

/* Before, pages that are in a device's hands are not copied at once, and the program's may become others. */
static bool copies_pinned_pages(void)
{
	struct utsname kernel;
	unsigned major = 0, minor = 0;

	return uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 12));
}

/* It would be told of the clone, whose end is none of its business. */
static bool waits_for_any_kind(const struct blocked_call *call)
{
	const bool waits = call->number == SYS_wait4 || call->number == SYS_waitid;

	return waits && call->arguments[call->number == SYS_wait4 ? 2 : 3] & ((uint32_t)__WALL | (uint32_t)__WCLONE);
}

static int check_threads(const struct target *t, struct err *e)
{
	AUTO_FREE struct thread_info *threads = NULL;
	size_t count = 0;

	int rc = target_threads(t, &threads, &count, e);
	for (size_t i = 0; i < count && rc == 0; i++)
		if (threads[i].filtered || threads[i].strict)
			rc = err_set(e, ENOTSUP, "its system calls are filtered (seccomp)");
		else if (waits_for_any_kind(&threads[i].call))
			rc = err_set(e, ENOTSUP, "thread %d waits for children of any kind (__WALL)", threads[i].tid);
	return rc;
}

static bool machine_does_not_overcommit(void)
{
	char text[16];

	return whole_io_text("/proc/sys/vm/overcommit_memory", text, sizeof text) == 0 && text[0] == '2';
}

static bool same_link(pid_t pid, pid_t tid, const char *one, const char *other)
{
	const char *names[2] = { one, other };
	char path[80], link[2][64] = { "", "" };

	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "/proc/%d/task/%d/ns/%s", pid, tid, names[i]);
		if (readlink(path, link[i], sizeof link[i] - 1) < 0)
			return false;
	}
	return !strcmp(link[0], link[1]);
}

/* A debugger, say. It looks for children of any kind, if only now and then (WNOHANG). */
static int check_tracees(const struct target *t, struct err *e)
{
	AUTO_FREE pid_t *tids = NULL;
	char status[STATUS_BYTES];
	size_t count = 0;

	int rc = target_tids(t, &tids, &count, e);
	DIR *dir = rc == 0 ? opendir("/proc") : NULL;
	for (struct dirent *entry; rc == 0 && dir && (entry = readdir(dir));) {
		const pid_t pid = (pid_t)atoi(entry->d_name);
		const int64_t tracer = pid > 0 && proc_status_read(status, pid, 0) == 0
		                               ? proc_status_number(status, "TracerPid", 10, 0)
		                               : 0;
		for (size_t i = 0; i < count && tracer && rc == 0; i++)
			if (tids[i] == tracer)
				rc = err_set(e, ENOTSUP, "it traces process %d, and may wait for children of any kind",
				             pid);
	}
	if (dir)
		closedir(dir);
	return rc;
}

/* Of any of its threads. */
static int check_namespaces(const struct target *t, struct err *e)
{
	AUTO_FREE pid_t *tids = NULL;
	size_t count = 0;

	int rc = target_tids(t, &tids, &count, e);
	for (size_t i = 0; i < count && rc == 0; i++)
		if (!same_link(t->pid, tids[i], "pid", "pid_for_children") && !thread_has_ended(t->pid, tids[i]))
			rc = err_set(e, ENOTSUP, "its children are in a namespace of processes of their own");
	return rc;
}

static int check_status(const struct target *t, struct err *e)
{
	char status[STATUS_BYTES];

	if (!copies_pinned_pages())
		return err_set(e, ENOTSUP, "this kernel is older than Linux 5.12");
	if (machine_does_not_overcommit())
		return err_set(e, ENOTSUP, "this machine promises no more memory than it has (vm.overcommit_memory)");
	if (proc_status_read(status, t->pid, t->tid) == 0 && proc_status_number(status, "VmPin", 10, 0) > 0)
		return err_set(e, ENOTSUP, "devices have parts of its memory (VmPin)");
	return 0;
}

static bool has_flag(const char *flags, const char *flag)
{
	const char *at = strstr(flags, flag);

	return at && (at[2] == ' ' || at[2] == '\n') && at[-1] == ' ';
}

/* A line "VmFlags: rd wr …" of a mapping. */
static int look_at_flags(struct clone_prospect *p, const struct apart_range *mapping, bool of_kernel, const char *flags,
                         struct err *e)
{
	const bool dropped = has_flag(flags, "dc");

	if (has_flag(flags, "um") || has_flag(flags, "uw") || has_flag(flags, "ui"))
		return err_set(e, ENOTSUP, "a userfaultfd has parts of its memory");
	if (!dropped && !of_kernel && (has_flag(flags, "io") || has_flag(flags, "pf")))
		return err_set(e, ENOTSUP, "it has mapped memory of a device");
	if (!dropped && !has_flag(flags, "wf"))
		return 0;
	if (!grow_list(p->apart, p->apart_count))
		return err_set(e, ENOMEM, "out of memory");
	p->apart[p->apart_count++] = *mapping;
	return 0;
}

/* What O_DIRECT reads into is only pinned since Linux 6.5, and not by all file systems: where it is not, the first of
 * the two who writes to the page gets another one. A thread that waits for such a read does not come to a stop before;
 * these do not wait. */
static bool has_queue_of_io(const char *mapping)
{
	return strstr(mapping, " /[aio]") || strstr(mapping, "anon_inode:[io_uring]");
}

static int read_smaps(struct clone_prospect *p, FILE *file, struct err *e)
{
	struct apart_range mapping = { 0 };
	bool of_kernel = false;
	char *line = NULL;
	size_t size = 0;
	int rc = 0;

	while (rc == 0 && getline(&line, &size, file) >= 0) {
		unsigned long long start, end;
		if (sscanf(line, "%llx-%llx ", &start, &end) == 2) {
			mapping = (struct apart_range){ start, end };
			of_kernel = strstr(line, " [v");
			p->mappings++;
			if (has_queue_of_io(line))
				rc = err_set(e, ENOTSUP, "the kernel may be reading into its memory (AIO, io_uring)");
		} else if (!strncmp(line, "AnonHugePages:", 14)) {
			p->huge_bytes += strtoull(line + 14, NULL, 10) * 1024;
		} else if (!strncmp(line, "VmFlags:", 8)) {
			rc = look_at_flags(p, &mapping, of_kernel, line + 7, e);
		}
	}
	free(line);
	return rc;
}

ORDER_BY(compare, struct apart_range, start);

void clone_prospect_sort(struct clone_prospect *p)
{
	size_t kept = 0;

	if (p->apart_count)
		qsort(p->apart, p->apart_count, sizeof *p->apart, compare);
	for (size_t i = 0; i < p->apart_count; i++) {
		struct apart_range *last = kept ? &p->apart[kept - 1] : NULL;
		if (!last || last->end <= p->apart[i].start)
			p->apart[kept++] = p->apart[i];
		else if (last->end < p->apart[i].end)
			last->end = p->apart[i].end;
	}
	p->apart_count = kept;
}

static int look_at_mappings(struct clone_prospect *p, const struct target *t, struct err *e)
{
	int fd = -1;

	int rc = live_thread_open(t, "smaps", &fd, e);
	if (rc < 0)
		return rc;
	FILE *file = fdopen(fd, "r");
	if (!file) {
		close(fd);
		return err_set(e, ENOMEM, "out of memory");
	}
	rc = read_smaps(p, file, e);
	fclose(file);
	clone_prospect_sort(p);
	return rc;
}

bool clone_prospect_has_room(const struct clone_prospect *p, const struct target *t)
{
	return memory_room_of(t->pid) >= p->room_bytes && memory_room_of_machine() >= p->room_bytes;
}

/* Of what both have, each page that one writes is copied: a part of it until the clone was read. Where memory runs out
 * the clone is ended alone, if its group is not. */
static int look_at_room(struct clone_prospect *p, const struct target *t, struct err *e)
{
	const uint64_t private = target_private_bytes(t);
	const unsigned part = memory_room_ends_all(t->pid) ? 1 : ROOM_PART;
	struct clone_prospect wanted = { .room_bytes = ROOM_LEAST + private / part };

	p->small_bytes = private > p->huge_bytes ? private - p->huge_bytes : 0;
	p->room_bytes = wanted.room_bytes / 2;
	if (!clone_prospect_has_room(&wanted, t))
		return err_set(e, ENOTSUP, "too little memory is left for what it writes meanwhile");
	return task_room_is_ample(t->pid)
	               ? 0
	               : err_set(e, ENOTSUP, "it may have hardly any more processes (pids.max, RLIMIT_NPROC)");
}

static int check_huge(const struct clone_prospect *p, struct err *e)
{
	char bytes[SIZE_TEXT];

	return p->huge_bytes <= HUGE_FEW
	               ? 0
	               : err_set(e, ENOTSUP, "%s of it is in huge pages, which its writes would split (--clone)",
	                         size_format((double)p->huge_bytes, bytes));
}

int clone_prospect_look(struct clone_prospect *p, const struct target *t, bool splits, struct err *e)
{
	*p = (struct clone_prospect){ 0 };
	int rc = check_status(t, e);
	rc = rc ?: check_threads(t, e);
	rc = rc ?: check_tracees(t, e);
	rc = rc ?: check_namespaces(t, e);
	rc = rc ?: look_at_mappings(p, t, e);
	if (!splits)
		rc = rc ?: check_huge(p, e);
	return rc ?: look_at_room(p, t, e);
}

void clone_prospect_free(struct clone_prospect *p)
{
	free(p->apart);
	*p = (struct clone_prospect){ 0 };
}

bool clone_prospect_keeps(const struct clone_prospect *p, uint64_t start, uint64_t end)
{
	const size_t i = SORTED_UP_TO(p->apart, p->apart_count, end, start);

	return i == p->apart_count || p->apart[i].start >= end;
}

int clone_prospect_add_wiped(struct clone_prospect *p, const struct target *clone, bool *added, struct err *e)
{
	struct clone_prospect has = { 0 };

	*added = false;
	int rc = look_at_mappings(&has, clone, e);
	const size_t known = p->apart_count;
	for (size_t i = 0; i < has.apart_count && rc == 0; i++) {
		const struct clone_prospect before = { .apart = p->apart, .apart_count = known };
		if (!clone_prospect_keeps(&before, has.apart[i].start, has.apart[i].end))
			continue;
		*added = true;
		if (!grow_list(p->apart, p->apart_count))
			rc = err_set(e, ENOMEM, "out of memory");
		else
			p->apart[p->apart_count++] = has.apart[i];
	}
	clone_prospect_sort(p);
	clone_prospect_free(&has);
	return rc;
}

uint64_t clone_prospect_expected_ns(const struct clone_prospect *p)
{
	const double gib = 1ull << 30;

	return (uint64_t)((double)p->small_bytes / gib * SMALL_GIB_NS + (double)p->huge_bytes / gib * HUGE_GIB_NS) +
	       p->mappings * MAPPING_NS;
}
