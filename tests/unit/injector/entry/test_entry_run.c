/* SPDX-License-Identifier: MIT */
/*
 * The plans for the entries of real allocators are carried out in a process of its own, which calls each function
 * thousands of times through them: a wrong displacement crashes that process, or gives wrong blocks. All functions of
 * all allocators that it has are tried, one by one and all together, and undone.
 *
 * test_injector_entry_run PROGRAM ALLOCATOR [VARIABLE=VALUE] does that with another build of targets/entry_runner.c,
 * for allocators that are not those of this system.
 */
#include "fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocators/allocator_find.h"
#include "base/cleanup.h"

#define ROUNDS 10000u
#define STUB_BYTES 72u /* hook at 0, copy at 18 */
#define COPY_AT 18u
#define ARENA_BYTES 0x10000u
#define COUNTERS_AT 0x8000u
#define FUNCTIONS_MAX 256u
#define IS_SIZE 0xffffffffu

struct planned {
	struct allocator_function *fn;
	struct entry_code_patch patch;
	uint8_t old_jump[ENTRY_JUMP_BYTES], old_island[ENTRY_JUMP_BYTES];
	uint64_t counter;
};

struct arena {
	uint64_t address;
	uint32_t module;
};

struct run {
	struct victim victim;
	struct view view;
	struct allocators found;
	struct planned planned[FUNCTIONS_MAX];
	size_t count;
	struct arena arenas[8];
	size_t arena_count;
	unsigned refused;
};

/* ---- the process ---- */

static unsigned order(struct run *r, const char *text)
{
	char reply[64];
	size_t length = 0;

	assert_int_equal(write(r->victim.to, text, strlen(text)), strlen(text));
	do
		if (read(r->victim.from, &reply[length], 1) != 1)
			fail_msg("the process died of: %s", text);
	while (reply[length++] != '\n' && length < sizeof reply);
	return (unsigned)strtoul(reply + 6, NULL, 16);
}

static void write_bytes(struct run *r, uint64_t address, const uint8_t *bytes, size_t count)
{
	char text[256];
	int length = snprintf(text, sizeof text, "W %" PRIx64 " ", address);

	for (size_t i = 0; i < count; i++)
		length += snprintf(text + length, sizeof text - (size_t)length, "%02x", bytes[i]);
	snprintf(text + length, sizeof text - (size_t)length, "\n");
	assert_int_equal(order(r, text), 0);
}

static void read_bytes(const struct run *r, uint64_t address, uint8_t *bytes, size_t count)
{
	struct err e;

	if (target_read(&r->view.tm, address, bytes, count, &e))
		fail_msg("%s", e.text);
}

static bool is_arena(const struct run *r, uint64_t address)
{
	for (size_t i = 0; i < r->arena_count; i++)
		if (r->arenas[i].address < address + ARENA_BYTES && address < r->arenas[i].address + ARENA_BYTES)
			return true;
	return false;
}

/* Free memory below a module. */
static uint64_t room_near(const struct run *r, const struct elf_module *m)
{
	uint64_t end = m->start;

	for (size_t i = r->view.maps.count; i-- > 0;) {
		const struct mapping *map = &r->view.maps.list[i];
		if (map->end > end)
			continue;
		uint64_t at = (end & ~0xfffull) - ARENA_BYTES;
		while (at > map->end + ARENA_BYTES && is_arena(r, at))
			at -= ARENA_BYTES;
		if (at < end && at > map->end + ARENA_BYTES)
			return at;
		end = map->start;
	}
	return (end & ~0xfffull) - 16 * ARENA_BYTES;
}

static uint64_t arena_of(struct run *r, uint32_t module)
{
	char text[64];

	for (size_t i = 0; i < r->arena_count; i++)
		if (r->arenas[i].module == module)
			return r->arenas[i].address;
	assert_true(r->arena_count < sizeof r->arenas / sizeof r->arenas[0]);
	uint64_t address = room_near(r, &r->view.modules.list[module]);
	snprintf(text, sizeof text, "M %" PRIx64 " %x\n", address, ARENA_BYTES);
	assert_int_equal(order(r, text), 0);
	r->arenas[r->arena_count++] = (struct arena){ address, module };
	return address;
}

