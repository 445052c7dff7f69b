/* SPDX-License-Identifier: MIT */
/*
 * What the parts of a hook cost: this program's own slots of malloc and free are switched, every 2048 operations and in
 * random order, between the original and what stands in hook_parts.S. Compares each slice with the native one of its
 * round.
 *
 *     cc -O2 -Wl,-z,lazy,-z,norelro -Wa,-mbranches-within-32B-boundaries bench/hook_parts.c bench/hook_parts.S -o
 * hook_parts -lm taskset -c 1 ./hook_parts [churn|pair [rounds]]
 */
#define main churn_main
#include "churn.c"
#undef main
#include <link.h>
#include <sys/mman.h>

#define SLICE 2048
#define WARM 512
#define LIVE 100000

typedef void code(void);
extern code parts_gated_malloc, parts_gated_free, parts_direct_malloc, parts_direct_free, parts_inside_malloc,
	parts_inside_free;
extern code parts_owned_malloc, parts_near, parts_near_of_another, parts_empty, parts_malloc, parts_free,
	parts_find_only, parts_fixed_word, parts_additions;
extern uint64_t parts_gate_malloc[2], parts_gate_free[2], parts_slots, parts_owner;

/* What the slots hold and where the gates lead; NULL: the original. */
static const struct variant {
	const char *name;
	code *malloc_slot, *free_slot, *malloc_entry, *free_entry;
} variants[] = {
	{ "native", 0, 0, 0, 0 },
	{ "native again", 0, 0, 0, 0 },
	{ "inert gates", parts_gated_malloc, parts_gated_free, 0, 0 },
	{ "gates, empty hooks", parts_gated_malloc, parts_gated_free, parts_empty, parts_empty },
	{ "gates, hooks", parts_gated_malloc, parts_gated_free, parts_malloc, parts_free },
	{ "malloc only", parts_gated_malloc, 0, parts_malloc, 0 },
	{ "free only", 0, parts_gated_free, 0, parts_free },
	{ "direct jumps", parts_direct_malloc, parts_direct_free, 0, 0 },
	{ "inside the gates", parts_inside_malloc, parts_inside_free, 0, 0 },
	{ "inside, fixed slot", parts_owned_malloc, parts_inside_free, 0, 0 },
	{ "near slot", parts_gated_malloc, parts_gated_free, parts_near, parts_free },
	{ "another's near slot", parts_gated_malloc, parts_gated_free, parts_near_of_another, parts_free },
	{ "malloc: near slot", parts_gated_malloc, 0, parts_near, 0 },
	{ "malloc: another's", parts_gated_malloc, 0, parts_near_of_another, 0 },
	{ "malloc: no charge", parts_gated_malloc, 0, parts_find_only, 0 },
	{ "malloc: fixed word", parts_gated_malloc, 0, parts_fixed_word, 0 },
	{ "malloc: 12 additions", parts_gated_malloc, 0, parts_additions, 0 },
};
#define VARIANTS (sizeof variants / sizeof *variants)

static uint64_t *malloc_slot, *free_slot, original_malloc, original_free;

static int find_slots(struct dl_phdr_info *info, size_t bytes, void *data)
{
	const ElfW(Dyn) *d = 0;
	const ElfW(Rela) *rela = 0;
	const ElfW(Sym) *symbols = 0;
	const char *names = 0;
	size_t count = 0;

	(void)bytes, (void)data;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag; d++) {
		if (d->d_tag == DT_JMPREL)
			rela = (const void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_PLTRELSZ)
			count = d->d_un.d_val / sizeof *rela;
		else if (d->d_tag == DT_SYMTAB)
			symbols = (const void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_STRTAB)
			names = (const void *)d->d_un.d_ptr;
	}
	for (size_t i = 0; i < count; i++) {
		const char *name = names + symbols[ELF64_R_SYM(rela[i].r_info)].st_name;
		uint64_t *slot = (uint64_t *)(info->dlpi_addr + rela[i].r_offset);

		if (!strcmp(name, "malloc"))
			malloc_slot = slot;
		else if (!strcmp(name, "free"))
			free_slot = slot;
	}
	return 1; /* the program itself comes first */
}

