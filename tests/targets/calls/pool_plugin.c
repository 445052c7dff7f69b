/* SPDX-License-Identifier: MIT */
/* A library with a pool of its own over malloc, and some bytes of code that nobody needs. */
#include <stdint.h>
#include <stdlib.h>

void *plugin_take(size_t bytes);
void plugin_give(void *block);

__attribute__((noinline, noclone)) void *plugin_take(size_t bytes)
{
	uint64_t *block = malloc(bytes + sizeof *block * 2);

	if (!block)
		return NULL;
	block[0] = bytes;
	return block + 2;
}

__attribute__((noinline, noclone)) void plugin_give(void *given)
{
	uint64_t *block = given;

	if (!block)
		return;
	block[-2] = 0;
	free(block - 2);
}

__asm__(".pushsection .text\n"
        ".p2align 5\n"
        ".globl plugin_spare\n"
        ".type plugin_spare, @function\n"
        "plugin_spare: .fill 64, 1, 0x90\n"
        "ret\n"
        ".size plugin_spare, . - plugin_spare\n"
        ".popsection");