/* ---- the hooks ---- */

static void store_distance(uint8_t *at, uint64_t end, uint64_t target)
{
	int32_t distance = (int32_t)(int64_t)(target - end);

	memcpy(at, &distance, sizeof distance);
}

/* What is to be undone; lock incq counter(%rip); jmp copy */
static void make_hook(uint8_t *hook, uint64_t at, uint64_t counter, const struct instruction_undo *undo)
{
	static const uint8_t count[] = { 0xf0, 0x48, 0xff, 0x05 };

	entry_code_undo(hook, undo);
	memcpy(hook + 5, count, sizeof count);
	store_distance(hook + 9, at + 13, counter);
	hook[13] = 0xe9;
	store_distance(hook + 14, at + 18, at + COPY_AT);
}

static void prepare_function(struct run *r, struct allocator_function *fn)
{
	uint64_t arena = arena_of(r, fn->module);
	struct planned *p = &r->planned[r->count];
	uint64_t at = arena + r->count * STUB_BYTES;
	uint8_t stub[STUB_BYTES] = { 0 };
	struct entry_code_copy copy;
	struct err e;

	*p = (struct planned){ .fn = fn, .counter = arena + COUNTERS_AT + 8 * r->count };
	read_bytes(r, fn->entry.write_at, p->old_jump, fn->entry.write_bytes);
	if (fn->entry.island)
		read_bytes(r, fn->entry.island, p->old_island, ENTRY_JUMP_BYTES);
	if (entry_code_patch_make(&p->patch, &fn->entry, at, &e) ||
	    entry_code_copy_make(&copy, &fn->entry, at + COPY_AT, &e))
		fail_msg("%s: %s", fn->name, e.text);
	assert_true(copy.bytes <= ENTRY_COPY_MAX);
	make_hook(stub, at, p->counter, &fn->entry.undo);
	memcpy(stub + COPY_AT, copy.code, copy.bytes);
	write_bytes(r, at, stub, sizeof stub);
	r->count++;
}

static void install(struct run *r, const struct planned *p)
{
	if (p->fn->entry.island)
		write_bytes(r, p->fn->entry.island, p->patch.island, ENTRY_JUMP_BYTES);
	write_bytes(r, p->fn->entry.write_at, p->patch.jump, p->fn->entry.write_bytes);
}

static void undo(struct run *r, const struct planned *p)
{
	write_bytes(r, p->fn->entry.write_at, p->old_jump, p->fn->entry.write_bytes);
	if (p->fn->entry.island)
		write_bytes(r, p->fn->entry.island, p->old_island, ENTRY_JUMP_BYTES);
}

static uint64_t calls_of(const struct run *r, const struct planned *p)
{
	uint64_t calls;

	read_bytes(r, p->counter, (uint8_t *)&calls, sizeof calls);
	return calls;
}

/* ---- calling ---- */

static const struct allocator_function *like(const struct run *r, uint32_t module, uint32_t hook, uint32_t other)
{
	const struct allocator_function *second = NULL;

	for (size_t i = 0; i < r->found.function_count; i++) {
		const struct allocator_function *fn = &r->found.functions[i];
		if (fn->module == module && fn->like.hook == hook)
			return fn;
		if (fn->module == module && fn->like.hook == other && !second)
			second = fn;
	}
	return second;
}

/* The address of a name, which may be one of several of a function. */
static uint64_t named(const struct run *r, uint32_t module, const char *name, const char *other)
{
	struct elf_symbol s;

	if (elf_module_find(&r->view.modules.list[module], name, NULL, &s) ||
	    elf_module_find(&r->view.modules.list[module], other, NULL, &s))
		return s.address;
	return 0;
}

static bool has(const struct allocator_function *fn, const char *part)
{
	return strstr(fn->name, part) != NULL;
}

