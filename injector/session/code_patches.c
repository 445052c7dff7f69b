/* SPDX-License-Identifier: MIT */
#include "code_patches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "arch/registers.h"
#include "cleanup.h"
#include "clone_vm.h"
#include "live_thread.h"
#include "stop_all.h"
#include "watchdog.h"

#define PAUSE_NS 1000000
#define RESTORE_NS 10000000000ull /* nobody is stopped meanwhile but for the moments of the attempts */
#define STACK_BYTES (256u << 10)  /* looked at above the stack pointer where the walk failed */

struct rows {
	struct code_patch list[SESSION_CODE_PATCH_MAX];
	unsigned count;
};

/* ---- the list ---- */

static void add_row(struct rows *rows, const struct entry_hook *hook, uint64_t address, const uint8_t *old,
                    const uint8_t *new, uint8_t bytes, bool island)
{
	struct code_patch *row = &rows->list[rows->count++];

	_Static_assert(2 * ENTRY_HOOKS_MAX <= SESSION_CODE_PATCH_MAX, "rows");
	*row = (struct code_patch){
		.address = address, .bytes = bytes, .island = island, .trampoline = (uint16_t)hook->trampoline
	};
	memcpy(row->old_code, old, bytes);
	memcpy(row->new_code, new, bytes);
}

static int rows_of_hook(const struct session *s, const struct entry_hook *hook, struct rows *rows, struct err *e)
{
	const struct entry_code_plan *plan = &hook->plan;
	struct entry_code_patch patch;
	uint8_t old[ENTRY_JUMP_BYTES];

	int rc = entry_code_patch_make(&patch, plan, hook->detour, e);
	if (rc == 0 && plan->island)
		rc = target_read(&s->memory, plan->island, old, sizeof old, e);
	if (rc < 0)
		return rc;
	if (plan->island)
		add_row(rows, hook, plan->island, old, patch.island, ENTRY_JUMP_BYTES, true);
	add_row(rows, hook, plan->write_at, hook->code + (plan->write_at - hook->address), patch.jump,
	        plan->write_bytes, false);
	return 0;
}

static int make_rows(struct session *s, struct rows *rows, struct err *e)
{
	int rc = 0;

	rows->count = 0;
	for (size_t i = 0; i < s->hooks.count && rc == 0; i++)
		rc = rows_of_hook(s, &s->hooks.list[i], rows, e);
	if (rc < 0)
		return rc;
	free(s->hooks.rows);
	s->hooks.row_count = 0;
	s->hooks.rows = malloc(sizeof rows->list);
	if (!s->hooks.rows)
		return err_set(e, ENOMEM, "out of memory");
	memset(s->hooks.rows, 0, sizeof rows->list);
	memcpy(s->hooks.rows, rows->list, rows->count * sizeof *rows->list);
	s->hooks.row_count = rows->count;
	return target_write(&s->writer, s->payload.block.code_patches_address, rows->list,
	                    rows->count * sizeof *rows->list, e);
}

static bool is_sound(const struct session *s, const struct code_patch *row)
{
	const struct mapping *m = maps_find(&s->view.maps, row->address);

	return row->bytes && row->bytes <= sizeof row->old_code && m && (m->prot & PROT_EXEC) &&
	       row->address + row->bytes <= m->end;
}

/* What this memattach has written, or as the target has it: there the program may have written, and what makes no sense
 * is passed over. */
static int read_rows(const struct session *s, struct rows *rows, struct err *e)
{
	const uint64_t at = s->payload.block.code_patches_address;
	struct rows all;

	int rc = 0;

	rows->count = 0;
	if (!at && !s->hooks.row_count)
		return 0;
	if (s->hooks.row_count)
		memcpy(all.list, s->hooks.rows, sizeof all.list);
	else
		rc = target_read(&s->memory, at, all.list, sizeof all.list, e);
	for (unsigned i = 0; rc == 0 && i < SESSION_CODE_PATCH_MAX; i++)
		if (is_sound(s, &all.list[i]))
			rows->list[rows->count++] = all.list[i];
	return rc;
}

/* ---- a moment at which code may be changed ---- */

struct look {
	const struct session *s;
	uint64_t found; /* a displaced instruction to which some thread would return, 0 none */
};

static bool is_displaced(const struct session *s, uint64_t pc)
{
	for (size_t i = 0; i < s->hooks.count; i++) {
		const struct entry_code_plan *p = &s->hooks.list[i].plan;
		if (pc > p->write_at && pc < p->write_at + p->displaced_bytes)
			return true;
	}
	return false;
}

static bool look_at_frame(void *context, unsigned frame, uint64_t pc, uint64_t sp)
{
	struct look *l = context;

	(void)frame, (void)sp;
	if (is_displaced(l->s, pc))
		l->found = pc;
	return !l->found;
}