static uint64_t or_original(code *c, uint64_t original)
{
	return c ? (uint64_t)c : original;
}

static void use(const struct variant *v)
{
	parts_gate_malloc[0] = or_original(v->malloc_entry, original_malloc);
	parts_gate_free[0] = or_original(v->free_entry, original_free);
	*(volatile uint64_t *)malloc_slot = or_original(v->malloc_slot, original_malloc);
	*(volatile uint64_t *)free_slot = or_original(v->free_slot, original_free);
}

static void **blocks;
static uint64_t dice = 88172645463325252ull;

static NI void operations(int count, int pairs)
{
	for (int i = 0; i < count; i++) {
		uint64_t x = xs64(&dice);
		void **block = &blocks[((x >> 32) * LIVE) >> 32];

		if (pairs) {
			void *p = malloc(64);
			__asm__ volatile("" ::"r"(p) : "memory");
			free(p);
		} else {
			free(*block);
			*block = v1(sizes[x & 4095], (unsigned)(x >> 12) & smask);
		}
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double *values, int count, double q)
{
	qsort(values, (size_t)count, sizeof *values, compare);
	return values[(int)(count * q)];
}

static void measure(int rounds, int pairs)
{
	double(*ns)[VARIANTS] =
		mmap(0, sizeof *ns * (size_t)rounds, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double *column =
		mmap(0, sizeof *column * (size_t)rounds, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int r = 0; r < rounds; r++) {
		size_t first = xs64(&dice) % VARIANTS, step = 1 + xs64(&dice) % (VARIANTS - 1); /* VARIANTS is prime */

		for (size_t k = 0; k < VARIANTS; k++) {
			size_t i = (first + k * step) % VARIANTS;

			use(&variants[i]);
			operations(WARM, pairs);
			double start = now_s();
			operations(SLICE, pairs);
			ns[r][i] = (now_s() - start) * 1e9 / SLICE;
		}
	}
	use(&variants[0]);
	for (size_t i = 0; i < VARIANTS; i++) {
		for (int r = 0; r < rounds; r++)
			column[r] = ns[r][i] - ns[r][0];
		double added = quantile(column, rounds, 0.5), low = quantile(column, rounds, 0.25),
		       high = quantile(column, rounds, 0.75);
		for (int r = 0; r < rounds; r++)
			column[r] = ns[r][i];
		printf("%-22s %7.2f ns, added %6.2f (quartiles %.2f, %.2f)\n", variants[i].name,
		       quantile(column, rounds, 0.5), added, low, high);
	}
}
_Static_assert(VARIANTS == 17, "a prime number of variants: each step visits all");

int main(int argc, char **argv)
{
	int pairs = argc > 1 && !strcmp(argv[1], "pair"), rounds = argc > 2 ? atoi(argv[2]) : 1500;
	uint64_t tp, *slot;
	void *volatile resolved = malloc(1);

	free(resolved);
	dl_iterate_phdr(find_slots, 0);
	if (!malloc_slot || !free_slot || rounds < 1)
		return 1;
	original_malloc = parts_gate_malloc[1] = *malloc_slot;
	original_free = parts_gate_free[1] = *free_slot;
	__asm__("mov %%fs:0, %0" : "=r"(tp));
	parts_owner = tp;
	parts_slots = (uint64_t)mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	slot = (uint64_t *)(parts_slots + (((tp ^ tp >> 12) & (4095 << 12)) >> 5));
	slot[0] = tp;
	slot[1] = 1ull << 62;
	for (int i = 0; i < 4096; i++)
		sizes[i] = (uint16_t)(16 * pow(32.0, (i + 0.5) / 4096));
	blocks = calloc(LIVE, sizeof *blocks);
	measure(rounds, pairs);
	return 0;
}