/* Arguments behind the block or size. */
static void extra_arguments(const struct allocator_function *fn, unsigned *first, unsigned *second)
{
	bool aligned = has(fn, "align");

	*first = *second = 0;
	if (fn->like.shape != SHAPE_FREE) {
		*first = aligned ? 64 : 0;
	} else if (has(fn, "_ZdlPvm") || has(fn, "_ZdaPvm") || has(fn, "_size") || has(fn, "sdallocx")) {
		*first = IS_SIZE;
		*second = aligned ? 64 : 0;
	} else if (aligned) {
		*first = 64;
	}
}

static unsigned call_function(struct run *r, const struct allocator_function *fn)
{
	bool aligned = has(fn, "align") && fn->like.shape == SHAPE_FREE;
	const struct allocator_function *maker = like(r, fn->module, HOOK_malloc, HOOK_new);
	const struct allocator_function *release = like(r, fn->module, HOOK_free, HOOK_delete);
	uint64_t make = aligned ? named(r, fn->module, "_ZnwmSt11align_val_t", "mi_malloc_aligned") : 0;
	unsigned first, second;
	char text[256];

	if (!make)
		make = named(r, fn->module, "malloc", "_Znwm");
	if (!make && maker)
		make = maker->address;
	uint64_t drop = named(r, fn->module, "free", "_ZdlPv");
	if (!drop && release)
		drop = release->address;
	assert_true(make && drop);
	extra_arguments(fn, &first, &second);
	snprintf(text, sizeof text, "C %" PRIx64 " %x %x %" PRIx64 " %" PRIx64 " %x %x %x\n", fn->address,
	         fn->like.shape, fn->like.size, make, drop, first, second, ROUNDS);
	return order(r, text);
}

static void try_alone(struct run *r, const struct planned *p)
{
	uint8_t now[ENTRY_JUMP_BYTES];

	if (call_function(r, p->fn))
		fail_msg("%s is not called rightly by this test", p->fn->name);
	assert_int_equal(calls_of(r, p), 0);
	install(r, p);
	unsigned wrong = call_function(r, p->fn);
	if (wrong || calls_of(r, p) < ROUNDS)
		fail_msg("%s: %u wrong, %" PRIu64 " calls of %u seen", p->fn->name, wrong, calls_of(r, p), ROUNDS);
	undo(r, p);
	uint64_t calls = calls_of(r, p);
	assert_int_equal(call_function(r, p->fn), 0);
	assert_int_equal(calls_of(r, p), calls);
	read_bytes(r, p->fn->entry.write_at, now, p->fn->entry.write_bytes);
	assert_memory_equal(now, p->old_jump, p->fn->entry.write_bytes);
}

static void try_together(struct run *r)
{
	for (size_t i = 0; i < r->count; i++)
		install(r, &r->planned[i]);
	for (size_t i = 0; i < r->count; i++) {
		uint64_t calls = calls_of(r, &r->planned[i]);
		assert_int_equal(call_function(r, r->planned[i].fn), 0);
		assert_true(calls_of(r, &r->planned[i]) >= calls + ROUNDS);
	}
	for (size_t i = r->count; i-- > 0;)
		undo(r, &r->planned[i]);
}

static void open_run(struct run *r, const char *program, const char *preload)
{
	struct err e;

	memset(r, 0, sizeof *r);
	victim_start(&r->victim, program, NULL, preload);
	view_open(&r->view, r->victim.pid, true);
	const struct allocators_input in = {
		&r->view.modules, &r->view.libc, &r->view.plans, &r->view.tm, &r->view.maps, NULL, 0
	};
	if (allocators_find(&r->found, &in, &e))
		fail_msg("%s", e.text);
}

static void close_run(struct run *r)
{
	allocators_free(&r->found);
	view_close(&r->view);
	victim_end(&r->victim);
}

static const struct allocator *find_allocator(const struct run *r, const char *name)
{
	for (size_t i = 0; i < r->found.count; i++)
		if (!strcmp(r->found.list[i].name, name))
			return &r->found.list[i];
	fail_msg("%s was not found", name);
	return NULL;
}

