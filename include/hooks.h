/* SPDX-License-Identifier: MIT */
/*
 * The list of hooked functions: the single source for the payload's entries, the
 * injector's GOT entry search, the documentation and the tests.
 *
 * HOOK_LIST(X) expands X(id, symbol, shape, size, group) for each function, where
 *
 *   id      C identifier; enum hook_id has HOOK_<id>
 *   symbol  the name in the dynamic symbol table
 *   shape   what the call does with blocks (enum hook_shape)
 *   size    where the requested size is among the integer arguments (enum hook_size)
 *   group   which option turns the function on (enum hook_group)
 *
 * The numeric ids are stored in dump files (dump_live_record.hook): append only.
 */
#pragma once

/* What a call does with blocks of memory. Plain macros: the assembler reads this file too. */
#define SHAPE_ALLOC 0   /* returns a new block, or NULL */
#define SHAPE_OUT 1     /* returns 0 and stores a new block through argument 0 (posix_memalign) */
#define SHAPE_REALLOC 2 /* takes the block in argument 0, returns its successor, or NULL: unchanged */
#define SHAPE_RESIZE 3  /* resizes the block in argument 0 in place, returns its real size (xallocx) */
#define SHAPE_FREE 4    /* releases the block in argument 0 */
#define SHAPE_MAP 5     /* mmap: argument 1 bytes come, with MAP_FIXED in place of others; failure is (void *)-1 */
#define SHAPE_UNMAP 6   /* munmap: releases argument 1 bytes from argument 0 on, of whatever mappings they are */
#define SHAPE_REMAP 7   /* mremap: argument 1 bytes at argument 0 go, argument 2 bytes come; failure is (void *)-1 */
/*
 * CPython's allocator for objects. Argument 0 is a context. Blocks of 1 to POOL_MAX bytes come from arenas of its own;
 * for all others it calls malloc or calloc, which are on the list and count. Only realloc may do either for any size:
 * it counts, and what it calls does not (TRAMPOLINE_OUTER). The shapes from here on have the block in argument 1.
 */
#define SHAPE_POOL 8          /* as SHAPE_ALLOC, for requests of 1 to POOL_MAX bytes; others are passed on */
#define SHAPE_POOL_REALLOC 9  /* as SHAPE_REALLOC, but that it never frees for a size of 0 */
#define SHAPE_POOL_FREE 10    /* as SHAPE_FREE */
#define SHAPE_COUNT 11        /* takes and makes no block: the call is counted, and goes on to the original */
#define POOL_MAX 512          /* SMALL_REQUEST_THRESHOLD */
#define POOL_ALIGNMENT 16     /* ALIGNMENT */

/* Where the requested size in bytes is. */
#define SIZE_NONE 0
#define SIZE_ARG0 1
#define SIZE_ARG1 2
#define SIZE_ARG2 3
#define SIZE_ARG0_X_ARG1 4 /* product; an overflow is left to the allocator to refuse */
#define SIZE_ARG1_X_ARG2 5

/* Which functions are hooked together. */
#define GROUP_MALLOC 0   /* the C and C++ allocation functions: always */
#define GROUP_JEMALLOC 1 /* jemalloc's own interface: always, where a module imports it */
#define GROUP_MMAP 2     /* only with --mmap */
#define GROUP_PYTHON 3   /* in the interpreter's table of allocators only, never by name: --python-allocators */
#define GROUP_PYTHON_CODE 4 /* in a word of the interpreter's data, where Python frames are recorded; never by name */

