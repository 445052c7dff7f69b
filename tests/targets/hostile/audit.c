/* SPDX-License-Identifier: MIT */
/* An auditor of the loader (LD_AUDIT) that needs much stack, and takes a while. */
#include <link.h>
#include <string.h>
#include <time.h>

static volatile unsigned char sum;

unsigned la_version(unsigned version)
{
	return version;
}

unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
	volatile unsigned char much[300000];
	const struct timespec t = { .tv_nsec = 1000000 };

	(void)map, (void)namespace, (void)cookie;
	for (unsigned i = 0; i < sizeof much; i++)
		much[i] = (unsigned char)i;
	nanosleep(&t, NULL);
	sum += much[sum];
	return 0;
}
