/* SPDX-License-Identifier: MIT */
#include "entry/entry_hooks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "base/grow.h"
#include "host/say.h"
#include "base/order.h"

#define THROWS "it may throw, and no unwinder knows a payload that is not loaded by dlopen"

static const struct elf_module *module_of(const struct entry_hooks_input *c, const struct allocator *a)
{
	return &c->modules->list[a->module];
}

int entry_hooks_note(struct entry_hooks *h, struct err *e, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	bool added = say_add_line(&h->notes, format, ap);
	va_end(ap);
	return added ? 0 : err_set(e, ENOMEM, "out of memory");
}

/* What the table of hooks says of a function is what its name says of it. */
static bool is_known_shape(const struct allocation_name *like)
{
#define SHAPE_AND_SIZE(id, symbol, shape, size, group) { shape, size },
	static const struct {
		uint8_t shape, size;
	} table[] = { HOOK_LIST(SHAPE_AND_SIZE) };
#undef SHAPE_AND_SIZE

	return like->hook < HOOK_COUNT && table[like->hook].shape == like->shape &&
	       table[like->hook].size == like->size;
}

/* It may throw, and an exception could not pass its hook. What is called in its stead uses other registers than it. */
static bool throws_past_hook(const struct allocator_function *fn, const struct libc *libc)
{
	return !libc_loads_payload(libc) && listed_hook_throws(fn->like.hook) && (!fn->quiet || !fn->uses_all);
}

/* Of the way that was found to hook it. */
static const char *unsafe_way(const struct allocator_function *fn)
{
	return fn->entry.crosses_line ? "the jump would cross a cache line" : NULL;
}

/* Why the function cannot be hooked, NULL: it can. */
static const char *obstacle(const struct allocator_function *fn, const struct libc *libc)
{
	if (fn->entry_refusal[0])
		return fn->entry_refusal;
	if (fn->layer == LAYER_UNKNOWN)
		return "its code cannot be followed";
	if (!is_known_shape(&fn->like))
		return "its arguments are not those of a function that can be hooked";
	if (throws_past_hook(fn, libc))
		return THROWS;
	return unsafe_way(fn);
}

static bool is_called(const struct allocator *a)
{
	return a->got_entries || a->direct_calls || a->address_taken || a->in_force;
}

static bool has_function(const struct entry_hooks_input *c, const struct allocator *a, uint64_t address)
{
	for (size_t i = a->first; address && i < a->first + a->count; i++)
		if (c->found->functions[i].address == address)
			return true;
	return false;
}

/* Does a GOT entry that may be copied lead to it? */
static bool escapes(const struct entry_hooks_input *c, const struct allocator *a)
{
	for (size_t i = 0; i < c->plan->entry_count; i++)
		if (c->plan->entries[i].escapes && has_function(c, a, c->plan->entries[i].original))
			return true;
	return false;
}

static bool is_wanted(const struct entry_hooks_input *c, const struct allocator *a)
{
	if (a->family == FAMILY_GIVEN)
		return true;
	if (c->mode == HOOKS_ENTRY)
		return is_called(a);
	if (c->mode == HOOKS_GOT)
		return false;
	if (has_function(c, a, c->stored) || escapes(c, a))
		return true;
	return module_of(c, a) != c->libc->module && (a->direct_calls || a->address_taken);
}

/* Few programs call the aligned forms of operator new: without them the others are seen all the same. */
static bool is_left_out(const struct allocator_function *fn, const struct libc *libc)
{
	return fn->layer != LAYER_WRAPPER && throws_past_hook(fn, libc) &&
	       (fn->like.hook == HOOK_new_aligned || fn->like.hook == HOOK_new_array_aligned);
}

/* What passes everything on is not hooked, but for a pool that takes each block from malloc: it is what was asked for.
 */
static bool is_hooked(const struct entry_hooks_input *c, const struct allocator_function *fn)
{
	return (fn->layer != LAYER_WRAPPER || fn->like.family == FAMILY_GIVEN) && !is_left_out(fn, c->libc);
}

