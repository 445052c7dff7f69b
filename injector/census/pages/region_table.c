/* SPDX-License-Identifier: MIT */
#include "census/pages/region_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/grow.h"

static const struct {
	const char *name, *title;
} kinds[REGION_KINDS] = {
	[REGION_HEAP] = { "heap", "heap (brk)" },
	[REGION_ARENA] = { "arena", "malloc arenas of threads" },
	[REGION_MAPPED] = { "mapped", "malloc, large blocks" },
	[REGION_PYTHON] = { "python", "Python objects of up to 512 bytes" },
	[REGION_RUNTIME] = { "runtime", "heap of" },
	[REGION_ALLOCATOR] = { "allocator", "memory of" },
	[REGION_STACK] = { "stack", "stacks" },
	[REGION_ANONYMOUS] = { "anonymous", "anonymous memory" },
	[REGION_CODE] = { "code", "generated code" },
	[REGION_DATA] = { "data", "data of" },
	[REGION_FILE] = { "file", "file" },
	[REGION_SHARED] = { "shared", "shared memory" },
	[REGION_KERNEL] = { "kernel", "kernel" },
	[REGION_UNKNOWN] = { "unknown", "not looked at" },
};

const char *region_kind_name(enum region_kind kind)
{
	return kinds[kind].name;
}

const char *region_kind_title(enum region_kind kind)
{
	return kinds[kind].title;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Of a file in no file system of a disk. */
static bool is_memory_file(const char *path)
{
	return begins(path, "/memfd:") || begins(path, "/dev/shm/") || begins(path, "/SYSV") ||
	       !strcmp(path, "/dev/zero");
}

static enum region_kind kind_of(const struct mapping *m)
{
	const bool writable = m->prot & PROT_WRITE;

	if (!strcmp(m->path, "[heap]"))
		return REGION_HEAP;
	if (!strcmp(m->path, "[stack]"))
		return REGION_STACK;
	if (m->shared || begins(m->path, "[anon_shmem:"))
		return m->inode && !is_memory_file(m->path) ? REGION_FILE : REGION_SHARED;
	if (m->inode)
		return is_memory_file(m->path) ? REGION_SHARED : writable ? REGION_DATA : REGION_FILE;
	if (begins(m->path, "[v"))
		return REGION_KERNEL;
	return m->prot & PROT_EXEC ? REGION_CODE : REGION_ANONYMOUS;
}

bool region_of_mapping(struct region *r, const struct mapping *m)
{
	if (begins(m->path, "[vvar") || !strcmp(m->path, "[vsyscall]") || begins(m->path, "/anon_hugepage") ||
	    (begins(m->path, "/dev/") && !is_memory_file(m->path)))
		return false;
	*r = (struct region){ .kind = kind_of(m), .name = m->path };
	if (r->kind == REGION_HEAP)
		r->name = "";
	if (r->kind == REGION_STACK)
		r->name = "main";
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int compare_resident(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	if (x->resident != y->resident)
		return x->resident > y->resident ? -1 : 1;
	if (x->swapped != y->swapped)
		return x->swapped > y->swapped ? -1 : 1;
	return compare(a, b);
}

static void merge(struct region *into, const struct region *r)
{
	into->mappings += r->mappings;
	into->reserved += r->reserved;
	into->resident += r->resident;
	into->swapped += r->swapped;
	into->huge += r->huge;
}

int region_table_add(struct region_table *t, const struct region *r, struct err *e)
{
	if (t->count && !compare(&t->list[t->count - 1], r)) {
		merge(&t->list[t->count - 1], r);
		return 0;
	}
	if (!grow_list(t->list, t->count))
		return err_set(e, ENOMEM, "no memory for what its mappings are");
	t->list[t->count++] = *r;
	return 0;
}

void region_table_sum(struct region_table *t)
{
	size_t kept = 0;

	if (!t->count)
		return;
	qsort(t->list, t->count, sizeof *t->list, compare);
	for (size_t i = 1; i < t->count; i++)
		if (!compare(&t->list[kept], &t->list[i]))
			merge(&t->list[kept], &t->list[i]);
		else
			t->list[++kept] = t->list[i];
	t->count = kept + 1;
	qsort(t->list, t->count, sizeof *t->list, compare_resident);
}

void region_table_join_arenas(struct region_table *t)
{
	for (size_t i = 0; i < t->count; i++)
		t->list[i].address = 0;
	region_table_sum(t);
}

void region_table_free(struct region_table *t)
{
	free(t->list);
	*t = (struct region_table){ 0 };
}
