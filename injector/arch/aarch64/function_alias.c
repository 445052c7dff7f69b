/* SPDX-License-Identifier: MIT */
#include "arch/function_alias.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sandbox/child.h"

#define TAGS (0xffull << 56)
#define TAG (1ull << 56)
#define TRY_MS 1000

uint64_t function_alias_place(uint64_t pointer)
{
	return pointer & ~TAGS;
}

struct function_alias function_alias_find(uint64_t pointer, const uint8_t around[2 * FUNCTION_ALIAS_AROUND])
{
	const uint64_t function = function_alias_place(pointer);

	(void)around;
	return (struct function_alias){ function, pointer == function ? pointer | TAG : pointer };
}

static void end(void)
{
	_exit(0);
}

const char *function_alias_obstacle(void)
{
	void (*const alias)(void) = (void (*)(void))((uintptr_t)end | TAG);
	const pid_t child = child_start(SIGKILL);

	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		prctl(PR_SET_DUMPABLE, 0); /* no core */
		alias();
	}
	if (child > 0 && child_ends_within(child, TRY_MS) && child_wait(child) == 0)
		return NULL;
	if (child > 0)
		child_end(child);
	return "this machine is not shown to ignore tags of the addresses that it branches to";
}