static int say_left_out(struct entry_hooks *h, const struct entry_hooks_input *c, const struct allocator *a,
                        const struct allocator_function *fn, struct err *e)
{
	char text[NOTE_FORM_TEXT];

	note_form_write(text, NOTE_FORM_NOT_HOOKED, elf_module_name(module_of(c, a)), fn->name, THROWS);
	return entry_hooks_note(h, e, "%s", text);
}

static int add_covered(struct entry_hooks *h, uint64_t address, struct err *e)
{
	if (!grow_list(h->covered, h->covered_count))
		return err_set(e, ENOMEM, "out of memory");
	h->covered[h->covered_count++] = address;
	return 0;
}

int entry_hooks_add(struct entry_hooks *h, const struct entry_hook *hook, struct err *e)
{
	if (h->count == ENTRY_HOOKS_MAX)
		return err_set(e, E2BIG, "more than %u functions would have to be hooked at their entries",
		               ENTRY_HOOKS_MAX);
	if (!grow_list(h->list, h->count))
		return err_set(e, ENOMEM, "out of memory");
	h->list[h->count++] = *hook;
	return 0;
}

static void make_hook(struct entry_hook *hook, const struct allocator_function *fn, const struct elf_module *m)
{
	*hook = (struct entry_hook){
		.address = fn->address,
		.hook = fn->like.hook,
		.given = fn->like.family == FAMILY_GIVEN,
		.keeps = !fn->uses_all,
		.plan = fn->entry,
		.module_start = m->start,
		.module_end = m->end,
	};
	snprintf(hook->name, sizeof hook->name, "%s", fn->name);
}

const char *entry_hook_make(struct entry_hook *hook, const struct allocator_function *fn, const struct modules *modules,
                            bool outer)
{
	if (fn->entry_refusal[0])
		return fn->entry_refusal;
	make_hook(hook, fn, &modules->list[fn->module]);
	hook->outer = outer;
	return unsafe_way(fn);
}

static int add_hook(struct entry_hooks *h, const struct entry_hooks_input *c, const struct allocator *a,
                    const struct allocator_function *fn, struct err *e)
{
	const uint64_t quiet = libc_loads_payload(c->libc) ? 0 : fn->quiet;
	struct entry_hook hook;

	make_hook(&hook, fn, module_of(c, a));
	/* With a quiet one: what it passes on to, after a new_handler, counts instead. */
	hook.outer = fn->layer == LAYER_WRAPPER || (fn->layer == LAYER_MIXED && !quiet);
	hook.quiet = quiet;
	hook.quiet_aligned = fn->quiet_aligned;
	h->asks_usable &= !hook.keeps;
	return entry_hooks_add(h, &hook, e);
}

static int add_allocator(struct entry_hooks *h, const struct entry_hooks_input *c, const struct allocator *a,
                         struct err *e)
{
	size_t length = strlen(h->text);
	int rc = 0;

	for (size_t i = a->first; i < a->first + a->count && rc == 0; i++) {
		const struct allocator_function *fn = &c->found->functions[i];
		if (is_left_out(fn, c->libc)) {
			rc = say_left_out(h, c, a, fn, e);
			continue;
		}
		rc = add_covered(h, fn->address, e);
		if (rc == 0 && is_hooked(c, fn))
			rc = add_hook(h, c, a, fn, e);
	}
	snprintf(h->text + length, sizeof h->text - length, "%s%s%s%s", length ? ", " : "", a->name,
	         a->version[0] ? " " : "", a->version);
	h->asks_usable &= a->family != FAMILY_GIVEN && module_of(c, a) == c->libc->allocator;
	return rc;
}

/* 1: it can be hooked. *why: else, names a function. */
static int can_be_hooked(const struct entry_hooks_input *c, const struct allocator *a, char *why, size_t size)
{
	unsigned hooked = 0;

	for (size_t i = a->first; i < a->first + a->count; i++) {
		const struct allocator_function *fn = &c->found->functions[i];
		const char *text = is_hooked(c, fn) ? obstacle(fn, c->libc) : NULL;
		hooked += is_hooked(c, fn);
		if (text) {
			snprintf(why, size, "%s: %s", fn->name, text);
			return 0;
		}
	}
	snprintf(why, size, "all its functions only pass on to others");
	return hooked > 0;
}

ORDER_NUMBERS(by_address, uint64_t);

