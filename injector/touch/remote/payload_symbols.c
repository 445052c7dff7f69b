/* SPDX-License-Identifier: MIT */
#include "touch/remote/payload_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "payload_image.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* The image is our own build: section headers are there and sound. */
int payload_symbol(const char *name, uint64_t *offset, struct err *e)
{
	const unsigned char *image = payload_image;
	Elf64_Ehdr header;

	memcpy(&header, image, sizeof header);
	for (unsigned i = 0; i < header.e_shnum; i++) {
		Elf64_Shdr symtab, strtab;
		memcpy(&symtab, image + header.e_shoff + i * sizeof symtab, sizeof symtab);
		if (symtab.sh_type != SHT_DYNSYM)
			continue;
		memcpy(&strtab, image + header.e_shoff + symtab.sh_link * sizeof strtab, sizeof strtab);
		for (uint64_t at = 0; at < symtab.sh_size; at += sizeof(Elf64_Sym)) {
			Elf64_Sym symbol;
			memcpy(&symbol, image + symtab.sh_offset + at, sizeof symbol);
			if (symbol.st_shndx != SHN_UNDEF &&
			    !strcmp((const char *)image + strtab.sh_offset + symbol.st_name, name)) {
				*offset = symbol.st_value;
				return 0;
			}
		}
	}
	return err_set(e, ENOENT, "the payload has no symbol %s", name);
}

/*
 * Kernels before 6.3 know neither flag. vm.memfd_noexec=2 refuses a file that could be given to execve(); one that
 * never can be may still be mapped executable, as the text of any library that is read from a file without the x bit.
 */
static int create(struct err *e)
{
	int fd = memfd_create(PAYLOAD_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(PAYLOAD_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 && errno == EACCES)
		fd = memfd_create(PAYLOAD_MEMFD_NAME, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	return fd >= 0 ? fd : err_sys(e, "memfd_create");
}

int payload_symbols_memfd(int *fd, struct err *e)
{
	size_t bytes = (size_t)(payload_image_end - payload_image);
	int new = create(e);

	if (new < 0)
		return new;
	for (size_t done = 0; done < bytes;) {
		ssize_t n = write(new, payload_image + done, bytes - done);
		if (n <= 0) {
			int rc = err_sys(e, "cannot write the payload's memfd");
			close(new);
			return rc;
		}
		done += (size_t)n;
	}
	/* A loader may read it through a duplicate, which shares the place (handed_open.h). */
	lseek(new, 0, SEEK_SET);
	/* The executable mapping must not be changed under the target by anybody. */
	if (fcntl(new, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
		int rc = err_sys(e, "cannot seal the payload's memfd");
		close(new);
		return rc;
	}
	*fd = new;
	return 0;
}
