/* SPDX-License-Identifier: MIT */
/* An interpreter's functions for test_python_allocators.c, which refer to its rows in the ways that compilers have. */
#pragma once

/* 3.12 and later in a library: the row is at a displacement from a variable's address. */
#define BY_POINTER(name, at)                                                                                           \
	FUNCTION(name, "mov row_pointer(%rip), %rax\nmov (%rax), %rcx\nmov " at "(%rax), %rax\nmov %rcx, %rdi\n"       \
	               "jmp *%rax")
BY_POINTER(PyMem_RawMalloc, "8");
BY_POINTER(PyMem_RawCalloc, "16");
BY_POINTER(PyMem_RawRealloc, "24");
BY_POINTER(PyMem_RawFree, "32");

/* By distance. */
#define DIRECT(name, at) FUNCTION(name, "mov mem_row(%rip), %rdi\njmp *mem_row + " at "(%rip)")
DIRECT(PyMem_Malloc, "8");
DIRECT(PyMem_Calloc, "16");
DIRECT(PyMem_Realloc, "24");
DIRECT(PyMem_Free, "32");

/* The allocator is a part of the function, and so is that of raw, which it passes on to. */
#define WITH_INSIDE(name, at)                                                                                          \
	FUNCTION(name, "push %rbx\nmov object_row + " at "(%rip), %rax\nlea object_row(%rip), %rbx\n"                  \
	               "mov (%rbx), %rdi\ncmp $1, %rax\njne 1f\n"                                                      \
	               "mov row_pointer(%rip), %rdx\nmov (%rdx), %rdi\ncall *" at "(%rdx)\n1: pop %rbx\njmp *%rax")
WITH_INSIDE(PyObject_Malloc, "8");
WITH_INSIDE(PyObject_Calloc, "16");
WITH_INSIDE(PyObject_Realloc, "24");
WITH_INSIDE(PyObject_Free, "32");

FUNCTION(pool_malloc, "lea -1(%rsi), %rax\ncmp $511, %rax\nja 1f\n1: ret\n.skip 600, 0x90");
FUNCTION(pool_calloc, "nop\nret");
FUNCTION(pool_realloc, "nop\nnop\nret");
FUNCTION(pool_free, "nop\nnop\nnop\nret");
FUNCTION(without_limit, "cmp $500, %rsi\nret\n.skip 600, 0x90");

/* Code that refers to a word, the first one to that at REFERRED: mov 0x100 + 8 * i(%rip), %rax */
#define REFERENCE_BYTES 7u
#define REFERENCE(i) ((uint8_t[]){ 0x48, 0x8b, 0x05, (uint8_t)(8 * (i)), 1, 0, 0 })
#define REFERRED 0x107
