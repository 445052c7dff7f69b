/* SPDX-License-Identifier: MIT */
/*
 * The program of bench/reach in C, and in C++ with new and delete. Each round keeps KEPT blocks of BYTES bytes, makes
 * and frees others, and looks at an older block: "ROUND number LIVE bytes-kept OK", or WRONG where the content is not
 * what it was. A second thread makes and frees blocks all the time. The programs beside this one do the same in their
 * language.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT 8
#define BYTES 10000
#define BLOCKS_MAX 1000000u
#define PAUSE_US 20000

static unsigned char *kept[BLOCKS_MAX];

#ifdef __cplusplus
static void *get(size_t bytes)
{
	return new unsigned char[bytes];
}

static void give_back(void *block)
{
	delete[] static_cast<unsigned char *>(block);
}
#else
static void *get(size_t bytes)
{
	return malloc(bytes);
}

static void give_back(void *block)
{
	free(block);
}
#endif

static void churn(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned char *block = (unsigned char *)get(16 + i * 37 % 2000);
		*(volatile unsigned char *)block = 1;
		give_back(block);
	}
}

static void *churn_for_ever(void *ignored)
{
	for (;;) {
		churn(100);
		usleep(1000);
	}
	return ignored;
}

static int block_is_right(unsigned i)
{
	for (unsigned at = 0; at < BYTES; at++)
		if (kept[i][at] != (unsigned char)(i % 251))
			return 0;
	return 1;
}

int main(void)
{
	unsigned count = 0;
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	if (pthread_create(&thread, NULL, churn_for_ever, NULL))
		return 1;
	for (unsigned round = 1; count + KEPT < BLOCKS_MAX; round++) {
		for (unsigned i = 0; i < KEPT; i++, count++) {
			kept[count] = (unsigned char *)get(BYTES);
			memset(kept[count], (int)(count % 251), BYTES);
		}
		churn(200);
		printf("ROUND %u LIVE %zu %s\n", round, (size_t)count * BYTES,
		       block_is_right(round * 7 % count) ? "OK" : "WRONG");
		usleep(PAUSE_US);
	}
	return 0;
}
