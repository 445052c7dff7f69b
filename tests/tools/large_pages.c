/* SPDX-License-Identifier: MIT */
/* Preloaded: a kernel with pages of 64 KiB, for who asks the C library. */
#include <dlfcn.h>
#include <unistd.h>

long sysconf(int name)
{
	long (*next)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");

	return name == _SC_PAGESIZE ? 65536 : next(name);
}
