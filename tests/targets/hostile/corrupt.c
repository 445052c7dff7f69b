/* SPDX-License-Identifier: MIT */
/*
 * A program that has damaged what its loader wrote about one of its libraries, at random: ELF and program headers,
 * dynamic section, symbols, hashes, versions, relocations, notes, call frame information, or a node that it has
 * appended to the list of modules. Argument 1 seeds it, argument 2 is the library, of which it loads a copy. Reading it
 * must not harm memattach; the program's own loader may fall over it.
 */
#include "victim.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACES_MAX 80u
#define PAGE 4096u

static const uint64_t special[] = { 0,          1,
	                            7,          8,
	                            24,         0x7fff,
	                            0xffff,     0x7fffffff,
	                            0xffffffff, 0x100000000ull,
	                            1ull << 40, 0x7fffffffffffffff,
	                            ~0ull,      ~0ull - 4095 };

static struct {
	uint64_t address, bytes;
} places[PLACES_MAX];
static unsigned place_count;
static uint64_t seed;

static uint64_t below(uint64_t n)
{
	return victim_random(&seed) % n;
}

static void add_place(uint64_t address, uint64_t bytes)
{
	if (place_count < PLACES_MAX && bytes) {
		places[place_count].address = address;
		places[place_count++].bytes = bytes;
	}
}

static struct link_map *load_copy(const char *file)
{
	char name[] = "./corrupt-XXXXXX";
	int from = open(file, O_RDONLY), to = mkstemp(name);
	struct stat st;

	if (from < 0 || to < 0 || fstat(from, &st) || sendfile(to, from, NULL, (size_t)st.st_size) != st.st_size ||
	    fchmod(to, 0755))
		exit(2);
	close(from);
	close(to);
	struct link_map *m = dlopen(name, RTLD_NOW);
	unlink(name);
	if (!m)
		exit(2);
	return m;
}

static void find_places(const struct link_map *m)
{
	const uint64_t base = m->l_addr;
	const Elf64_Ehdr *h = (const void *)base;
	const Elf64_Phdr *p = (const void *)(base + h->e_phoff);

	add_place(base, sizeof *h);
	add_place((uint64_t)(uintptr_t)p, h->e_phnum * sizeof *p);
	add_place((uint64_t)(uintptr_t)m->l_ld, 480);
	for (const Elf64_Dyn *d = m->l_ld; d->d_tag; d++) {
		uint64_t at = d->d_un.d_ptr < base ? base + d->d_un.d_ptr : d->d_un.d_ptr;
		switch (d->d_tag) {
		case DT_GNU_HASH:
		case DT_SYMTAB:
		case DT_VERSYM:
		case DT_VERNEED:
		case DT_VERDEF:
		case DT_STRTAB:
		case DT_RELA:
		case DT_JMPREL: add_place(at, 600); break;
		default: break;
		}
	}
	for (unsigned i = 0; i < h->e_phnum; i++) {
		if (p[i].p_type == PT_GNU_EH_FRAME) {
			add_place(base + p[i].p_vaddr, 64);
			add_place(base + p[i].p_vaddr + p[i].p_memsz, 2000);
			add_place(base + p[i].p_vaddr + p[i].p_memsz, 200);
		} else if (p[i].p_type == PT_NOTE) {
			add_place(base + p[i].p_vaddr, p[i].p_memsz);
		}
	}
}

static void damage(void)
{
	unsigned k = (unsigned)below(place_count);
	uint64_t at = places[k].address + below(places[k].bytes);
	uint64_t word = special[below(sizeof special / sizeof special[0])];

	if (below(4))
		at &= ~7ull;
	char *page = (char *)(uintptr_t)(at & ~(uint64_t)(PAGE - 1));
	mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE);
	switch (below(3)) {
	case 0: memcpy((void *)(uintptr_t)at, &word, 8); break;
	case 1: memcpy((void *)(uintptr_t)at, &word, 4); break;
	default: *(uint8_t *)(uintptr_t)at = (uint8_t)below(256);
	}
	mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC);
}

/* A node after all others, for a second copy, some of whose words are wrong. */
static void append_damaged(const struct link_map *m)
{
	struct link_map *last = _r_debug.r_map, *x = calloc(1, PAGE);
	uint64_t *words[] = { &x->l_addr, (uint64_t *)(void *)&x->l_name, (uint64_t *)(void *)&x->l_ld,
		              (uint64_t *)(void *)&x->l_next, (uint64_t *)(void *)&x->l_prev };

	while (last->l_next)
		last = last->l_next;
	x->l_addr = m->l_addr;
	x->l_name = m->l_name;
	x->l_ld = m->l_ld;
	x->l_prev = last;
	switch (below(4)) {
	case 0: x->l_next = last; break;
	case 1: *words[below(3)] += below(2) ? 8 : PAGE; break;
	default: *words[below(5)] = special[below(sizeof special / sizeof special[0])];
	}
	last->l_next = x;
}

int main(int argc, char **argv)
{
	uint64_t random = 7;

	if (argc < 3)
		return 64;
	victim_start("corrupt");
	seed = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < 10; i++)
		victim_random(&seed);
	struct link_map *m = load_copy(argv[2]);
	find_places(m);
	if (below(5) == 0)
		append_damaged(m);
	for (uint64_t n = below(12) + 1; n > 0; n--)
		damage();
	victim_block(&random);
	victim_round();
	victim_ready();
	while (!victim_done())
		pause();
	return victim_report();
}