/*
 * True: all words from the stack pointer to the end of the mapping were looked at, none of them is an address of a
 * displaced instruction, and no signal handler runs, which could have come from another stack. Most threads are
 * cleared so: to walk the stacks of a thousand takes long, and all are stopped meanwhile.
 */
static bool words_clear(struct look *l, const struct maps *maps, uint64_t sp)
{
	const struct mapping *m = maps_find(maps, sp);
	uint64_t page[512], at = sp & ~7ull, before = 0, stack_end = m ? m->end : UINT64_MAX;
	bool handler = false;
	struct err ignored;

	for (uint64_t end = at + STACK_BYTES; at < end && !l->found;) {
		size_t bytes = 4096 - at % 4096;
		if (at >= stack_end || target_read(&l->s->memory, at, page, bytes, &ignored) < 0)
			return m && !handler;
		for (size_t i = 0; i < bytes / sizeof page[0] && !l->found; before = page[i++]) {
			handler |= registers_follow_pc(before, page[i]);
			if (is_displaced(l->s, page[i]))
				l->found = page[i];
		}
		at += bytes;
	}
	return false;
}

/* Would the thread go on in the middle of displaced instructions? */
static int look_at_thread(const struct session *s, const struct maps *maps, struct tracee *t, struct err *e)
{
	struct look look = { .s = s }, words = { .s = s };
	struct user_regs_struct regs;
	struct stack_walk_end end;

	int rc = tracee_registers(t, &regs, e);
	if (rc < 0)
		return rc == -ESRCH ? 0 : rc;
	if (words_clear(&words, maps, registers_sp(&regs)) && !is_displaced(s, registers_pc(&regs)))
		return 0;
	stack_walk(s->view.points.walk, t, look_at_frame, &look, &end);
	if (!look.found && !stack_walk_complete(&end))
		look.found = words.found;
	return look.found ? err_set(e, EAGAIN, "thread %d is at the entry of an allocation function (0x%llx)", t->tid,
	                            (unsigned long long)look.found)
	                  : 0;
}

static int look_at_threads(const struct session *s, const struct stop_all *all, struct err *e)
{
	struct maps maps;

	/* As they are now. */
	int rc = live_thread_maps(&s->target, &maps, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < all->count && rc == 0; i++)
		rc = look_at_thread(s, &maps, &all->list[i], e);
	maps_free(&maps);
	return rc;
}

static bool displaces_several(const struct session *s)
{
	for (size_t i = 0; i < s->hooks.count; i++)
		if (s->hooks.list[i].plan.kind == ENTRY_SEVERAL)
			return true;
	return false;
}

static int check_sharers(const struct session *s, struct err *e)
{
	AUTO_FREE pid_t *others = NULL;
	size_t count = 0;

	int rc = clone_vm_find(&s->target, &others, &count, e);
	if (rc < 0 || count == 0)
		return rc;
	return err_set(e, EAGAIN, "process %d, a child of vfork or clone, runs in its memory", others[0]);
}

int code_patches_foresee(const struct session *s, uint64_t deadline_ns, struct err *e)
{
	const struct timespec pause = { .tv_nsec = 16 * PAUSE_NS };
	struct err why;
	int rc = 0;

	if (!s->hooks.count)
		return 0;
	while ((rc = check_sharers(s, &why)) == -EAGAIN) {
		rc = watchdog_check(e);
		if (rc < 0)
			return rc;
		if (monotonic_ns() >= deadline_ns)
			return err_set(e, EBUSY, "there was no moment to change code: %s; nothing was changed",
			               why.text);
		nanosleep(&pause, NULL);
	}
	if (rc < 0)
		*e = why;
	return rc;
}

typedef int (*change_fn)(struct session *s, void *context, struct err *e);

/* Makes the change while all threads are stopped, none of them in displaced instructions. -EAGAIN: not now. */
static int attempt(struct session *s, bool look, uint64_t *longest_ns, change_fn change, void *context, struct err *e)
{
	struct stop_all all;

	int rc = check_sharers(s, e);
	if (rc == 0)
		rc = stop_all(&all, &s->target, longest_ns, e);
	if (rc < 0)
		return rc;
	/* One may have been made before all were stopped. */
	rc = check_sharers(s, e);
	if (rc == 0 && look)
		rc = look_at_threads(s, &all, e);
	if (rc == 0)
		rc = change(s, context, e);
	stop_all_end(&all, longest_ns);
	return rc;
}

static int change_code(struct session *s, bool look, uint64_t deadline_ns, uint64_t *longest_ns, change_fn change,
                       void *context, struct err *e)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct err why;
	int rc;

	while ((rc = attempt(s, look, longest_ns, change, context, &why)) == -EAGAIN) {
		if (watchdog_asked_twice())
			return err_set(e, EINTR, "interrupted twice before code could be changed: %s", why.text);
		if (monotonic_ns() >= deadline_ns)
			return err_set(e, EBUSY, "there was no moment to change code: %s", why.text);
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 64 * PAUSE_NS)
			pause.tv_nsec *= 2; /* each attempt stops the program */
		tracee_release_late();
	}
	if (rc < 0)
		*e = why;
	return rc;
}

