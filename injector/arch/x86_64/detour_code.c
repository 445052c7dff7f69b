/* SPDX-License-Identifier: MIT */
#include "arch/detour_code.h"

#include <string.h>

#include "arch/entry_code.h"

#define UNDO_BYTES (ENTRY_UNDO_BYTES + 2) /* with a jump to the start */

/* Behind the copy: that, and jumps to the trampoline. */
#define UNDO 88u
#define TO_OTHER 96u
#define TO_BELOW 112u

/* Behind the copy where registers are kept: to trampoline.next. */
#define KEEPING_UNDECIDED 106u
#define KEEPING_BELOW 108u
#define KEEPING_UNDO 121u

_Static_assert(DETOUR_KEEPING_COPY + ENTRY_COPY_MAX <= KEEPING_UNDECIDED && KEEPING_UNDO + UNDO_BYTES <= DETOUR_BYTES,
               "detour");
_Static_assert(DETOUR_COPY + ENTRY_COPY_MAX <= UNDO && UNDO + UNDO_BYTES <= TO_OTHER &&
                       TO_OTHER + ENTRY_FAR_JUMP_BYTES <= TO_BELOW && TO_BELOW + ENTRY_FAR_JUMP_BYTES <= DETOUR_BYTES,
               "detour");

static uint8_t *put(uint8_t *at, const void *bytes, size_t count)
{
	memcpy(at, bytes, count);
	return at + count;
}

static uint8_t *put_number(uint8_t *at, uint64_t number, size_t bytes)
{
	return put(at, &number, bytes);
}

#define PUT(at, ...) put(at, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* The distance of a short jump from behind its last byte, which is to come at `at`. */
static uint8_t *put_distance(uint8_t *at, const uint8_t *code, unsigned target)
{
	*at = (uint8_t)(target - (unsigned)(at + 1 - code));
	return at + 1;
}

static uint8_t *put_allocate(uint8_t *code, const struct detour_code *d)
{
	uint8_t *at = code;

	at = PUT(at, 0x64, 0x4c, 0x8b, 0x14, 0x25, 0, 0, 0, 0); /* mov %fs:0, %r10 */
	at = PUT(at, 0x48, 0xb8);                               /* movabs $shared, %rax */
	at = put_number(at, d->shared, 8);
	at = PUT(at, 0x4c, 0x3b, 0x50, TRAMPOLINES_NEAR_OWNER); /* cmp NEAR_OWNER(%rax), %r10 */
	at = PUT(at, 0x75);                                     /* jne */
	at = put_distance(at, code, TO_OTHER);
	at = PUT(at, 0x48, 0x83, 0xff, 0x01); /* cmp $1, %rdi */
	at = PUT(at, 0x48, 0x19, 0xb8);       /* sbb %rdi, REMAINING(%rax) */
	at = put_number(at, TRAMPOLINES_NEAR + THREAD_STATE_REMAINING, 4);
	at = PUT(at, 0x78); /* js */
	at = put_distance(at, code, TO_BELOW);
	return PUT(at, 0x66, 0x90); /* nop */
}

static uint8_t *put_release(uint8_t *code, const struct detour_code *d)
{
	uint8_t *at = code;

	at = PUT(at, 0x48, 0x69, 0xc7); /* imul $MULTIPLIER, %rdi, %rax */
	at = put_number(at, d->filter_multiplier, 4);
	at = PUT(at, 0x48, 0xc1, 0xe8, FILTER_SHIFT); /* shr $SHIFT, %rax */
	at = PUT(at, 0x25);                           /* and $mask, %eax */
	at = put_number(at, d->filter_mask, 4);
	at = PUT(at, 0x49, 0xba); /* movabs $filter, %r10 */
	at = put_number(at, d->filter, 8);
	at = PUT(at, 0x90);                         /* nop: no jump at the end of 32 bytes */
	at = PUT(at, 0x41, 0x80, 0x3c, 0x02, 0x00); /* cmpb $0, (%r10, %rax) */
	at = PUT(at, 0x75);                         /* jne */
	at = put_distance(at, code, TO_OTHER);
	return PUT(at, 0x66, 0x0f, 0x1f, 0x44, 0, 0); /* nop */
}

static uint8_t *put_keep(uint8_t *at)
{
	at = PUT(at, 0x48, 0x89, 0x44, 0x24, (uint8_t)TRAMPOLINE_KEPT_FIRST);    /* mov %rax, KEPT_RAX(%rsp) */
	return PUT(at, 0x4c, 0x89, 0x5c, 0x24, (uint8_t)TRAMPOLINE_KEPT_SECOND); /* mov %r11, KEPT_R11(%rsp) */
}

