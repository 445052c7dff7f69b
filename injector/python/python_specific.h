/* SPDX-License-Identifier: MIT */
/*
 * A thread's own state, as code inside of the thread would find it: the value of the interpreter's thread-specific key
 * (pthread_getspecific). glibc keeps it in the thread's control block, and describes where to debuggers by
 * _thread_db_pthread_specific and its kin (nptl_db), which are exported or, until 2.33, in .symtab of libpthread. Other
 * C libraries do not tell.
 *
 * A thread is named by the address of its control block (struct pthread), which is also what pthread_self() returns and
 * thread states hold. It is at the thread pointer or below it, by the machine.
 */
#pragma once

#include "python/python_stack.h"

struct python_specific {
	uint32_t block_below;    /* struct python_layout */
	uint32_t offset;         /* struct python_layout, specific_offset */
	uint32_t tid_offset;     /* from the block to the kernel's number of the thread */
	uint32_t leaving_offset; /* struct python_layout */
	uint32_t list_offset; /* from the block to its node in the list of all, where the block does not name itself */
	uint32_t list_previous; /* … and in that, to the address of the one before; it begins with that of the next */
	/* From a module's link map to the number of its block of thread-local storage, and to the distance of that
	   block from each thread pointer. 0: it does not tell. */
	uint32_t link_number, link_distance;
	uint64_t key_table; /* struct python_layout */
};

/* -ENOSYS: the C library does not tell, or something else than is known. */
int python_specific_find(struct python_specific *s, const struct modules *modules, const struct maps *maps,
                         const struct target_memory *tm, struct err *e) WARN_UNUSED;

/* Is a thread's control block there? Which has not to be one of a thread that still runs. */
bool python_specific_is_thread(const struct python_view *v, const struct python_specific *s, uint64_t thread);

/*
 * What the key of the interpreter holds for the thread, 0: nothing, as what was set before the key was made is.
 * -EINVAL: there is no key, or no thread of this C library.
 */
int python_specific_value(const struct python_view *v, const struct python_specific *s, uint64_t thread,
                          uint64_t *state, struct err *e) WARN_UNUSED;

/* The kernel's number of the thread as the target sees it; 0: not known. */
int32_t python_specific_tid(const struct python_view *v, const struct python_specific *s, uint64_t thread);
