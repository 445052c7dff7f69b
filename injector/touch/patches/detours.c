/* SPDX-License-Identifier: MIT */
#include "touch/patches/detours.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/detour_code.h"
#include "arch/entry_code.h"
#include "process/live_thread.h"
#include "touch/remote/payload_symbols.h"
#include "trampolines.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PAGE_BYTES 4096ull
#define FILE_OFFSET PAGE_BYTES           /* not 0: what is mapped from there is the image itself (modules.c) */
#define TRIES 8u                         /* the program maps memory too */
#define REACH (ENTRY_REACH - (1u << 20)) /* of a jump, from and to any byte of module and area */
#define LOWEST 0x10000ull                /* vm.mmap_min_addr is no larger */
#define GROWTH (16ull << 20)             /* left between an area and what may grow towards it */
#define STEP (16ull << 20)               /* left above an area for each place that was taken meanwhile */

/* ---- where they may lie ---- */

static bool grows_up(const struct mapping *m)
{
	return m && !strcmp(m->path, "[heap]");
}

static bool grows_down(const struct mapping *m)
{
	return m && !strcmp(m->path, "[stack]");
}

/* In the gap [start, end) between two mappings, which has room for bytes and for free_above: the place for bytes under
 * these. 0: none. */
static uint64_t place_in(uint64_t start, uint64_t end, uint64_t bytes, uint64_t free_above, const struct mapping *below,
                         const struct mapping *above)
{
	if (grows_up(below))
		start += GROWTH;
	if (grows_down(above))
		end = end > GROWTH ? end - GROWTH : 0;
	return end > start && end - start >= bytes + free_above ? (end - free_above - bytes) & ~(PAGE_BYTES - 1) : 0;
}

static bool reaches(uint64_t at, uint64_t bytes, uint64_t start, uint64_t end)
{
	uint64_t low = at < start ? at : start, high = at + bytes > end ? at + bytes : end;

	return high - low <= REACH;
}

/* For a module that lies in [start, end): in the nearest such gap below it, else above. 0: there is none. */
static uint64_t find_place(const struct maps *maps, uint64_t start, uint64_t end, uint64_t bytes, uint64_t free_above)
{
	uint64_t above_it = 0;

	for (size_t i = maps->count + 1; i-- > 0;) {
		const struct mapping *below = i ? &maps->list[i - 1] : NULL;
		const struct mapping *above = i < maps->count ? &maps->list[i] : NULL;
		uint64_t from = below ? below->end : LOWEST, to = above ? above->start : 0;
		uint64_t at = to > from ? place_in(from, to, bytes, free_above, below, above) : 0;
		if (at < LOWEST || !reaches(at, bytes, start, end))
			continue;
		if (at < start)
			return at;
		above_it = at;
	}
	return above_it;
}

uint64_t detour_place(const struct maps *maps, uint64_t start, uint64_t end, uint64_t bytes, unsigned taken)
{
	uint64_t at = find_place(maps, start, end, bytes, taken * STEP);

	return at ? at : find_place(maps, start, end, bytes, 0);
}

/* ---- how they get there ---- */

