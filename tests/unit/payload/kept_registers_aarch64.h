/* SPDX-License-Identifier: MIT */
/* What test_kept.c needs to know of aarch64. x16 and x17 are for what is between a call and the function. */
#pragma once

#define GENERAL 17u
#define RESULT general[0]
#define ARGUMENTS                                                                                                      \
	{                                                                                                              \
		0, 1, 2, 3                                                                                             \
	}

struct registers {
	uint64_t vector[32][2];
	uint64_t general[GENERAL]; /* x0 to x15, x18 */
};

#define GENERAL_(op, base)                                                                                             \
	op(x1, 520, base) op(x2, 528, base) op(x3, 536, base) op(x4, 544, base) op(x5, 552, base) op(x6, 560, base)    \
		op(x7, 568, base) op(x8, 576, base) op(x9, 584, base) op(x10, 592, base) op(x11, 600, base)            \
			op(x12, 608, base) op(x13, 616, base) op(x14, 624, base) op(x15, 632, base) op(x18, 640, base)
#define VECTORS_(op, base)                                                                                             \
	op(0, base) op(1, base) op(2, base) op(3, base) op(4, base) op(5, base) op(6, base) op(7, base) op(8, base)    \
		op(9, base) op(10, base) op(11, base) op(12, base) op(13, base) op(14, base) op(15, base) op(16, base) \
			op(17, base) op(18, base) op(19, base) op(20, base) op(21, base) op(22, base) op(23, base)     \
				op(24, base) op(25, base) op(26, base) op(27, base) op(28, base) op(29, base)          \
					op(30, base) op(31, base)
#define LOAD(r, at, base) "ldr " #r ", [" #base ", #" #at "]\n"
#define STORE(r, at, base) "str " #r ", [" #base ", #" #at "]\n"
#define LOAD_VECTOR(n, base) "ldr q" #n ", [" #base ", #16 * " #n "]\n"
#define STORE_VECTOR(n, base) "str q" #n ", [" #base ", #16 * " #n "]\n"

_Static_assert(offsetof(struct registers, general) == 512, "as the code below has it");

/* clang-format off */
__asm__(".pushsection .text\n"
        ".globl kept_call, kept_original\n"
        "kept_call:\n"
        ".cfi_startproc\n"
        "stp x29, x30, [sp, #-112]!\n .cfi_def_cfa_offset 112\n .cfi_offset 29, -112\n .cfi_offset 30, -104\n"
        "stp x19, x20, [sp, #16]\n .cfi_offset 19, -96\n .cfi_offset 20, -88\n"
        "str x21, [sp, #32]\n .cfi_offset 21, -80\n"
        "stp d8, d9, [sp, #48]\n stp d10, d11, [sp, #64]\n stp d12, d13, [sp, #80]\n stp d14, d15, [sp, #96]\n"
        "mov x29, sp\n"
        "mov x19, x0\n mov x20, x1\n mov x21, x2\n"
        VECTORS_(LOAD_VECTOR, x19)
        GENERAL_(LOAD, x19)
        "ldr x0, [x19, #512]\n"
        "bl 1f\n"
        "str x0, [x20, #512]\n"
        GENERAL_(STORE, x20)
        VECTORS_(STORE_VECTOR, x20)
        "ldp d8, d9, [sp, #48]\n ldp d10, d11, [sp, #64]\n ldp d12, d13, [sp, #80]\n ldp d14, d15, [sp, #96]\n"
        "ldr x21, [sp, #32]\n"
        "ldp x19, x20, [sp, #16]\n"
        "ldp x29, x30, [sp], #112\n"
        ".cfi_def_cfa_offset 0\n"
        "ret\n"
        ".cfi_endproc\n"
        "1:\n"
        ".cfi_startproc\n"
        "mov x17, x21\n"
        "ldr x16, [x17]\n"
        "br x16\n"
        ".cfi_endproc\n"
        "kept_original:\n"
        ".cfi_startproc\n"
        "adrp x16, kept_found\n add x16, x16, :lo12:kept_found\n"
        "str x0, [x16, #512]\n"
        GENERAL_(STORE, x16)
        VECTORS_(STORE_VECTOR, x16)
        "adrp x16, kept_left\n add x16, x16, :lo12:kept_left\n"
        "ldr x0, [x16, #512]\n"
        GENERAL_(LOAD, x16)
        VECTORS_(LOAD_VECTOR, x16)
        "ret\n"
        ".cfi_endproc\n"
        ".popsection\n");
/* clang-format on */