/*
 * Can it be called by itself? Where another allocator is in force, the reallocarray of the C library calls the realloc
 * of that one.
 */
static bool can_be_tried(const struct run *r, const struct allocator_function *fn)
{
	const struct elf_module *m = &r->view.modules.list[fn->module];

	return fn->like.family != FAMILY_RUST &&
	       (fn->like.hook != HOOK_reallocarray || m != r->view.libc.module || m == r->view.libc.allocator);
}

/* At least as many functions as named have plans, and all that have are right. */
static void try_all(const char *program, const char *preload, const char *name, size_t least)
{
	AUTO_FREE struct run *r = malloc(sizeof *r);
	size_t all;

	assert_non_null(r);
	open_run(r, program, preload);
	const struct allocator *a = find_allocator(r, name);
	assert_true(allocator_hookable(&r->found, a, &all) >= least);
	for (size_t i = 0; i < r->found.function_count && r->count < FUNCTIONS_MAX; i++) {
		struct allocator_function *fn = &r->found.functions[i];
		r->refused += fn->entry_refusal[0] != 0;
		if (!fn->entry_refusal[0] && can_be_tried(r, fn))
			prepare_function(r, fn);
	}
	for (size_t i = 0; i < r->count; i++)
		try_alone(r, &r->planned[i]);
	try_together(r);
	print_message("%s: %zu entries were hooked and undone, %u refused\n", name, r->count, r->refused);
	close_run(r);
}

static bool is_there(const char *file)
{
	return file[0] && access(file, R_OK) == 0;
}

static void preloaded(const char *file, const char *name, size_t least)
{
	char variable[600];

	if (!is_there(file)) {
		print_message("%s is not installed\n", file);
		skip();
	}
	snprintf(variable, sizeof variable, "LD_PRELOAD=%s", file);
	try_all("entry_runner", variable, name, least);
}

static void test_glibc(void **state)
{
	(void)state;
	try_all("entry_runner", NULL, "glibc", 8);
}

static void test_libstdcxx(void **state)
{
	(void)state;
	try_all("entry_runner_cxx", NULL, "glibc", 8);
}

static void test_musl(void **state)
{
	(void)state;
	if (!is_there(VICTIM_DIR "/entry_runner_musl"))
		skip();
	try_all("entry_runner_musl", NULL, "musl", 5);
}

static void test_jemalloc(void **state)
{
	(void)state;
	preloaded(JEMALLOC_LIBRARY, "jemalloc", 15);
}

static void test_tcmalloc(void **state)
{
	(void)state;
	preloaded(TCMALLOC_LIBRARY, "tcmalloc", 12);
}

static void test_mimalloc(void **state)
{
	(void)state;
	preloaded(MIMALLOC_LIBRARY, "mimalloc", 15);
}

static void test_linked_jemalloc(void **state)
{
	(void)state;
	if (!is_there(VICTIM_DIR "/entry_runner_jemalloc"))
		skip();
	try_all("entry_runner_jemalloc", NULL, "jemalloc", 10);
}

static void test_linked_tcmalloc(void **state)
{
	(void)state;
	if (!is_there(VICTIM_DIR "/entry_runner_tcmalloc"))
		skip();
	try_all("entry_runner_tcmalloc", NULL, "tcmalloc", 10);
}

static char **words;

static void test_named(void **state)
{
	(void)state;
	try_all(words[1], words[3], words[2], 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest one[] = { cmocka_unit_test(test_named) };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glibc),
		cmocka_unit_test(test_libstdcxx),
		cmocka_unit_test(test_musl),
		cmocka_unit_test(test_jemalloc),
		cmocka_unit_test(test_tcmalloc),
		cmocka_unit_test(test_mimalloc),
		cmocka_unit_test(test_linked_jemalloc),
		cmocka_unit_test(test_linked_tcmalloc),
	};

	words = argv;
	if (argc >= 3)
		return cmocka_run_group_tests(one, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
