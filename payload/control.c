/* SPDX-License-Identifier: MIT */
/*
 * The control functions (include/control.h), run by a thread of the target that memattach has borrowed, one at a time.
 *
 * LOADED -> START -> STARTED -> INERT -> STOPPED -> START …: a payload that was not unloaded yet
 * may begin again with all of its state forgotten, except that trampolines of an earlier session may still be in use:
 * each START maps its own.
 *
 * What a forked child must not find (thread states but the near one, switch; trampoline_setup_map() does the filter) is
 * whole pages of .bss, marked MADV_WIPEONFORK. Those and the unwind cache are zeroed by giving the pages back.
 */
#include <errno.h>
#include <stdbool.h>

#include "control.h"

#include "exponential.h"
#include "tables/filter.h"
#include "trampoline_setup.h"
#include "python/known_code.h"
#include "walk/known_stack.h"
#include "mapping.h"
#include "payload.h"
#include "walk/recent_stack.h"
#include "tables/mappings.h"
#include "tables/regions.h"
#include "sampler.h"
#include "session_block.h"
#include "syscalls.h"
#include "thread_state.h"
#include "walk/rule_cache.h"

struct switch_page {
	uint32_t on;
	uint8_t fill[PAGE_BYTES - sizeof(uint32_t)];
};

struct payload_state payload;
struct switch_page payload_switch_page WIPED_PAGES HIDDEN;
extern uint32_t payload_switch __attribute__((alias("payload_switch_page")));

struct memattach_session session = {
	.magic = CONTROL_MAGIC,
	.version = CONTROL_VERSION,
	.state = SESSION_LOADED,
};
extern struct memattach_session memattach_session __attribute__((alias("session")));

struct pages {
	void *address;
	uint64_t bytes;
};

#define PAGES(object)                                                                                                  \
	{                                                                                                              \
		&(object), sizeof(object)                                                                              \
	}

_Static_assert(sizeof(thread_states) % PAGE_BYTES == 0, "thread_states");
_Static_assert(sizeof(unwind_cache) % PAGE_BYTES == 0, "unwind_cache");
_Static_assert(sizeof(recent_stacks) % PAGE_BYTES == 0, "recent_stacks");
_Static_assert(sizeof(known_codes) % PAGE_BYTES == 0, "known_codes");
_Static_assert(sizeof(struct switch_page) == PAGE_BYTES, "switch_page");

/* Empties the tables; advice is MADV_WIPEONFORK or MADV_KEEPONFORK for those that a forked child must find empty. */
static int64_t tables_reset(int advice)
{
	const struct pages wiped[] = { PAGES(thread_states), PAGES(payload_switch_page) };
	int64_t result = syscall_madvise(unwind_cache, sizeof(unwind_cache), MADV_DONTNEED);

	if (result >= 0)
		result = syscall_madvise(recent_stacks, sizeof(recent_stacks), MADV_DONTNEED);
	if (result >= 0)
		result = syscall_madvise(known_codes, sizeof(known_codes), MADV_DONTNEED);
	for (uint32_t i = 0; i < sizeof(wiped) / sizeof(wiped[0]) && result >= 0; i++) {
		result = syscall_madvise(wiped[i].address, wiped[i].bytes, MADV_DONTNEED);
		if (result >= 0)
			result = syscall_madvise(wiped[i].address, wiped[i].bytes, advice);
	}
	return result;
}

static void files_unmap(void)
{
	struct payload_state gone = payload;

	payload.dump = 0;
	payload.tables = 0;
	if (gone.dump)
		syscall_munmap((uint64_t)gone.dump, gone.dump_bytes);
	if (gone.tables)
		syscall_munmap((uint64_t)gone.tables, gone.tables_bytes);
	session.dump_address = session.dump_bytes = 0;
	session.tables_address = session.tables_bytes = 0;
}

static int64_t file_map(int fd, uint64_t bytes, uint64_t least_bytes, int protection)
{
	int64_t size = syscall_file_size(fd);

	if (size < 0)
		return size;
	if ((uint64_t)size < least_bytes || bytes < least_bytes || bytes % PAGE_BYTES)
		return -EINVAL;
	const int64_t address = mapping_new(0, bytes, protection, MAP_SHARED, fd);
	/* Most of it is never touched: a core of the program that has it would touch and write all of it. */
	if (address >= 0)
		(void)syscall_madvise((const void *)address, bytes, MADV_DONTDUMP);
	return address;
}

static int64_t dump_map(const struct control_start *start)
{
	int64_t address = file_map(start->dump_fd, start->dump_max_bytes, DUMP_HEADER_BYTES, PROT_READ | PROT_WRITE);
	const struct dump_header *header = (const void *)address;

	if (address < 0)
		return address;
	payload.dump = (void *)address;
	payload.dump_bytes = start->dump_max_bytes;
	if (__builtin_memcmp(header->magic, DUMP_MAGIC, sizeof(header->magic)) != 0 ||
	    header->version != DUMP_VERSION || header->header_bytes != DUMP_HEADER_BYTES)
		return -EBADMSG;
	return 0;
}

