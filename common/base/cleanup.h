/* SPDX-License-Identifier: MIT */
/* Cleanup attributes for descriptors, streams and heap. Not for the payload. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void cleanup_free_(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close_(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;
		close(*fd);
		errno = saved;
	}
}

static inline void cleanup_fclose_(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define AUTO_FREE __attribute__((cleanup(cleanup_free_)))
#define AUTO_CLOSE __attribute__((cleanup(cleanup_close_)))
#define AUTO_FCLOSE __attribute__((cleanup(cleanup_fclose_)))

/* Returns the value of *fd and gives up its ownership. */
static inline int cleanup_steal_fd(int *fd)
{
	int value = *fd;
	*fd = -1;
	return value;
}

/* The same for heap. */
static inline void *cleanup_steal_pointer_(void *p)
{
	void *value;

	memcpy(&value, p, sizeof value);
	memset(p, 0, sizeof value);
	return value;
}
#define cleanup_steal_pointer(p) ((__typeof__(*(p)))cleanup_steal_pointer_(p))
