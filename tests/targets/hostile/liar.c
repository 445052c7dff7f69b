/* SPDX-License-Identifier: MIT */
/*
 * A program that lies to whoever looks at it: more modules on its loader's list, which promise too much, and names that
 * are made for somebody else's terminal. Argument 1:
 *
 *     tables N M       N modules with a string table of M MiB each, all of one sparse file: it costs this process
 *                      nothing
 *     symbols N M      the same, with symbols of M MiB
 *     relocations N M  the same, with relocations of M MiB
 *     slots N          one module with N relocations that name malloc, each for a word of its own
 *     frames N         one module whose .eh_frame has N CIEs, and N FDEs that name the first of them
 *     waiting          a module whose name is in memory that waits for somebody who never answers (userfaultfd)
 *     newline FILE     FILE copied to "lib\012x.so" (with a backslash) in the working directory, loaded, and other
 *                      headers in memory than in the file: what has the name with a newline is another file
 *     names FILE       FILE copied and loaded under a name with escape sequences and bytes that are no UTF-8; the same
 *                      for the thread's name; after the line "map" a memory file is mapped that has memattach's name
 *
 * Its lists end in modules that its loader would fall over: those of the first six are to be looked at, not attached
 * to.
 */
#include "victim.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u
#define DYNAMIC_AT 512u
#define HDR_AT 1024u

static int new_file(uint64_t bytes)
{
	int fd = (int)syscall(SYS_memfd_create, "liar", 0);

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		exit(2);
	return fd;
}

static char *map_file(int fd, uint64_t bytes)
{
	char *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);

	if (m == MAP_FAILED)
		exit(2);
	return m;
}

/* Headers of an image of bytes with three program headers. */
static Elf64_Phdr *write_headers(char *m, uint64_t bytes)
{
	Elf64_Ehdr *h = (void *)m;
	Elf64_Phdr *p = (void *)(m + sizeof *h);

	memcpy(h->e_ident, "\177ELF\2\1\1", 7);
	h->e_type = ET_DYN;
	h->e_machine = EM_X86_64;
	h->e_version = 1;
	h->e_phoff = sizeof *h;
	h->e_ehsize = sizeof *h;
	h->e_phentsize = sizeof *p;
	h->e_phnum = 3;
	p[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = bytes, .p_memsz = bytes };
	p[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
		             .p_flags = PF_R,
		             .p_offset = DYNAMIC_AT,
		             .p_vaddr = DYNAMIC_AT,
		             .p_filesz = 128,
		             .p_memsz = 128 };
	p[2] = (Elf64_Phdr){ .p_type = PT_NULL };
	return p;
}

static void append_module(struct link_map *x, char *image, const char *name)
{
	struct link_map *last = _r_debug.r_map;

	while (last->l_next)
		last = last->l_next;
	x->l_addr = (uintptr_t)image;
	x->l_name = (char *)(uintptr_t)name;
	x->l_ld = (void *)(image + DYNAMIC_AT);
	x->l_prev = last;
	last->l_next = x;
}

static void promise(const char *what, unsigned count, uint64_t bytes)
{
	struct link_map *maps = calloc(count, sizeof *maps);
	int fd = new_file(bytes + PAGE);

	for (unsigned i = 0; i < count; i++) {
		char *m = map_file(fd, bytes + PAGE);
		Elf64_Dyn *d = (void *)(m + DYNAMIC_AT);
		uint32_t *hash = (void *)(m + HDR_AT);

		write_headers(m, bytes + PAGE);
		if (!strcmp(what, "tables")) {
			d[0] = (Elf64_Dyn){ DT_STRTAB, { PAGE } };
			d[1] = (Elf64_Dyn){ DT_STRSZ, { bytes } };
		} else {
			d[0] = (Elf64_Dyn){ DT_STRTAB, { 768 } };
			d[1] = (Elf64_Dyn){ DT_STRSZ, { 16 } };
			d[2] = (Elf64_Dyn){ DT_SYMTAB, { PAGE } };
		}
		if (!strcmp(what, "symbols")) {
			hash[1] = (uint32_t)(bytes / sizeof(Elf64_Sym));
			d[3] = (Elf64_Dyn){ DT_HASH, { HDR_AT } };
		} else if (!strcmp(what, "relocations")) {
			d[3] = (Elf64_Dyn){ DT_RELA, { PAGE } };
			d[4] = (Elf64_Dyn){ DT_RELASZ, { bytes } };
			d[5] = (Elf64_Dyn){ DT_RELAENT, { sizeof(Elf64_Rela) } };
		}
		append_module(&maps[i], m, "libx.so");
	}
	close(fd);
}

static void many_entries(uint64_t count)
{
	const uint64_t words = 2 * PAGE + count * sizeof(Elf64_Rela), bytes = words + count * sizeof(uint64_t);
	int fd = new_file(bytes);
	char *m = map_file(fd, bytes);
	Elf64_Dyn *d = (void *)(m + DYNAMIC_AT);
	Elf64_Sym *symbols = (void *)(m + PAGE);
	Elf64_Rela *relocations = (void *)(m + 2 * PAGE);

	write_headers(m, bytes);
	memcpy(m + 769, "malloc", 7);
	symbols[1] = (Elf64_Sym){ .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) };
	((uint32_t *)(void *)(m + HDR_AT))[1] = 2;
	for (uint64_t i = 0; i < count; i++)
		relocations[i] = (Elf64_Rela){ words + i * sizeof(uint64_t), ELF64_R_INFO(1, R_X86_64_64), 0 };
	d[0] = (Elf64_Dyn){ DT_STRTAB, { 768 } };
	d[1] = (Elf64_Dyn){ DT_STRSZ, { 16 } };
	d[2] = (Elf64_Dyn){ DT_SYMTAB, { PAGE } };
	d[3] = (Elf64_Dyn){ DT_HASH, { HDR_AT } };
	d[4] = (Elf64_Dyn){ DT_RELA, { 2 * PAGE } };
	d[5] = (Elf64_Dyn){ DT_RELASZ, { count * sizeof(Elf64_Rela) } };
	d[6] = (Elf64_Dyn){ DT_RELAENT, { sizeof(Elf64_Rela) } };
	append_module(calloc(1, sizeof(struct link_map)), m, "libentries.so");
	close(fd);
}

