/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dump_builder.h"
#include "debug_info/demangled_name.h"
#include "symbols/symbols.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool under_sanitizer = true; /* which has memory of its own */
#else
static const bool under_sanitizer = false;
#endif

/* The test looks at itself: a dump with its own modules, and stacks that backtrace walked. */

struct self {
	struct dump_builder b;
	struct dump *dump;
	int fd;
	struct images images;
	struct image_map map;
	struct image_search search;
	struct symbols *symbols;
	uint32_t next_id;
	char program[4096];
	bool wrong_build_id;
};

static uint32_t build_id_of(const struct dl_phdr_info *info, const unsigned char **id)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_NOTE)
			continue;
		const char *p = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		const char *end = p + info->dlpi_phdr[i].p_memsz;
		while (p + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const void *)p;
			const char *name = p + sizeof *note;
			const char *content = name + ((note->n_namesz + 3) & ~3u);
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(name, "GNU", 4)) {
				*id = (const unsigned char *)content;
				return note->n_descsz;
			}
			p = content + ((note->n_descsz + 3) & ~3u);
		}
	}
	return 0;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct self *self = arg;
	const unsigned char *id = NULL;
	unsigned char copy[DUMP_BUILD_ID_MAX] = { 0 };
	uint32_t bytes = build_id_of(info, &id);
	uint64_t end = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	if (bytes > DUMP_BUILD_ID_MAX)
		return 0;
	if (bytes)
		memcpy(copy, id, bytes);
	if (self->wrong_build_id)
		copy[0] ^= 0xff;
	dump_builder_module(&self->b, ++self->next_id, info->dlpi_addr, info->dlpi_addr, end,
	                    info->dlpi_name[0] ? info->dlpi_name : self->program, copy, bytes, 0);
	return 0;
}

static void open_self(struct self *self, bool wrong_build_id)
{
	struct err e;

	*self = (struct self){ .wrong_build_id = wrong_build_id };
	ssize_t n = readlink("/proc/self/exe", self->program, sizeof self->program - 1);
	assert_true(n > 0);
	dump_builder_init(&self->b, 1, 8, 8, 0);
	dl_iterate_phdr(add_module, self);
	self->fd = dump_builder_fd(&self->b, self->b.size);
	assert_int_equal(dump_open_fd(self->fd, &self->dump, &e), 0);
	assert_int_equal(images_init(&self->images), 0);
	assert_int_equal(images_add(&self->images, self->dump, "", &self->map), 0);
	self->symbols = symbols_new(&self->images, &self->search, true);
	assert_non_null(self->symbols);
}

static void close_self(struct self *self)
{
	symbols_free(self->symbols);
	image_map_done(&self->map);
	images_done(&self->images);
	dump_close(self->dump);
	close(self->fd);
	dump_builder_done(&self->b);
}

struct find {
	uint64_t address;
	uint32_t id, at;
};

static int find_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct find *f = arg;

	(void)size;
	f->at++;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && f->address >= start && f->address - start < p->p_memsz)
			f->id = f->at;
	}
	return 0;
}

/* The frame word of an address of this process. */
static uint64_t frame_of(const void *address)
{
	struct find f = { .address = (uint64_t)(uintptr_t)address };

	dl_iterate_phdr(find_module, &f);
	return DUMP_FRAME(f.id, f.address);
}

static uint64_t place_of(const struct self *self, const void *address)
{
	return images_place(&self->map, frame_of(address));
}

static void *pcs[32];
static int depth;

#define INLINE static inline __attribute__((always_inline))

INLINE void inner_inlined(void)
{
	depth = backtrace(pcs, 32);
	__asm__ volatile("");
}

INLINE void middle_inlined(int n)
{
	if (n)
		inner_inlined();
	__asm__ volatile("");
}

__attribute__((noinline)) static void outer_function(int n)
{
	middle_inlined(n);
	__asm__ volatile("");
}

static bool ends_with(const char *text, const char *end)
{
	return text && strlen(text) >= strlen(end) && !strcmp(text + strlen(text) - strlen(end), end);
}

static void test_names_lines_and_inlined_calls(void **state)
{
	struct self self;
	size_t n;

	(void)state;
	outer_function(1);
	assert_true(depth >= 3);
	open_self(&self, false);
	int at = 0;
	const struct location *l;
	do /* a sanitizer may put frames of its own in front */
		l = symbols_find(self.symbols, place_of(&self, pcs[at]), &n);
	while ((!l[0].function || strcmp(l[0].function, "inner_inlined")) && ++at < depth);
	assert_int_equal(n, 3);
	assert_string_equal(l[0].function, "inner_inlined");
	assert_string_equal(l[1].function, "middle_inlined");
	assert_string_equal(l[2].function, "outer_function");
	assert_true(l[0].inlined && l[1].inlined && !l[2].inlined);
	for (int i = 0; i < 3; i++)
		assert_true(ends_with(l[i].file, "test_symbols.c"));
	assert_true(l[0].line > 100 && l[1].line == l[0].line + 7 && l[2].line == l[0].line + 13);
	const struct location *caller = symbols_find(self.symbols, place_of(&self, pcs[at + 1]), &n);
	assert_string_equal(caller[n - 1].function, "test_names_lines_and_inlined_calls");
	/* The same again is the same. */
	size_t again;
	assert_ptr_equal(symbols_find(self.symbols, place_of(&self, pcs[at]), &again), l);
	close_self(&self);
}

