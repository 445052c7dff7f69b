/* SPDX-License-Identifier: MIT */
/*
 * forged_stub PLACE: behind its code is what a memattach that died would have left, with a signal frame over the stub's
 * own code (code), over its data (data), in code that is used (main), beyond all memory (beyond), or nowhere (none).
 */
#include "victim.h"

#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "arch/stub.h"

#define PAGE 4096ul
#define FRAME_BYTES 1008u

/* The padding behind the code of the program. */
static int find_padding(struct dl_phdr_info *info, size_t size, void *found)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			*(uintptr_t *)found = (info->dlpi_addr + p->p_vaddr + p->p_memsz + 15) & ~(uintptr_t)15;
	}
	return 1; /* the program is the first */
}

static uint64_t frame_at(const char *place, uintptr_t padding, size_t code)
{
	if (!strcmp(place, "code"))
		return padding;
	if (!strcmp(place, "data"))
		return padding + (code & ~(size_t)15);
	if (!strcmp(place, "main"))
		return (uintptr_t)frame_at & ~(uintptr_t)15;
	return !strcmp(place, "beyond") ? ~(uint64_t)15 : 0;
}

static void forge(const char *place)
{
	const size_t code = (size_t)(stub_code_end - stub_code);
	struct stub_data data = { .magic = STUB_MAGIC, .tid = (uint64_t)getpid() };
	char stub[PAGE] = { 0 };
	uintptr_t padding = 0;

	dl_iterate_phdr(find_padding, &padding);
	if (-padding % PAGE < code + sizeof data)
		victim_wrong("it was linked with %lu bytes behind its code", -padding % PAGE);
	stub_data_set_frame(&data, frame_at(place, padding, code), FRAME_BYTES);
	memcpy(stub, stub_code, code);
	memcpy(stub + code, &data, sizeof data);
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (mem < 0 || pwrite(mem, stub, code + sizeof data, (off_t)padding) < 0)
		victim_wrong("the padding at %lx cannot be written", (unsigned long)padding);
	close(mem);
}

int main(int argc, char **argv)
{
	victim_start("forged_stub");
	forge(argc > 1 ? argv[1] : "none");
	return victim_blocks();
}
