/* SPDX-License-Identifier: MIT */
/*
 * A program with an allocator of its own, under names that tell whose it is: called at four places, and its address
 * taken at two, in code and in data. Other code jumps into its rprealloc and its rpaligned_alloc, and seems to call
 * into its rpfree. Letters on the standard input let it change the first byte of its rpmalloc, with an answer: b to a
 * breakpoint, another to a nop. Ends at end of file.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

void *rpmalloc(size_t size);
void *rpcalloc(size_t n, size_t size);
void *rprealloc(void *p, size_t size);
void *rpaligned_alloc(size_t alignment, size_t size);
void rpfree(void *p);

static _Alignas(16) unsigned char arena[1 << 20];
static size_t used;

__attribute__((noinline)) void *rpmalloc(size_t size)
{
	size_t at = __atomic_fetch_add(&used, (size + 15) & ~(size_t)15, __ATOMIC_RELAXED);

	return at < sizeof arena / 2 ? arena + at : NULL;
}

__attribute__((noinline)) void *rpcalloc(size_t n, size_t size)
{
	return rpmalloc(n * size);
}

__attribute__((noinline)) void rpfree(void *p)
{
	if (p == arena)
		__atomic_store_n(&used, 0, __ATOMIC_RELAXED);
}

__attribute__((noinline)) void *rprealloc(void *p, size_t size)
{
	return size <= 16 ? p : NULL;
}

__attribute__((noinline)) void *rpaligned_alloc(size_t alignment, size_t size)
{
	return size <= alignment ? arena : NULL;
}

/* Never called. */
__attribute__((used, noinline)) static void jump_behind_the_entry(void)
{
	__asm__ volatile(".byte 0xe9\n"
	                 ".long rprealloc + 1 - (. + 4)");
}

/* The same, behind two bytes of data that look like the beginning of movabs. */
__attribute__((used, noinline)) static void jump_behind_data(void)
{
	__asm__ volatile("jmp 1f\n"
	                 ".byte 0x48, 0xb8\n"
	                 "1: .byte 0xe9\n"
	                 ".long rpaligned_alloc + 1 - (. + 4)\n"
	                 "nop\nnop\nnop");
}

/* movabs of a number with the bytes of a call: e8 and a distance. */
__attribute__((used, noinline)) static void look_like_a_call(void)
{
	__asm__ volatile(".byte 0x48, 0xb8, 0xe8\n"
	                 ".long rpfree + 1 - (. + 4)\n"
	                 ".byte 0, 0, 0"
	                 :
	                 :
	                 : "rax");
}

void *(*volatile in_data)(size_t) = rpmalloc;
void (*volatile in_code)(void *);

static void change(unsigned char *code, unsigned char to)
{
	unsigned char *page = code - ((uintptr_t)code & 4095);

	if (mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
		_exit(1);
	*code = to;
	if (write(STDOUT_FILENO, "done.\n", 6) != 6)
		_exit(1);
}

int main(void)
{
	char byte;

	in_code = rpfree;
	void *a = rpmalloc(10), *b = rpmalloc(20), *c = rpcalloc(3, 4);
	rpfree(b);
	in_code(a);
	in_code(c);
	in_code(in_data(5));
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	while (read(STDIN_FILENO, &byte, 1) == 1)
		change((unsigned char *)in_data, byte == 'b' ? 0xcc : 0x90);
	return 0;
}