static void put_keeping_allocate(uint8_t *code, const struct detour_code *d)
{
	uint8_t *at = put_keep(code);

	at = PUT(at, 0x48, 0xb8); /* movabs $near, %rax */
	at = put_number(at, d->shared + TRAMPOLINES_NEAR, 8);
	at = PUT(at, 0x64, 0x4c, 0x8b, 0x1c, 0x25, 0, 0, 0, 0); /* mov %fs:0, %r11 */
	at = PUT(at, 0x0f, 0x1f, 0x00);                         /* nop: no jump at the end of 32 bytes */
	at = PUT(at, 0x4c, 0x3b, 0x58,
	         (uint8_t)(TRAMPOLINES_NEAR_OWNER - TRAMPOLINES_NEAR)); /* cmp OWNER(%rax), %r11 */
	at = PUT(at, 0x75);                                             /* jne */
	at = put_distance(at, code, KEEPING_UNDECIDED);
	at = PUT(at, 0x48, 0x83, 0xff, 0x01);                   /* cmp $1, %rdi */
	at = PUT(at, 0x48, 0x19, 0x78, THREAD_STATE_REMAINING); /* sbb %rdi, REMAINING(%rax) */
	at = PUT(at, 0x78);                                     /* js */
	put_distance(at, code, KEEPING_BELOW);
}

static void put_keeping_release(uint8_t *code, const struct detour_code *d)
{
	uint8_t *at = put_keep(code);

	at = PUT(at, 0x48, 0x69, 0xc7); /* imul $MULTIPLIER, %rdi, %rax */
	at = put_number(at, d->filter_multiplier, 4);
	at = PUT(at, 0x48, 0xc1, 0xe8, FILTER_SHIFT); /* shr $SHIFT, %rax */
	at = PUT(at, 0x25);                           /* and $mask, %eax */
	at = put_number(at, d->filter_mask, 4);
	at = PUT(at, 0x49, 0xbb); /* movabs $filter, %r11 */
	at = put_number(at, d->filter, 8);
	at = PUT(at, 0x41, 0x80, 0x3c, 0x03, 0x00); /* cmpb $0, (%r11, %rax) */
	at = PUT(at, 0x75);                         /* jne */
	at = put_distance(at, code, KEEPING_UNDECIDED);
	PUT(at, 0x0f, 0x1f, 0x44, 0, 0); /* nop */
}

static void put_keeping(uint8_t *code, const struct detour_code *d, unsigned entrance)
{
	uint8_t *at;

	if (entrance == TRAMPOLINE_ALLOCATE) {
		put_keeping_allocate(code, d);
	} else if (entrance == TRAMPOLINE_RELEASE) {
		put_keeping_release(code, d);
	} else {
		at = PUT(put_keep(code), 0xeb); /* jmp */
		put_distance(at, code, KEEPING_UNDECIDED);
	}
	at = code + DETOUR_KEEPING_RESUME;
	at = PUT(at, 0x4c, 0x8b, 0x5c, 0x24, (uint8_t)TRAMPOLINE_KEPT_SECOND); /* mov KEPT_R11(%rsp), %r11 */
	PUT(at, 0x48, 0x8b, 0x44, 0x24, (uint8_t)TRAMPOLINE_KEPT_FIRST);       /* mov KEPT_RAX(%rsp), %rax */
	at = PUT(code + KEEPING_UNDECIDED, 0x31, 0xc0);                        /* xor %eax, %eax */
	at = PUT(at, 0x49, 0xbb);                                              /* KEEPING_BELOW: movabs $data, %r11 */
	at = put_number(at, d->data, 8);
	PUT(at, 0x41, 0xff, 0x23); /* jmp *(%r11) */
}

unsigned detour_code_enter_at(bool keeps, const struct instruction_undo *undo)
{
	return !undo->distance ? 0 : keeps ? KEEPING_UNDO : UNDO;
}

/* Before all else, where it is needed. */
static void put_undo(uint8_t *code, const struct detour_code *d)
{
	uint8_t *at = code + detour_code_enter_at(d->keeps, &d->undo);

	if (!d->undo.distance)
		return;
	entry_code_undo(at, &d->undo);
	at = PUT(at + ENTRY_UNDO_BYTES, 0xeb); /* jmp */
	put_distance(at, code, 0);
}

void detour_code_make(uint8_t code[DETOUR_BYTES], const struct detour_code *d)
{
	static const uint8_t entrances[] = {
#define ENTRANCE_(id, symbol, shape, size, group) TRAMPOLINE_ENTRANCE(shape, size),
		HOOK_LIST(ENTRANCE_)
#undef ENTRANCE_
	};
	const unsigned entrance = d->decides ? entrances[d->hook] : TRAMPOLINE_OTHER;

	memset(code, 0xcc, DETOUR_BYTES);
	put_undo(code, d);
	if (d->keeps) {
		put_keeping(code, d, entrance);
		return;
	}
	if (entrance == TRAMPOLINE_ALLOCATE)
		put_allocate(code, d);
	else if (entrance == TRAMPOLINE_RELEASE)
		put_release(code, d);
	else
		entry_code_far_jump(code, d->trampoline + entrance);
	entry_code_far_jump(code + TO_OTHER, d->trampoline + TRAMPOLINE_OTHER);
	entry_code_far_jump(code + TO_BELOW, d->trampoline + TRAMPOLINE_BELOW);
}
