/* SPDX-License-Identifier: MIT */
/* An interpreter's functions for test_python_allocators.c, which refer to its rows in the ways that compilers have. */
#pragma once

/* In a library: the row is at a displacement from a variable's address, which a GOT entry holds. */
#define BY_POINTER(name, at)                                                                                           \
	FUNCTION(name, "adrp x2, row_pointer\nldr x2, [x2, #:lo12:row_pointer]\nldr x0, [x2]\nldr x2, [x2, #" at "]\n" \
	               "br x2")
/* Behind a jump there is what was known before the branch: the allocator is in line here, and uses the register. */
FUNCTION(PyMem_RawMalloc, "adrp x2, row_pointer\nldr x2, [x2, #:lo12:row_pointer]\nldr x3, [x2, #8]\ncmp x3, x0\n"
                          "b.ne 1f\nmov x2, x1\nb pool_malloc\n1: ldr x0, [x2]\nbr x3");
BY_POINTER(PyMem_RawCalloc, "16");
BY_POINTER(PyMem_RawRealloc, "24");
FUNCTION(PyMem_RawFree, "adrp x2, row_pointer\nldr x2, [x2, #:lo12:row_pointer]\nadd x3, x2, #16\nldr x0, [x2]\n"
                        "ldr x3, [x3, #16]\nbr x3");

/* By distance, two words at once. */
#define DIRECT(name, at)                                                                                               \
	FUNCTION(name, "adrp x2, mem_row\nadd x2, x2, #:lo12:mem_row\nldr x0, [x2]\nldr x2, [x2, #" at "]\nbr x2")
FUNCTION(PyMem_Malloc, "adrp x2, mem_row\nadd x2, x2, #:lo12:mem_row\nldp x0, x2, [x2]\nbr x2");
DIRECT(PyMem_Calloc, "16");
DIRECT(PyMem_Realloc, "24");
DIRECT(PyMem_Free, "32");

/* The allocator is a part of the function, and so is that of raw, which it passes on to. */
#define WITH_INSIDE(name, at)                                                                                          \
	FUNCTION(name, "stp x29, x30, [sp, #-16]!\nadrp x2, object_row\nadd x3, x2, #:lo12:object_row\n"               \
	               "ldr x4, [x3, #" at "]\nldr x0, [x3]\ncmp x4, x1\nb.ne 1f\n"                                    \
	               "adrp x5, row_pointer\nldr x5, [x5, #:lo12:row_pointer]\nldr x0, [x5]\nldr x6, [x5, #" at "]\n" \
	               "blr x6\n1: ldp x29, x30, [sp], #16\nbr x4")
WITH_INSIDE(PyObject_Malloc, "8");
WITH_INSIDE(PyObject_Calloc, "16");
WITH_INSIDE(PyObject_Realloc, "24");
WITH_INSIDE(PyObject_Free, "32");

FUNCTION(pool_malloc, "sub x0, x1, #1\ncmp x0, #511\nb.hi 1f\n1: ret\n.rept 150\nnop\n.endr");
FUNCTION(pool_calloc, "nop\nret");
FUNCTION(pool_realloc, "nop\nnop\nret");
FUNCTION(pool_free, "nop\nnop\nnop\nret");
FUNCTION(without_limit, "cmp x1, #500\nret\n.rept 150\nnop\n.endr");

/* Code that refers to a word, the first one to that at REFERRED: adr x1, 0x100; ldr x0, [x1] */
#define REFERENCE_BYTES 8u
#define REFERENCE(i) ((uint32_t[]){ 0x10000801, 0xf9400020 + 0 * (i) })
#define REFERRED 0x100