/* ---- the changes ---- */

/* Rows of one kind whose code is what it is expected to be. *others: how many have something else. */
static int change_rows(const struct session *s, const struct rows *rows, bool islands, bool to_new, unsigned *changed,
                       unsigned *others, struct err *e)
{
	uint8_t now[sizeof rows->list[0].old_code];
	int rc = 0;

	for (unsigned i = 0; i < rows->count && rc == 0; i++) {
		const struct code_patch *row = &rows->list[i];
		const uint8_t *from = to_new ? row->old_code : row->new_code;
		const uint8_t *to = to_new ? row->new_code : row->old_code;
		if (!row->island == islands)
			continue;
		rc = target_read(&s->memory, row->address, now, row->bytes, e);
		if (rc == -EFAULT) { /* unmapped since, or never ours */
			++*others;
			rc = 0;
			continue;
		}
		if (rc < 0)
			break;
		if (!memcmp(now, to, row->bytes))
			continue;
		if (memcmp(now, from, row->bytes)) {
			++*others;
			continue;
		}
		rc = target_write(&s->writer, row->address, to, row->bytes, e);
		*changed += rc == 0;
	}
	return rc;
}

static int write_all(struct session *s, void *context, struct err *e)
{
	const struct rows *rows = context;
	unsigned changed = 0, others = 0;

	int rc = change_rows(s, rows, true, true, &changed, &others, e);
	if (rc == 0 && !others)
		rc = change_rows(s, rows, false, true, &changed, &others, e);
	if (rc == 0 && others)
		rc = err_set(e, EBUSY, "somebody else has changed the code of an allocation function meanwhile");
	return rc;
}

int code_patches_write(struct session *s, uint64_t deadline_ns, struct err *e)
{
	struct rows rows;

	if (!s->hooks.count)
		return 0;
	int rc = make_rows(s, &rows, e);
	if (rc == 0)
		rc = watchdog_check(e);
	if (rc == 0)
		rc = change_code(s, displaces_several(s), deadline_ns, &s->outcome.attach_longest_ns, write_all, &rows,
		                 e);
	if (rc == 0)
		s->outcome.functions_hooked = (unsigned)s->hooks.count;
	return rc;
}

struct restoring {
	const struct rows *rows;
	struct code_patches_result *result;
};

static int restore_entries(struct session *s, void *context, struct err *e)
{
	struct restoring *r = context;

	return change_rows(s, r->rows, false, false, &r->result->written, &r->result->foreign, e);
}

/* Of all rows that are still mapped: how many entries are as they were? */
static void count_restored(const struct session *s, const struct rows *rows, struct code_patches_result *result)
{
	uint8_t now[sizeof rows->list[0].old_code];
	struct err ignored;

	for (unsigned i = 0; i < rows->count; i++) {
		const struct code_patch *row = &rows->list[i];
		result->restored += !row->island && !target_read(&s->memory, row->address, now, row->bytes, &ignored) &&
		                    !memcmp(now, row->old_code, row->bytes);
	}
}

int code_patches_restore(struct session *s, struct code_patches_result *result, struct err *e)
{
	struct rows rows;
	struct restoring r = { &rows, result };

	*result = (struct code_patches_result){ 0 };
	int rc = read_rows(s, &rows, e);
	if (rc < 0 || !rows.count)
		return rc;
	rc = change_code(s, false, monotonic_ns() + RESTORE_NS, &s->outcome.detach_longest_ns, restore_entries, &r, e);
	if (rc == 0)
		count_restored(s, &rows, result);
	return rc;
}

unsigned code_patches_islands(const struct session *s, struct quiesce_range *ranges, unsigned max)
{
	uint8_t now[sizeof((struct code_patch *)0)->new_code];
	struct rows rows;
	struct err ignored;
	unsigned count = 0;

	if (read_rows(s, &rows, &ignored) < 0)
		return 0;
	for (unsigned i = 0; i < rows.count && count < max; i++) {
		const struct code_patch *row = &rows.list[i];
		if (row->island && !target_read(&s->memory, row->address, now, row->bytes, &ignored) &&
		    !memcmp(now, row->new_code, row->bytes))
			ranges[count++] = (struct quiesce_range){ row->address, row->address + row->bytes };
	}
	return count;
}

int code_patches_remove_islands(const struct session *s, struct err *e)
{
	unsigned changed = 0, others = 0;
	struct rows rows;

	int rc = read_rows(s, &rows, e);
	return rc < 0 ? rc : change_rows(s, &rows, true, false, &changed, &others, e);
}
