/* SPDX-License-Identifier: MIT */
/* The trampolines, see trampoline_setup.h. */
#include "trampoline_setup.h"

#include <elf.h>
#include <errno.h>

#include "arch/machine.h"
#include "tables/filter.h"
#include "hooks.h"
#include "mapping.h"
#include "session_block.h"
#include "syscalls.h"

extern const uint8_t trampoline_code[TRAMPOLINES_CODE_BYTES] HIDDEN;
extern const int32_t hook_offsets[HOOK_COUNT] HIDDEN;
extern const int32_t hook_outer_offsets[HOOK_COUNT] HIDDEN;
extern const int32_t hook_keep_offsets[HOOK_COUNT] HIDDEN;
extern const int32_t hook_outer_keep_offsets[HOOK_COUNT] HIDDEN;
extern const Elf64_Ehdr __ehdr_start HIDDEN; /* from the linker: the start of the image */

/* How far below the image. Sanitizers, the heaps of Java and the mappings of most programs are elsewhere. */
#define NEAREST (4ull << 30)
#define FARTHEST (1ull << 40)

static struct trampolines_shared nobodys;
struct trampolines_shared *trampolines_shared = &nobodys;

static uint8_t trampoline_flags[TRAMPOLINE_MAX]; /* TRAMPOLINE_* */
static uint64_t trampoline_quiet[TRAMPOLINE_MAX];
bool trampolines_any_outer;
bool trampolines_any_quiet;

static struct trampoline *trampoline_of(uint32_t i)
{
	return (struct trampoline *)trampoline_data(session.trampolines_address, i);
}

static uint64_t trampoline_number(const struct trampoline *trampoline)
{
	return ((uint64_t)trampoline - trampoline_data(session.trampolines_address, 0)) / TRAMPOLINE_BYTES;
}

bool trampoline_setup_is_outer(const struct trampoline *trampoline)
{
	uint64_t i = trampoline_number(trampoline);

	return i < TRAMPOLINE_MAX && trampoline_flags[i] & TRAMPOLINE_OUTER;
}

uint64_t trampoline_setup_quiet(const struct trampoline *trampoline, bool *aligned)
{
	uint64_t i = trampoline_number(trampoline);

	if (i >= TRAMPOLINE_MAX)
		return 0;
	*aligned = trampoline_flags[i] & TRAMPOLINE_QUIET_ALIGNED;
	return trampoline_quiet[i];
}

static uint64_t hook_address(const struct control_trampoline *wanted)
{
	const bool outer = wanted->flags & TRAMPOLINE_OUTER, keeps = wanted->flags & TRAMPOLINE_KEEPS;
	const int32_t *plain = outer ? hook_outer_offsets : hook_offsets;
	const int32_t *offsets = !keeps ? plain : outer ? hook_outer_keep_offsets : hook_keep_offsets;

	return (uint64_t)offsets + (uint64_t)(int64_t)offsets[wanted->hook];
}

/* The segment of this image that holds the trampolines' code: where in the file it is, and what else is code. */
static const Elf64_Phdr *text_segment(uint64_t *bias)
{
	const Elf64_Ehdr *image = &__ehdr_start;
	const Elf64_Phdr *phdr = (const void *)((const uint8_t *)image + image->e_phoff);
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < image->e_phnum; i++) {
		if (phdr[i].p_type == PT_LOAD && phdr[i].p_vaddr < first)
			first = phdr[i].p_vaddr;
	}
	*bias = (uint64_t)image - (first & ~(uint64_t)(PAGE_BYTES - 1));
	for (uint32_t i = 0; i < image->e_phnum; i++) {
		uint64_t start = *bias + phdr[i].p_vaddr;

		if (phdr[i].p_type == PT_LOAD && (uint64_t)trampoline_code >= start &&
		    (uint64_t)trampoline_code - start < phdr[i].p_filesz)
			return &phdr[i];
	}
	return 0;
}

/*
 * Where hardly anything was before. Freed memory of a program still holds pointers to what it has unmapped, and these
 * are the addresses that the kernel gives out next: a program that uses one would find code there.
 */
static uint64_t unused_place(uint64_t random)
{
	const uint64_t image = (uint64_t)&__ehdr_start;

	return image > 2 * FARTHEST ? (image - NEAREST - random % (FARTHEST - NEAREST)) & ~(uint64_t)(PAGE_BYTES - 1)
	                            : 0;
}

int64_t trampoline_setup_map(int payload_fd, uint32_t counters, uint64_t random)
{
	uint64_t bias;
	const Elf64_Phdr *text = text_segment(&bias);
	int64_t place, result;
	uint64_t offset;

	if (!text)
		return -ENOEXEC;
	offset = (uint64_t)trampoline_code - bias - text->p_vaddr + text->p_offset;
	place = mapping_new(unused_place(random), TRAMPOLINES_BYTES + counters, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (place < 0)
		return place;
	result = syscall_mmap((uint64_t)place, TRAMPOLINES_CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
	                      payload_fd, offset);
	if (result >= 0)
		result = syscall_munlock((uint64_t)place, TRAMPOLINES_CODE_BYTES);
	if (result >= 0)
		result = syscall_madvise((void *)((uint64_t)place + TRAMPOLINES_BYTES), counters, MADV_WIPEONFORK);
	if (result < 0) {
		syscall_munmap((uint64_t)place, TRAMPOLINES_BYTES + counters);
		return result;
	}
	session.trampoline_code_offset = offset;
	session.trampolines_address = (uint64_t)place;
	session.trampolines_bytes = TRAMPOLINES_BYTES + counters;
	session.trampoline_count = 0;
	trampolines_any_outer = trampolines_any_quiet = false;
	trampolines_shared = (struct trampolines_shared *)((uint64_t)place + TRAMPOLINES_CODE_BYTES);
	filter_init((uint8_t *)((uint64_t)place + TRAMPOLINES_BYTES), counters, payload.rate_bytes);
	trampolines_shared->filter_mask = filter_mask;
	trampolines_shared->filter_multiplier = filter_multiplier;
	session.text_start = bias + text->p_vaddr;
	session.text_end = session.text_start + text->p_memsz;
	return 0;
}

int64_t trampoline_setup_fill(const struct control_trampoline *wanted, uint32_t count)
{
	if (count > TRAMPOLINE_MAX)
		return -EINVAL;
	for (uint32_t i = session.trampoline_count; i < count; i++) {
		if (wanted[i].hook >= HOOK_COUNT || !wanted[i].original ||
		    (wanted[i].flags & TRAMPOLINE_KEEPS && wanted[i].quiet))
			return -EINVAL;
	}
	for (uint32_t i = session.trampoline_count; i < count; i++) {
		struct trampoline *trampoline = trampoline_of(i);

		trampoline_flags[i] = (uint8_t)wanted[i].flags;
		trampoline_quiet[i] = wanted[i].quiet;
		trampolines_any_outer |= (wanted[i].flags & TRAMPOLINE_OUTER) != 0;
		trampolines_any_quiet |= wanted[i].quiet != 0;
		trampoline->original = wanted[i].original;
		__atomic_store_n(&trampoline->next, hook_address(&wanted[i]), __ATOMIC_RELEASE);
	}
	if (count > session.trampoline_count)
		session.trampoline_count = count;
	return 0;
}

void trampoline_setup_leave(void)
{
	trampolines_shared = &nobodys;
}