static int64_t tables_map(const struct control_start *start)
{
	int64_t address = file_map(start->tables_fd, start->tables_max_bytes, sizeof(struct unwind_header), PROT_READ);
	const struct unwind_header *header = (const void *)address;

	if (address < 0)
		return address;
	payload.tables = (void *)address;
	payload.tables_bytes = start->tables_max_bytes;
	return header->magic == UNWIND_MAGIC && header->version == UNWIND_VERSION ? 0 : -EBADMSG;
}

static int start_valid(const struct control_start *start)
{
	bool filter = start->filter_log2 == FILTER_NONE ||
	              (start->filter_log2 >= FILTER_LOG2_MIN && start->filter_log2 <= FILTER_LOG2_MAX);

	return filter && start->rate_bytes && start->rate_bytes <= UINT32_MAX && start->seed &&
	       start->dump_max_bytes <= DUMP_BYTES_MAX;
}

static struct got_entry session_entries[SESSION_ENTRY_MAX] PAYLOAD_PAGES;
static struct code_patch session_code_patches[SESSION_CODE_PATCH_MAX] PAYLOAD_PAGES;

static void patches_forget(void)
{
	session.entry_count = 0;
	session.entries_address = (uint64_t)session_entries;
	session.code_patches_address = (uint64_t)session_code_patches;
	__builtin_memset(session_code_patches, 0, sizeof(session_code_patches));
	__builtin_memset(session.detours, 0, sizeof(session.detours));
}

static void session_fill(const struct control_start *start)
{
	session.session_id = start->session_id;
	session.dl_handle = start->dl_handle;
	session.dump_address = (uint64_t)payload.dump;
	session.dump_bytes = payload.dump_bytes;
	session.tables_address = (uint64_t)payload.tables;
	session.tables_bytes = payload.tables_bytes;
	session.switch_address = (uint64_t)&payload_switch;
	session.injector_pid = start->injector_pid;
	session.injector_start_ticks = start->injector_start_ticks;
	session.new_code = 0;
	session.python_address = (uint64_t)&payload.python;
	session.has_python_address = (uint64_t)&payload.has_python;
	session.java_address = (uint64_t)&payload.java;
	session.counted_function_address = (uint64_t)&counted_function;
}

static int64_t control_start(const struct control_start *start)
{
	uint64_t random;
	int64_t result;
	bool exact;

	if (session.state != SESSION_LOADED && session.state != SESSION_STOPPED)
		return -EALREADY;
	if (!start || !start_valid(start))
		return -EINVAL;
	exact = start->filter_log2 == FILTER_NONE;
	random = start->seed ^ start->session_id;
	payload = (struct payload_state){
		.rate_bytes = start->rate_bytes,
		.seed = start->seed,
		.usable_size = start->usable_size,
		.tid_offset = start->tid_offset,
		.has_python = start->python.version != 0,
		.python = start->python,
		.java = start->java,
	};
	mapping_unlock_image();
	result = dump_map(start);
	if (result >= 0)
		result = tables_map(start);
	if (result >= 0)
		result = tables_reset(MADV_WIPEONFORK);
	if (result >= 0)
		result = trampoline_setup_map(start->payload_fd, 1u << (exact ? FILTER_LOG2_MIN : start->filter_log2),
		                              exponential_random(&random));
	if (result < 0) {
		tables_reset(MADV_KEEPONFORK);
		files_unmap();
		return result;
	}
	if (exact)
		filter_make_exact();
	known_code_end();
	sampler_init();
	known_stacks_init(start->main_stack_start, start->main_stack_end, start->main_stack_gap);
	regions_init();
	mappings_init();
	patches_forget();
	session_fill(start);
	regions_refresh();
	__atomic_store_n(&session.state, SESSION_STARTED, __ATOMIC_RELEASE);
	__atomic_store_n(&payload_switch, 1, __ATOMIC_RELEASE);
	return 0;
}

static int64_t control_patch(const struct control_patch *patch)
{
	if (session.state != SESSION_STARTED)
		return -EBADFD;
	if (!patch)
		return -EINVAL;
	return trampoline_setup_fill((const struct control_trampoline *)patch->trampolines, patch->trampoline_count);
}

static int64_t control_stop(void)
{
	if (session.state != SESSION_INERT)
		return -EBADFD;
	files_unmap();
	trampoline_setup_leave();
	tables_reset(MADV_KEEPONFORK);
	__atomic_store_n(&session.state, SESSION_STOPPED, __ATOMIC_RELEASE);
	return 0;
}

int64_t memattach_control(uint64_t op, void *argument)
{
	switch (op) {
	case CONTROL_START: return control_start(argument);
	case CONTROL_PATCH: return control_patch(argument);
	case CONTROL_STOP: return control_stop();
	default: return -ENOSYS;
	}
}
