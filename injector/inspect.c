/* SPDX-License-Identifier: MIT */
/* memattach-inspect PID [--rows MODULE]: what the preparation finds in a running process. Reads only. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "allocator_find.h"
#include "cave.h"
#include "cleanup.h"
#include "slots.h"
#include "unwind_tables.h"

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct subject {
	struct target_memory tm;
	struct maps maps;
	struct modules modules;
	struct libc libc;
	struct slot_plans plans;
	struct unwind_tables tables;
	double ms[4];
};

static int prepare(struct subject *s, pid_t pid, struct err *e)
{
	const struct slots_options options = { .groups = GROUP_BIT(GROUP_MALLOC) | GROUP_BIT(GROUP_JEMALLOC) };
	uint32_t next_id = 1;
	char path[64];
	double start = now_ms();
	int r = target_memory_open(&s->tm, pid, e);

	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	if (!r)
		r = maps_read(&s->maps, path, e);
	if (!r)
		r = modules_read(&s->modules, &s->tm, &s->maps, e);
	if (r)
		return r;
	modules_number(&s->modules, NULL, &next_id);
	s->ms[0] = now_ms() - start;
	r = libc_find(&s->libc, &s->modules, &s->tm, e);
	s->ms[1] = now_ms() - start - s->ms[0];
	if (!r)
		r = slots_plan(&s->plans, &s->modules, &s->libc, &s->tm, &s->maps, &options, e);
	s->ms[2] = now_ms() - start - s->ms[0] - s->ms[1];
	return r;
}

static void print_modules(const struct subject *s)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct elf_module *m = &s->modules.list[i];
		struct cave cave = { 0 };

		cave_of_module(&cave, m, &s->maps);
		printf("module %u space %u %012" PRIx64 "-%012" PRIx64 " bias %" PRIx64 " text %" PRIx64 "-%" PRIx64
		       " symbols %zu cave %" PRIu64 "%s%s%s %s\n",
		       m->id, m->space, m->start, m->end, m->bias, m->exec_start, m->exec_end, m->symbol_count,
		       cave.bytes, m->is_main ? " main" : "", m->is_loader ? " loader" : "", m->is_vdso ? " vdso" : "",
		       m->path);
	}
	printf("%s%s", s->modules.unread, s->modules.consistent ? "" : "the loader is at work\n");
}

static void print_libc(const struct subject *s)
{
	const struct libc *l = &s->libc;
	struct cave cave;
	struct err e;

	printf("libc %s %s dlopen %" PRIx64 " dlclose %" PRIx64 " dlerror %" PRIx64 " errno %" PRIx64 " in %s\n",
	       l->kind == LIBC_GLIBC ? "glibc" : "musl", l->version, l->dlopen, l->dlclose, l->dlerror,
	       l->errno_location, l->module->path);
	printf("allocator %s malloc %" PRIx64 " usable_size %" PRIx64 "\n",
	       l->allocator ? l->allocator->path : "unknown", l->malloc, l->usable_size);
	if (cave_find(&cave, &s->modules, &s->tm, &s->maps, 512, &e))
		printf("cave: %s\n", e.text);
	else
		printf("cave %" PRIx64 " %" PRIu64 " bytes in %s\n", cave.address, cave.bytes,
		       elf_module_name(cave.module));
}

static const char *relocation_name(uint32_t type)
{
	return type == R_X86_64_JUMP_SLOT ? "JUMP_SLOT" : type == R_X86_64_GLOB_DAT ? "GLOB_DAT" : "64";
}

static void print_plan(const struct subject *s)
{
	const struct slot_plans *p = &s->plans;

	for (size_t i = 0; i < p->slot_count; i++) {
		const struct slot_plan *q = &p->slots[i];
		printf("slot %" PRIx64 " %-9s %-14s gate %u value %" PRIx64 " original %" PRIx64 " %s%s %s\n",
		       q->address, relocation_name(q->relocation), hook_symbol(q->hook), q->gate, q->value, q->original,
		       q->page_protection & PROT_WRITE ? "rw" : "r-", q->flags & SLOT_ESCAPES ? " escapes" : "",
		       elf_module_name(&s->modules.list[q->module]));
	}
	for (size_t i = 0; i < p->route_count; i++) {
		const struct slot_route *r = &p->routes[i];
		printf("route %-20s %" PRIx64 " in %-20s %u slots: %s%s\n", hook_symbol(r->hook), r->original,
		       r->definer < s->modules.count ? elf_module_name(&s->modules.list[r->definer]) : "?", r->slots,
		       r->hooked ? "hooked" : "calls ", r->hooked ? "" : hook_symbol(r->via));
	}
	for (size_t i = 0; i < p->refusal_count; i++)
		printf("refused %" PRIx64 " %s\n", p->refusals[i].address, p->refusals[i].text);
	printf("%s%zu slots, %zu gates, %zu refused, %" PRIu64 " bytes of text scanned\n", p->notes, p->slot_count,
	       p->gate_count, p->refusal_count, p->text_bytes);
}

static const char *const layers[] = { "unknown", "lowest", "wrapper", "mixed" };

static void print_function(const struct subject *s, const struct allocator_function *fn)
{
	printf("function %-36s %" PRIx64 " %5" PRIu64 " bytes %-7s got %u direct %u taken %u", fn->name, fn->address,
	       fn->bytes, layers[fn->layer], fn->got_entries, fn->direct_calls, fn->address_taken);
	if (fn->entry_refusal[0])
		printf(" refused: %s", fn->entry_refusal);
	else
		printf(" +%u %s jump for %u bytes, %u instructions%s", (unsigned)(fn->entry.write_at - fn->address),
		       fn->entry.island ? "short" : "long", fn->entry.displaced_bytes, fn->entry.displaced_count,
		       fn->entry.crosses_line   ? ", crosses a cache line"
		       : fn->entry.crosses_word ? ", crosses a word"
		                                : "");
	printf(" %s\n", elf_module_name(&s->modules.list[fn->module]));
}

static int print_allocators(const struct subject *s, struct err *e)
{
	const struct allocators_input in = { &s->modules, &s->libc, &s->plans, &s->tm, &s->maps };
	struct allocators found;
	double start = now_ms();
	int r = allocators_find(&found, &in, e);

	if (r)
		return r;
	for (size_t i = 0; i < found.function_count; i++)
		print_function(s, &found.functions[i]);
	for (size_t i = 0; i < found.count; i++)
		printf("allocator %s %s in %s\n", found.list[i].name, found.list[i].version,
		       elf_module_name(&s->modules.list[found.list[i].module]));
	printf("allocators %.2f ms\n", now_ms() - start);
	allocators_free(&found);
	return 0;
}

static int print_tables(struct subject *s, struct err *e)
{
	AUTO_FREE struct unwind_coverage *coverage = calloc(s->modules.count + 1, sizeof *coverage);
	double start = now_ms();
	int r = unwind_tables_create(&s->tables, UNWIND_TABLES_MAX_BYTES, e);

	if (!coverage)
		return err_set(e, ENOMEM, "no memory");
	if (!r)
		r = unwind_tables_update(&s->tables, &s->modules, &s->tm, &s->maps, coverage, e);
	if (r)
		return r;
	s->ms[3] = now_ms() - start;
	uint64_t rows = 0;
	for (size_t i = 0; i < s->modules.count; i++) {
		printf("rows %u %s %s\n", coverage[i].rows, elf_module_name(&s->modules.list[i]), coverage[i].text);
		rows += coverage[i].rows;
	}
	printf("%" PRIu64 " rows\n", rows);
	return 0;
}

static const char *const kinds[16] = { "none", "rsp", "rbp", "*rsp", "*rsp+8", "*rbp", "end", "signal", "unsupported" };

static int print_rows(const struct subject *s, const char *name, struct err *e)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct elf_module *m = &s->modules.list[i];
		struct module_file f;
		struct unwind_rows rows;
		uint64_t census[16];

		if (!strstr(m->path, name))
			continue;
		module_file_open(&f, m, &s->tm, &s->maps);
		int r = unwind_compile_module(&rows, &f, NULL, e);
		module_file_close(&f);
		if (r)
			return r;
		for (uint32_t k = 0; k < rows.count; k++)
			printf("%" PRIx64 " %s %+" PRId64 " rbp %u\n", m->exec_start - m->bias + rows.pc[k],
			       kinds[UNWIND_KIND(rows.rule[k])], UNWIND_N_BYTES(rows.rule[k]),
			       UNWIND_RBP_FIELD(rows.rule[k]));
		unwind_rows_census(&rows, (uint32_t)(m->exec_end - m->exec_start), census);
		for (unsigned k = 0; k < 16; k++)
			if (census[k] && kinds[k])
				printf("%s: %" PRIu64 " bytes\n", kinds[k], census[k]);
		unwind_rows_done(&rows);
	}
	return 0;
}

static void time_watch(const struct subject *s)
{
	bool changed = false;
	struct err e;
	double start = now_ms();

	for (unsigned i = 0; i < 1000; i++)
		if (modules_changed(&s->modules, &s->tm, &changed, NULL, &e))
			return;
	printf("watch %.1f us, %s\n", now_ms() - start, changed ? "changed" : "unchanged");
}

int main(int argc, char **argv)
{
	struct subject s = { .tm.mem_fd = -1, .tables = { .fd = -1, .own = -1 } };
	struct err e = { 0 };

	if (argc != 2 && !(argc == 4 && !strcmp(argv[2], "--rows"))) {
		fprintf(stderr, "usage: memattach-inspect PID [--rows MODULE]\n");
		return 64;
	}
	int r = prepare(&s, (pid_t)atoi(argv[1]), &e);
	if (!r && argc == 4) {
		r = print_rows(&s, argv[3], &e);
	} else if (!r) {
		print_modules(&s);
		print_libc(&s);
		print_plan(&s);
		r = print_allocators(&s, &e);
		if (!r)
			r = print_tables(&s, &e);
		time_watch(&s);
		printf("modules %.2f ms, libc %.2f ms, slots %.2f ms, unwind %.2f ms\n", s.ms[0], s.ms[1], s.ms[2],
		       s.ms[3]);
	}
	if (r)
		fprintf(stderr, "memattach-inspect: PID %s: %s\n", argv[1], e.text);
	unwind_tables_close(&s.tables);
	slots_free(&s.plans);
	modules_free(&s.modules);
	maps_free(&s.maps);
	target_memory_close(&s.tm);
	return r ? 1 : 0;
}
