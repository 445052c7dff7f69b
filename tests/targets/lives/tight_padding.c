/* SPDX-License-Identifier: MIT */
/*
 * A program that has as few unused bytes behind its code as a stub needs: no more are zero there, and none behind that
 * of its libraries and in the vdso. tight_padding_code.S sees to it that the page has so many.
 */
#include "victim.h"

#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "arch/stub.h"

#define PAGE 4096ul

/* Not zero from there on to the end of the page. */
static void fill(uintptr_t from)
{
	char used[PAGE];
	const size_t bytes = -from % PAGE;
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	memset(used, 0xa5, sizeof used);
	if (mem < 0 || pwrite(mem, used, bytes, (off_t)from) != (ssize_t)bytes)
		victim_wrong("the padding at %lx cannot be written", (unsigned long)from);
	close(mem);
}

static bool is_vdso(const struct dl_phdr_info *info)
{
	return strstr(info->dlpi_name, "vdso") != NULL;
}

static int fill_behind(struct dl_phdr_info *info, size_t size, void *left)
{
	const bool program = info->dlpi_name[0] == 0;
	const size_t bytes = program ? (size_t)(stub_code_end - stub_code) + sizeof(struct stub_data) : 0;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t end = (info->dlpi_addr + p->p_vaddr + p->p_memsz + 15) & ~(uintptr_t)15;
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		if (is_vdso(info)) {
			const ElfW(Ehdr) *h = (const void *)(info->dlpi_addr + p->p_vaddr);
			const uintptr_t last = (uintptr_t)h + h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;
			end = last > end ? (last + 15) & ~(uintptr_t)15 : end;
		}
		if (end % PAGE && -end % PAGE > bytes)
			fill(end + bytes);
		if (program && end % PAGE)
			*(size_t *)left = -end % PAGE;
	}
	return 0;
}

int main(void)
{
	size_t left = 0;

	victim_start("tight_padding");
	dl_iterate_phdr(fill_behind, &left);
	if (left < (size_t)(stub_code_end - stub_code) + sizeof(struct stub_data))
		victim_wrong("it was linked with %zu bytes behind its code", left);
	return victim_blocks();
}