static void test_libraries_and_their_allocator(void **state)
{
	struct self self;
	size_t n;

	(void)state;
	open_self(&self, false);
	/* By its handle: a sanitizer's own functions come first in the search, and may be a jump shorter than 8 bytes.
	 */
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	assert_non_null(libc);
	const char *function = (const char *)(uintptr_t)dlsym(libc, "qsort_r");
	assert_non_null(function);
	uint64_t place = place_of(&self, function + 8);
	const struct location *l = symbols_find(self.symbols, place, &n);
	assert_non_null(l[n - 1].function);
	assert_non_null(strstr(l[n - 1].function, "qsort_r"));
	assert_false(symbols_in_allocator(self.symbols, place));
	/* libc's has aliases with other names. */
	function = (const char *)(uintptr_t)dlsym(libc, "reallocarray");
	assert_true(symbols_in_allocator(self.symbols, place_of(&self, function + 4)));
	dlclose(libc);
	close_self(&self);
}

/* The one that reads files is the only child. */
static void kill_child(void)
{
	char path[64], text[64] = "";

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof text, f));
	fclose(f);
	assert_int_equal(kill((pid_t)strtol(text, NULL, 10), SIGKILL), 0);
}

/* What was known stays, the file that was looked at last has no more names, and the others have. */
static void test_the_end_of_the_reader_costs_names(void **state)
{
	struct self self;
	size_t n;

	(void)state;
	open_self(&self, false);
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	assert_non_null(libc);
	uint64_t first = place_of(&self, (const char *)(uintptr_t)outer_function + 4), second = first + 1;
	uint64_t other = place_of(&self, (const char *)(uintptr_t)dlsym(libc, "qsort_r") + 4);
	assert_non_null(symbols_find(self.symbols, other, &n)[0].function);
	assert_non_null(symbols_find(self.symbols, first, &n)[0].function);
	assert_null(symbols_image_file(self.symbols, PLACE_IMAGE(first))->reason);
	kill_child();
	assert_null(symbols_find(self.symbols, second, &n)[0].function);
	const struct image_found *file = symbols_image_file(self.symbols, PLACE_IMAGE(first));
	assert_true(file->incomplete);
	assert_non_null(strstr(file->reason, "names may be missing"));
	assert_non_null(symbols_find(self.symbols, first, &n)[n - 1].function);
	assert_non_null(symbols_find(self.symbols, other + 1, &n)[n - 1].function);
	assert_false(symbols_image_file(self.symbols, PLACE_IMAGE(other))->incomplete);
	dlclose(libc);
	close_self(&self);
}

static void test_another_file_at_the_path_is_not_believed(void **state)
{
	struct self self;
	size_t n;

	(void)state;
	open_self(&self, true);
	uint64_t place = place_of(&self, (const char *)(uintptr_t)outer_function + 4);
	const struct location *l = symbols_find(self.symbols, place, &n);
	assert_int_equal(n, 1);
	assert_null(l[0].function);
	const struct image_found *file = symbols_image_file(self.symbols, PLACE_IMAGE(place));
	assert_non_null(file);
	assert_int_equal(file->source, IMAGE_SOURCE_NONE);
	assert_non_null(strstr(file->reason, "replaced"));
	close_self(&self);
}

static void test_addresses_of_nowhere(void **state)
{
	struct self self;
	size_t n;

	(void)state;
	open_self(&self, false);
	assert_string_equal(symbols_find(self.symbols, PLACE(0, 0x1234), &n)[0].function, "[jit]");
	assert_int_equal(n, 1);
	assert_null(symbols_find(self.symbols, PLACE(0, 0), &n)[0].function);
	assert_null(symbols_find(self.symbols, PLACE(1, 0), &n)[0].function);
	assert_null(symbols_find(self.symbols, PLACE(1, 0xffffffffffff), &n)[0].function);
	assert_null(symbols_find(self.symbols, PLACE(60000, 5), &n)[0].function);
	assert_false(symbols_in_allocator(self.symbols, PLACE(60000, 5)));
	close_self(&self);
}

static void test_plain_names(void **state)
{
	static const char *const names[][2] = {
		{ "_Znwm", "operator new(unsigned long)" },
		{ "_ZN3app5CacheIiE3putEi", "app::Cache<int>::put(int)" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt" },
		{ "_RNvC6_123foo3bar", "123foo::bar" },
		{ "main", "main" },
		{ "_start", "_start" },
		{ "_Z", "_Z" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char *plain = demangled_name(names[i][0]);
		assert_string_equal(plain, names[i][1]);
		free(plain);
	}
}

/* f(B<A, A>, B<B<A, A>, B<A, A> >, ...): each parameter is twice the one before. */
static void double_name(char *name, int levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	name += sprintf(name, "_Z1f1A1BIS_S_E");
	for (int i = 1; i < levels; i++)
		name += sprintf(name, "S0_IS%c_S%c_E", digits[i], digits[i]);
}

static void test_plain_names_are_bounded(void **state)
{
	const struct rlimit little = { 1 << 30, 1 << 30 };
	char name[1024];

	(void)state;
	double_name(name, 4);
	char *plain = demangled_name(name);
	assert_memory_equal(plain, "f(A, B<A, A>, B<B<A, A>, B<A, A> >, ", 36);
	free(plain);
	/* Gigabytes, or minutes, in a process that has neither. */
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		const struct rlimit minute = { 60, 60 };
		double_name(name, 34);
		if (!under_sanitizer && setrlimit(RLIMIT_DATA, &little))
			_exit(2);
		if (setrlimit(RLIMIT_CPU, &minute))
			_exit(2);
		plain = demangled_name(name);
		_exit(plain && !strcmp(plain, name) ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_lines_and_inlined_calls),
		cmocka_unit_test(test_libraries_and_their_allocator),
		cmocka_unit_test(test_the_end_of_the_reader_costs_names),
		cmocka_unit_test(test_another_file_at_the_path_is_not_believed),
		cmocka_unit_test(test_addresses_of_nowhere),
		cmocka_unit_test(test_plain_names),
		cmocka_unit_test(test_plain_names_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
