/* SPDX-License-Identifier: MIT */
/*
 * The C library's description of a thread (struct pthread): where it is, from the thread pointer on.
 *
 *   THREAD_BLOCK_SELF    1: glibc's is at the thread pointer, and words 0 and 2 are its own address
 *   THREAD_BLOCK_BYTES   the kernel's number of the thread is within so many bytes
 *   thread_block_at()    the address that is so far from the thread pointer
 *   thread_block_tls()   where a module's thread-local storage begins, from the thread pointer on, by the distance
 * that its link map has; *fits: so many bytes have room there MUTEX_BYTES          of glibc's pthread_mutex_t, which
 * begins with the same members everywhere
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "arch/x86_64/thread_block.h"
#elif defined(__aarch64__)
#include "arch/aarch64/thread_block.h"
#else
#error "memattach does not know how C libraries describe threads on this architecture"
#endif
