/* SPDX-License-Identifier: MIT */
/*
 * What may be called instead of an operator new that throws, where no exception could pass a hook (control.h): the C
 * function of the same allocator. The nothrow form of operator new is not it: it runs the program's new_handler, which
 * would be run once more by the original, and it ends the program if that handler throws anything but bad_alloc.
 *
 * That both give blocks of one kind is shown by one of these:
 *   - its operator delete is free: one address, or a jump there and nothing else, also by way of the PLT
 *   - operator new has a name that only the allocator's own functions have (tc_new), and the plain operator delete is
 *     free, or none has a name. An allocator that checks which function made a block, as libtcmalloc_debug does, ends
 *     the program when operator delete gets one of malloc.
 *
 * malloc of gperftools runs the new_handler, too, once the program has called tc_set_new_mode(1).
 */
#include <string.h>

#include "allocators/allocator_internal.h"
#include "arch/code.h"
#include "got/listed_hook.h"

#define HEAD_BYTES (2 * INSTRUCTION_MAX)

/* How many of these bytes are code of the module: up to the end of that. */
static size_t code_bytes(const struct module_view *v, uint64_t address, size_t bytes)
{
	while (bytes && !elf_module_holds(v->file.module, address, bytes, PF_X))
		bytes--;
	return bytes;
}

/* The first instruction that does something; false: it cannot be read. */
static bool first_instruction(const struct finder *f, const struct module_view *v, uint64_t address,
                              struct instruction *in)
{
	uint8_t code[HEAD_BYTES];
	const size_t bytes = code_bytes(v, address, sizeof code);

	if (target_read(&f->memory, address, code, bytes, ERR_IGNORED) < 0 ||
	    !instruction_read(in, code, bytes, address))
		return false;
	return !in->landing_pad || instruction_read(in, code + in->bytes, bytes - in->bytes, address + in->bytes);
}

static const struct allocator_function *named(const struct finder *f, const struct allocator *a, uint32_t hook)
{
	for (size_t i = a->first; i < a->first + a->count; i++)
		if (f->out.functions[i].named & 1ull << hook)
			return &f->out.functions[i];
	return NULL;
}

static uint32_t delete_of(uint32_t new_hook)
{
	switch (new_hook) {
	case HOOK_new: return HOOK_delete;
	case HOOK_new_array: return HOOK_delete_array;
	case HOOK_new_aligned: return HOOK_delete_aligned;
	default: return HOOK_delete_array_aligned;
	}
}

static bool makes_blocks_of_malloc(struct finder *f, const struct module_view *v, const struct allocator *a,
                                   const struct allocator_function *fn)
{
	const uint32_t hook = fn->own_name ? (uint32_t)HOOK_delete : delete_of(fn->like.hook);
	const struct allocator_function *del = named(f, a, hook);
	const struct allocator_function *free_ = named(f, a, HOOK_free);
	struct instruction in;

	if (!del || !free_)
		return fn->own_name;
	return del == free_ || (first_instruction(f, v, del->address, &in) && in.flow == FLOW_JUMP &&
	                        allocator_layers_destination(f, v, &in) == free_->address);
}

/* Is nothing known that would make malloc run the program's new_handler? */
static bool malloc_is_quiet(const struct finder *f, const struct module_view *v)
{
	uint8_t code[RETURNS_ADDRESS_BYTES] = { 0 };
	uint64_t place;
	uint32_t mode;

	const size_t bytes = f->asks_mode ? code_bytes(v, f->asks_mode, sizeof code) : 0;
	if (!bytes)
		return true; /* the function is in no module, or another one */
	return target_read(&f->memory, f->asks_mode, code, bytes, ERR_IGNORED) == 0 &&
	       code_returns_number(code, f->asks_mode, &place) &&
	       target_read(&f->memory, place, &mode, sizeof mode, ERR_IGNORED) == 0 && mode == 0;
}

/* A lowest function of that name: its hook is passed by, so nothing below it may be hooked. */
static uint64_t lowest(const struct finder *f, const struct allocator *a, const char *name)
{
	for (size_t i = a->first; i < a->first + a->count; i++) {
		const struct allocator_function *fn = &f->out.functions[i];
		if (fn->layer == LAYER_LOWEST && !strcmp(fn->name, name))
			return fn->address;
	}
	return 0;
}

static uint64_t quiet_of(const struct finder *f, const struct module_view *v, const struct allocator *a, bool aligned)
{
	uint64_t address = aligned ? 0 : lowest(f, a, "tc_malloc_skip_new_handler");

	if (address || !malloc_is_quiet(f, v))
		return address;
	address = lowest(f, a, aligned ? "memalign" : "malloc");
	return address || !aligned ? address : lowest(f, a, "aligned_alloc");
}

int allocator_quiet_find(struct finder *f, const struct module_view *v, const struct allocator *a, struct err *e)
{
	for (size_t i = a->first; i < a->first + a->count; i++) {
		struct allocator_function *fn = &f->out.functions[i];
		bool works = fn->layer == LAYER_LOWEST || fn->layer == LAYER_WRAPPER || fn->own_until_handler;
		if (!listed_hook_throws(fn->like.hook) || !works || !makes_blocks_of_malloc(f, v, a, fn))
			continue;
		fn->quiet_aligned = fn->like.hook == HOOK_new_aligned || fn->like.hook == HOOK_new_array_aligned;
		fn->quiet = quiet_of(f, v, a, fn->quiet_aligned);
	}
	return budget_check(&f->budget, e);
}