static int choose(struct entry_hooks *h, const struct entry_hooks_input *c, struct err *e)
{
	char why[160];
	int rc = 0;

	for (size_t i = 0; i < c->found->count && rc == 0; i++) {
		const struct allocator *a = &c->found->list[i];
		if (!is_wanted(c, a))
			continue;
		if (can_be_hooked(c, a, why, sizeof why))
			rc = add_allocator(h, c, a, e);
		else if (a->family == FAMILY_GIVEN || (c->mode == HOOKS_ENTRY && a->in_force))
			rc = err_set(e, ENOTSUP, "%s in %s cannot be hooked at its entries (%s); nothing was changed",
			             a->name, elf_module_name(module_of(c, a)), why);
		else
			rc = entry_hooks_note(
				h, e,
				"%s in %s cannot be hooked at its entries (%s): only calls through GOT entries are "
				"seen",
				a->name, elf_module_name(module_of(c, a)), why);
	}
	if (rc == 0 && c->mode == HOOKS_ENTRY && h->count == 0)
		rc = err_set(e, ENOTSUP, "no allocator was found whose entries could be hooked; nothing was changed");
	return rc;
}

int entry_hooks_choose(struct entry_hooks *h, const struct entry_hooks_input *in, struct err *e)
{
	*h = (struct entry_hooks){ .asks_usable = true };
	int rc = choose(h, in, e);
	if (h->covered_count)
		qsort(h->covered, h->covered_count, sizeof *h->covered, by_address);
	if (rc < 0)
		entry_hooks_free(h);
	return rc;
}

void entry_hooks_free(struct entry_hooks *h)
{
	free(h->list);
	free(h->covered);
	free(h->notes);
	*h = (struct entry_hooks){ 0 };
}

bool entry_hooks_cover(const struct entry_hooks *h, uint64_t address)
{
	return h->covered_count && bsearch(&address, h->covered, h->covered_count, sizeof address, by_address);
}

bool entry_hooks_are_in(const struct entry_hooks *h, const struct elf_module *m)
{
	for (size_t i = 0; i < h->count; i++)
		if (!h->list[i].given && h->list[i].address >= m->exec_start && h->list[i].address < m->exec_end)
			return true;
	return false;
}

/* The plan says of a module that an allocator is in it which is not seen: now it is. */
void entry_hooks_drop_notes(const struct entry_hooks *h, const struct modules *modules, struct got_plan *plan)
{
	size_t kept = 0;

	for (size_t i = 0; i < plan->note_count; i++) {
		const struct plan_note *note = &plan->notes[i];
		if (note->kind != NOTE_CONTAINS || note->allocator->never_seen ||
		    !entry_hooks_are_in(h, &modules->list[note->module]))
			plan->notes[kept++] = *note;
	}
	plan->note_count = kept;
}

void entry_hooks_relieve(const struct entry_hooks *h, const struct modules *modules, struct got_plan *plan)
{
	size_t kept = 0;

	if (!h->count)
		return;
	for (size_t i = 0; i < plan->entry_count; i++)
		if (!entry_hooks_cover(h, plan->entries[i].original))
			plan->entries[kept++] = plan->entries[i];
	plan->entry_count = kept;
	for (size_t i = 0; i < plan->route_count; i++)
		if (entry_hooks_cover(h, plan->routes[i].original))
			plan->routes[i].hooked = false;
	entry_hooks_drop_notes(h, modules, plan);
}

void entry_hooks_give_quiet(const struct allocators *found, struct got_plan *plan)
{
	for (size_t i = 0; i < plan->trampoline_count; i++) {
		struct control_trampoline *t = &plan->trampolines[i];
		for (size_t k = 0; k < found->function_count && listed_hook_throws(t->hook) && !t->quiet; k++)
			if (found->functions[k].address == t->original && found->functions[k].quiet) {
				t->quiet = found->functions[k].quiet;
				t->flags |= found->functions[k].quiet_aligned ? TRAMPOLINE_QUIET_ALIGNED : 0;
			}
	}
}

const struct entry_hook *entry_hooks_at(const struct entry_hooks *h, uint64_t detour_address)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->list[i].detour && detour_address - h->list[i].detour < DETOUR_BYTES)
			return &h->list[i];
	return NULL;
}
