/* SPDX-License-Identifier: MIT */
#include "session/address_space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/stub.h"
#include "process/proc_status.h"
#include "base/size.h"
#include "files/whole_io.h"

#define PAYLOAD_BYTES (8ull << 20) /* image, trampolines, filter, what the loader needs for them */
#define DATA_BYTES                                                                                                     \
	((4ull << 20) + SA_STACK_END)  /* what is writable of these, and the work area of a borrowed thread            \
	                                */
#define DUMP_LEAST (16ull << 20)       /* as --max-size */
#define TABLES_LEAST (4ull << 20)      /* and a quarter of the code: rows take about a seventh */
#define LOAD_LOCKED_BYTES (8ull << 20) /* the loader maps the image as a whole, and parts of it anew */
#define MAPPINGS 24u                   /* the payload's, at most, and a few that are divided for a moment */
#define CAP_IPC_LOCK 14

static uint64_t field(const char *status, const char *name, int base)
{
	return (uint64_t)proc_status_number(status, name, base, 0);
}

/* A soft limit by its name; UINT64_MAX: none, or unknown. */
static uint64_t limit_of(const char *limits, const char *name)
{
	const char *at = strstr(limits, name);
	uint64_t bytes;

	return at && sscanf(at + strlen(name), " %lu", &bytes) == 1 ? bytes : UINT64_MAX;
}

static uint64_t room_below(uint64_t limit, uint64_t used)
{
	return limit == UINT64_MAX ? limit : limit > used ? limit - used : 0;
}

int address_space_share(struct address_space *wish, uint64_t room, uint64_t text_bytes, uint64_t *missing)
{
	uint64_t share = room / 2, wanted = TABLES_LEAST + text_bytes / 4;
	uint64_t tables_least = wanted < wish->tables_bytes ? wanted : wish->tables_bytes,
		 least = PAYLOAD_BYTES + DUMP_LEAST + tables_least;

	if (share >= PAYLOAD_BYTES + wish->dump_bytes + wish->tables_bytes)
		return 0;
	if (share < least) {
		*missing = 2 * least - room;
		return -ENOMEM;
	}
	uint64_t tables = (share - PAYLOAD_BYTES) / 8 > tables_least ? (share - PAYLOAD_BYTES) / 8 : tables_least;
	wish->tables_bytes = tables < wish->tables_bytes ? tables : wish->tables_bytes;
	uint64_t dump = share - PAYLOAD_BYTES - wish->tables_bytes;
	wish->dump_bytes = dump < wish->dump_bytes ? dump : wish->dump_bytes;
	return 0;
}

/*
 * Is all of its memory locked, as mlockall does it? Whether that holds for what it will map cannot be seen. Where
 * RLIMIT_MEMLOCK ends the loader in the middle of its work, glibc leaves a part of the library mapped: so this is asked
 * before.
 */
static int check_locked(const char *status, const char *limits, struct err *e)
{
	uint64_t locked = field(status, "VmLck", 10) * 1024, mapped = field(status, "VmSize", 10) * 1024;
	uint64_t room = room_below(limit_of(limits, "Max locked memory"), locked);
	char left[SIZE_TEXT], needed[SIZE_TEXT];

	if (locked < mapped / 2 || room >= LOAD_LOCKED_BYTES || field(status, "CapEff", 16) >> CAP_IPC_LOCK & 1)
		return 0;
	return err_set(e, ENOMEM,
	               "its memory is locked (mlockall) and RLIMIT_MEMLOCK leaves it %s, while loading the payload "
	               "needs %s for a moment: raise the limit (prlimit --memlock); nothing was changed",
	               size_format((double)room, left), size_format((double)LOAD_LOCKED_BYTES, needed));
}

/* Private writable memory: the payload's own is all of it that stays, and cannot be made smaller. */
static int check_data(const char *status, const char *limits, struct err *e)
{
	uint64_t room = room_below(limit_of(limits, "Max data size"), field(status, "VmData", 10) * 1024);
	char left[SIZE_TEXT], wanted[SIZE_TEXT];

	if (room / 2 >= DATA_BYTES)
		return 0;
	return err_set(e, ENOMEM,
	               "its data is limited (RLIMIT_DATA) and %s are left, of which memattach takes at most half: %s "
	               "more are needed (prlimit --data); nothing was changed",
	               size_format((double)room, left), size_format((double)(2 * DATA_BYTES - room), wanted));
}

static int check_mappings(const struct maps *maps, struct err *e)
{
	char text[32];
	const uint64_t most = whole_io_text("/proc/sys/vm/max_map_count", text, sizeof text) < 0
	                              ? UINT64_MAX
	                              : strtoull(text, NULL, 10);
	const uint64_t left = room_below(most, maps->count);

	if (left / 2 >= MAPPINGS)
		return 0;
	return err_set(e, ENOMEM,
	               "vm.max_map_count leaves it %lu mappings, of which memattach takes at most half: %lu more are "
	               "needed (sysctl); nothing was changed",
	               left, 2 * MAPPINGS - left);
}

static uint64_t text_bytes(const struct session *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->view.modules.count; i++)
		sum += s->view.modules.list[i].exec_end - s->view.modules.list[i].exec_start;
	return sum;
}

int address_space_fit(struct session *s, uint64_t *tables_bytes, struct err *e)
{
	char path[40], status[STATUS_BYTES], limits[4096], left[SIZE_TEXT], text[SIZE_TEXT], wanted[SIZE_TEXT];
	struct address_space wish = { s->options.max_bytes, *tables_bytes };
	uint64_t missing;

	/* What cannot be read is no reason to refuse. */
	if (proc_status_read(status, s->target.tid, 0) < 0)
		return 0;
	snprintf(path, sizeof path, "/proc/%d/limits", s->target.tid);
	if (whole_io_text(path, limits, sizeof limits) < 0)
		return 0;
	int rc = check_locked(status, limits, e);
	rc = rc ?: check_data(status, limits, e);
	rc = rc ?: check_mappings(&s->view.maps, e);
	if (rc < 0)
		return rc;
	uint64_t room = room_below(limit_of(limits, "Max address space"), field(status, "VmSize", 10) * 1024);
	if (address_space_share(&wish, room, text_bytes(s), &missing) < 0)
		return err_set(e, ENOMEM,
		               "its address space is limited (RLIMIT_AS) and %s are left, of which memattach takes at "
		               "most half: %s more are needed (prlimit --as); nothing was changed",
		               size_format((double)room, left), size_format((double)missing, wanted));
	if (wish.dump_bytes < s->options.max_bytes)
		session_say(
			s, "its address space is limited (RLIMIT_AS) and %s are left: the dump will not grow beyond %s",
			size_format((double)room, left), size_format((double)wish.dump_bytes, text));
	s->options.max_bytes = wish.dump_bytes;
	*tables_bytes = wish.tables_bytes;
	return 0;
}