/* The hooks of the module of hook `first` that have no detour yet. */
static uint64_t area_bytes(const struct entry_hooks *h, size_t first)
{
	uint64_t count = 0;

	for (size_t i = first; i < h->count; i++)
		count += h->list[i].module_start == h->list[first].module_start;
	return (count * DETOUR_BYTES + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

static uint64_t area_address(const struct session *s, unsigned i)
{
	return s->payload.session + offsetof(struct memattach_session, detours) + i * sizeof(struct detour_area);
}

/* Named in the session's block before it is there, so that a memattach that dies in between leaves nothing unknown. */
static int map_area(struct loan *l, unsigned number, const struct detour_area *area, int payload_fd, struct err *e)
{
	struct session *s = l->s;
	const uint64_t arguments[6] = { area->address,         area->bytes,
		                        PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
		                        (uint64_t)payload_fd,  FILE_OFFSET };
	const uint64_t area_range[6] = { area->address, area->bytes };
	uint64_t result;

	int rc = target_write(&s->writer, CHANGE_PAYLOAD, area_address(s, number), area, sizeof *area, e);
	rc = rc ?: remote_call1(l->remote, SYS_mmap, arguments, &result, l->deadline_ns, e);
	rc = rc ?: remote_result(result, e);
	if (rc < 0)
		return rc;
	if (result == area->address)
		changes_made(&s->changes, CHANGE_DETOURS);
	if (result == area->address) /* mlockall(MCL_FUTURE) may have locked it */
		return remote_call1(l->remote, SYS_munlock, area_range, &result, l->deadline_ns, e);
	/* Before Linux 4.17 the address is but a wish. */
	const uint64_t unmap[6] = { result, area->bytes };
	rc = remote_call1(l->remote, SYS_munmap, unmap, &result, l->deadline_ns, e);
	return rc < 0 ? rc : err_set(e, EEXIST, "there is other memory where a detour should be");
}

static int make_area(struct loan *l, unsigned number, size_t first, int payload_fd, struct err *e)
{
	struct session *s = l->s;
	struct entry_hooks *h = &s->hooks;
	const uint64_t module = h->list[first].module_start;
	struct detour_area area = { .bytes = area_bytes(h, first) };
	int rc = -EEXIST;

	if (number == SESSION_DETOUR_AREAS)
		return err_set(e, E2BIG, "functions of more than %u modules would have to be hooked at their entries",
		               SESSION_DETOUR_AREAS);
	for (unsigned i = 0; rc == -EEXIST && i < TRIES; i++) {
		struct maps maps;
		rc = live_thread_maps(&s->target, &maps, e);
		if (rc < 0)
			return rc;
		area.address = detour_place(&maps, module, h->list[first].module_end, area.bytes, i);
		maps_free(&maps);
		rc = area.address ? map_area(l, number, &area, payload_fd, e)
		                  : err_set(e, ENOSPC,
		                            "there is no room for detours within reach of the functions that "
		                            "would be hooked at their entries");
	}
	if (rc == -EEXIST)
		return err_set(e, EAGAIN,
		               "the program maps memory faster than a place for detours can be chosen; try again");
	for (size_t i = first, k = 0; i < h->count && rc == 0; i++)
		if (h->list[i].module_start == module)
			h->list[i].detour = area.address + k++ * DETOUR_BYTES;
	return rc;
}

/* The bytes of a detour, whose trampoline has a number now. */
static int fill(struct loan *l, const struct entry_hook *hook, struct err *e)
{
	struct session *s = l->s;
	const uint64_t trampolines = s->payload.block.trampolines_address;
	struct detour_code code = {
		.hook = hook->hook,
		.decides = !hook->outer || listed_hook_shape(hook->hook) == SHAPE_POOL_FREE,
		.keeps = hook->keeps,
		.undo = hook->plan.undo,
		.trampoline = trampolines + (uint64_t)hook->trampoline * TRAMPOLINE_CODE_BYTES,
		.data = trampoline_data(trampolines, hook->trampoline),
		.shared = trampolines + TRAMPOLINES_CODE_BYTES,
		.filter = trampolines + TRAMPOLINES_BYTES,
	};
	uint8_t bytes[DETOUR_BYTES];
	const unsigned copy_at = detour_code_copy_at(hook->keeps);
	struct entry_code_copy copy;

	int rc = target_read(&s->memory, code.shared + TRAMPOLINES_FILTER_MASK, &code.filter_mask,
	                     sizeof code.filter_mask, e);
	if (rc == 0)
		rc = target_read(&s->memory, code.shared + TRAMPOLINES_FILTER_MULTIPLIER, &code.filter_multiplier,
		                 sizeof code.filter_multiplier, e);
	rc = rc ?: entry_code_copy_make(&copy, &hook->plan, hook->detour + copy_at, e);
	if (rc < 0)
		return rc;
	detour_code_make(bytes, &code);
	memcpy(bytes + copy_at, copy.code, copy.bytes);
	return target_write(&s->writer, CHANGE_DETOURS, hook->detour, bytes, sizeof bytes, e);
}

/* What runs the function's original, past its hook. */
static uint64_t quiet_address(const struct entry_hooks *h, const struct entry_hook *hook)
{
	for (size_t i = 0; i < h->count && hook->quiet; i++)
		if (h->list[i].address == hook->quiet)
			return h->list[i].detour + detour_code_copy_at(h->list[i].keeps);
	return 0;
}

static int add_trampoline(const struct entry_hooks *h, struct got_plan *plan, struct entry_hook *hook, struct err *e)
{
	if (plan->trampoline_count == TRAMPOLINE_MAX)
		return err_set(e, E2BIG, "more than %d different functions would have to be hooked", TRAMPOLINE_MAX);
	struct control_trampoline *grown =
		realloc(plan->trampolines, (plan->trampoline_count + 1) * sizeof *plan->trampolines);
	if (!grown)
		return err_set(e, ENOMEM, "out of memory");
	plan->trampolines = grown;
	uint64_t quiet = quiet_address(h, hook);
	if (!quiet && hook->quiet)
		return err_set(e, ENOTSUP, "%s throws, and what would be called instead is not hooked", hook->name);
	hook->trampoline = (uint32_t)plan->trampoline_count;
	grown[plan->trampoline_count++] = (struct control_trampoline){
		.original = hook->detour + detour_code_original_at(hook->keeps),
		.hook = hook->hook,
		.flags = (hook->outer ? TRAMPOLINE_OUTER : 0) | (hook->keeps ? TRAMPOLINE_KEEPS : 0) |
		         (hook->quiet_aligned ? TRAMPOLINE_QUIET_ALIGNED : 0),
		.quiet = quiet,
	};
	return 0;
}

int detours_map(struct loan *l, int payload_fd, struct err *e)
{
	struct entry_hooks *h = &l->s->hooks;
	unsigned areas = 0;
	int rc = 0;

	for (size_t i = 0; i < h->count; i++)
		h->list[i].detour = 0;
	for (size_t i = 0; i < h->count && rc == 0; i++)
		if (!h->list[i].detour)
			rc = make_area(l, areas++, i, payload_fd, e);
	for (size_t i = 0; i < h->count && rc == 0; i++) {
		rc = add_trampoline(h, &l->s->view.plan, &h->list[i], e);
		rc = rc ?: fill(l, &h->list[i], e);
	}
	return rc;
}

unsigned detours_list(const struct session *s, struct detour_area areas[SESSION_DETOUR_AREAS])
{
	unsigned count = 0;

	for (unsigned i = 0; i < SESSION_DETOUR_AREAS; i++) {
		const struct detour_area *a = &s->payload.block.detours[i];
		const struct mapping *m = a->bytes ? maps_find(&s->view.maps, a->address) : NULL;
		if (m && a->bytes % PAGE_BYTES == 0 && a->bytes <= ENTRY_HOOKS_MAX * DETOUR_BYTES &&
		    m->start == a->address && m->offset == FILE_OFFSET && m->end - m->start >= a->bytes &&
		    strstr(m->path, "memfd:" PAYLOAD_MEMFD_NAME))
			areas[count++] = *a;
	}
	return count;
}