#define HOOK_LIST(X)                                                                                     \
	X(malloc, "malloc", SHAPE_ALLOC, SIZE_ARG0, GROUP_MALLOC)                                        \
	X(calloc, "calloc", SHAPE_ALLOC, SIZE_ARG0_X_ARG1, GROUP_MALLOC)                                 \
	X(realloc, "realloc", SHAPE_REALLOC, SIZE_ARG1, GROUP_MALLOC)                                    \
	X(reallocarray, "reallocarray", SHAPE_REALLOC, SIZE_ARG1_X_ARG2, GROUP_MALLOC)                   \
	X(free, "free", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)                                             \
	X(cfree, "cfree", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)                                           \
	X(posix_memalign, "posix_memalign", SHAPE_OUT, SIZE_ARG2, GROUP_MALLOC)                          \
	X(aligned_alloc, "aligned_alloc", SHAPE_ALLOC, SIZE_ARG1, GROUP_MALLOC)                          \
	X(memalign, "memalign", SHAPE_ALLOC, SIZE_ARG1, GROUP_MALLOC)                                    \
	X(valloc, "valloc", SHAPE_ALLOC, SIZE_ARG0, GROUP_MALLOC)                                        \
	X(pvalloc, "pvalloc", SHAPE_ALLOC, SIZE_ARG0, GROUP_MALLOC)                                      \
	X(free_sized, "free_sized", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)                                 \
	X(free_aligned_sized, "free_aligned_sized", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)                 \
	X(new, "_Znwm", SHAPE_ALLOC, SIZE_ARG0, GROUP_MALLOC)                                            \
	X(new_array, "_Znam", SHAPE_ALLOC, SIZE_ARG0, GROUP_MALLOC)                                      \
	X(new_nothrow, "_ZnwmRKSt9nothrow_t", SHAPE_ALLOC, SIZE_ARG0, GROUP_MALLOC)                      \
	X(new_array_nothrow, "_ZnamRKSt9nothrow_t", SHAPE_ALLOC, SIZE_ARG0, GROUP_MALLOC)                \
	X(new_aligned, "_ZnwmSt11align_val_t", SHAPE_ALLOC, SIZE_ARG0, GROUP_MALLOC)                     \
	X(new_array_aligned, "_ZnamSt11align_val_t", SHAPE_ALLOC, SIZE_ARG0, GROUP_MALLOC)               \
	X(new_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t", SHAPE_ALLOC, SIZE_ARG0,             \
	  GROUP_MALLOC)                                                                                  \
	X(new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t", SHAPE_ALLOC, SIZE_ARG0,       \
	  GROUP_MALLOC)                                                                                  \
	X(delete, "_ZdlPv", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)                                         \
	X(delete_array, "_ZdaPv", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)                                   \
	X(delete_sized, "_ZdlPvm", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)                                  \
	X(delete_array_sized, "_ZdaPvm", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)                            \
	X(delete_nothrow, "_ZdlPvRKSt9nothrow_t", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)                   \
	X(delete_array_nothrow, "_ZdaPvRKSt9nothrow_t", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)             \
	X(delete_aligned, "_ZdlPvSt11align_val_t", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)                  \
	X(delete_array_aligned, "_ZdaPvSt11align_val_t", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)            \
	X(delete_sized_aligned, "_ZdlPvmSt11align_val_t", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)           \
	X(delete_array_sized_aligned, "_ZdaPvmSt11align_val_t", SHAPE_FREE, SIZE_NONE, GROUP_MALLOC)     \
	X(delete_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t", SHAPE_FREE, SIZE_NONE,          \
	  GROUP_MALLOC)                                                                                  \
	X(delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t", SHAPE_FREE, SIZE_NONE,    \
	  GROUP_MALLOC)                                                                                  \
	X(mallocx, "mallocx", SHAPE_ALLOC, SIZE_ARG0, GROUP_JEMALLOC)                                    \
	X(rallocx, "rallocx", SHAPE_REALLOC, SIZE_ARG1, GROUP_JEMALLOC)                                  \
	X(xallocx, "xallocx", SHAPE_RESIZE, SIZE_ARG1, GROUP_JEMALLOC)                                   \
	X(sdallocx, "sdallocx", SHAPE_FREE, SIZE_NONE, GROUP_JEMALLOC)                                   \
	X(dallocx, "dallocx", SHAPE_FREE, SIZE_NONE, GROUP_JEMALLOC)                                     \
	X(mmap, "mmap", SHAPE_MAP, SIZE_ARG1, GROUP_MMAP)                                                \
	X(mmap64, "mmap64", SHAPE_MAP, SIZE_ARG1, GROUP_MMAP)                                            \
	X(munmap, "munmap", SHAPE_UNMAP, SIZE_NONE, GROUP_MMAP)                                          \
	X(mremap, "mremap", SHAPE_REMAP, SIZE_ARG2, GROUP_MMAP)                                          \
	X(python_malloc, "_PyObject_Malloc", SHAPE_POOL, SIZE_ARG1, GROUP_PYTHON)                        \
	X(python_calloc, "_PyObject_Calloc", SHAPE_POOL, SIZE_ARG1_X_ARG2, GROUP_PYTHON)                 \
	X(python_realloc, "_PyObject_Realloc", SHAPE_POOL_REALLOC, SIZE_ARG2, GROUP_PYTHON)              \
	X(python_free, "_PyObject_Free", SHAPE_POOL_FREE, SIZE_NONE, GROUP_PYTHON)                       \
	X(python_code, "PyCode_Type.tp_dealloc", SHAPE_COUNT, SIZE_NONE, GROUP_PYTHON_CODE)

#ifndef __ASSEMBLER__
#define HOOK_ENUM_(id, symbol, shape, size, group) HOOK_##id,
enum hook_id { HOOK_LIST(HOOK_ENUM_) HOOK_COUNT };
#undef HOOK_ENUM_
#endif