/* A CIE of 20 bytes: version 1, no augmentation, factors 1 and -8, return address 16, CFA = rsp + 8, 16 at CFA - 8. */
static char *put_cie(char *at)
{
	*(uint32_t *)(void *)at = 16;
	memcpy(at + 8, "\1\0\1\x78\x10\x0c\7\x08\x90\1\0\0", 12);
	return at + 20;
}

static char *put_fde(char *at, const char *cie, uint64_t start)
{
	*(uint32_t *)(void *)at = 24;
	*(uint32_t *)(void *)(at + 4) = (uint32_t)(at + 4 - cie);
	memcpy(at + 8, &start, sizeof start);
	start = 1;
	memcpy(at + 16, &start, sizeof start);
	return at + 28;
}

static void many_frames(uint64_t count)
{
	const uint64_t bytes = (PAGE + count * (20 + 28 + 28) + 2 * PAGE) & ~(uint64_t)(PAGE - 1);
	int fd = new_file(bytes);
	char *m = map_file(fd, bytes);
	Elf64_Phdr *p = write_headers(m, bytes);
	Elf64_Dyn *d = (void *)(m + DYNAMIC_AT);
	char *hdr = m + HDR_AT, *at = m + PAGE;

	p[2] = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME,
		             .p_flags = PF_R,
		             .p_offset = HDR_AT,
		             .p_vaddr = HDR_AT,
		             .p_filesz = 12,
		             .p_memsz = 12 };
	d[0] = (Elf64_Dyn){ DT_STRTAB, { 768 } };
	d[1] = (Elf64_Dyn){ DT_STRSZ, { 16 } };
	memcpy(hdr, "\1\x1b\xff\xff", 4); /* a pc-relative pointer of four bytes */
	*(int32_t *)(void *)(hdr + 4) = (int32_t)(PAGE - HDR_AT - 4);
	for (uint64_t i = 0; i < count; i++)
		at = put_fde(put_cie(at), at, PAGE + i % PAGE);
	for (uint64_t i = 0; i < count; i++)
		at = put_fde(at, m + PAGE, PAGE + i % PAGE);
	append_module(calloc(1, sizeof(struct link_map)), m, "libframes.so");
	close(fd);
}

static bool wait_for_nobody(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	char *image = map_file(new_file(2 * PAGE), 2 * PAGE);
	char *name = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = { .range = { (uintptr_t)name, PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
		return false;
	write_headers(image, 2 * PAGE);
	append_module(calloc(1, sizeof(struct link_map)), image, name);
	return true;
}

static struct link_map *load_copy(const char *file, const char *name)
{
	char bytes[65536];
	int from = open(file, O_RDONLY), to = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	for (ssize_t n; (n = read(from, bytes, sizeof bytes)) > 0;)
		if (write(to, bytes, (size_t)n) != n)
			exit(2);
	close(from);
	close(to);
	char path[PATH_MAX];
	snprintf(path, sizeof path, "./%s", name);
	struct link_map *m = dlopen(path, RTLD_NOW);
	if (!m) {
		victim_say("CANNOT %s", dlerror());
		exit(2);
	}
	return m;
}

static void load_with_newline(const char *file)
{
	char *e = (char *)(uintptr_t)load_copy(file, "lib\\012x.so")->l_addr;
	Elf64_Phdr *p = (void *)(e + ((Elf64_Ehdr *)(void *)e)->e_phoff);

	mprotect(e, PAGE, PROT_READ | PROT_WRITE);
	p[0].p_paddr ^= 1;
	mprotect(e, PAGE, PROT_READ);
}

#define EVIL                                                                                                           \
	"\033[2J\033]0;title\007\n\xff\xfe\xc2\x9b"                                                                    \
	"1m"

static void map_under_our_name(void)
{
	int fd = (int)syscall(SYS_memfd_create, "memattach-payload " EVIL, 0);

	if (ftruncate(fd, PAGE) || mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		victim_wrong("mmap: %s", strerror(errno));
	victim_say("MAPPED");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "waiting";
	char line[100];
	uint64_t random = 5;

	victim_start("liar");
	if (argc > 3)
		promise(mode, (unsigned)atoi(argv[2]), (uint64_t)atoi(argv[3]) << 20);
	else if (!strcmp(mode, "frames"))
		many_frames(strtoull(argv[2], NULL, 10));
	else if (!strcmp(mode, "slots"))
		many_entries(strtoull(argv[2], NULL, 10));
	else if (!strcmp(mode, "newline"))
		load_with_newline(argv[2]);
	else if (!strcmp(mode, "names")) {
		prctl(PR_SET_NAME, EVIL);
		load_copy(argv[2], "lib" EVIL ".so");
	} else if (!wait_for_nobody())
		victim_say("CANNOT userfaultfd: %s", strerror(errno));
	victim_block(&random);
	victim_round();
	victim_ready();
	while (!victim_done() && victim_line(line, sizeof line) && strcmp(line, "end") != 0) {
		if (!strcmp(line, "map"))
			map_under_our_name();
		victim_block(&random);
		victim_round();
	}
	return victim_report();
}
