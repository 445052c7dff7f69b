/* SPDX-License-Identifier: MIT */
/* Symbols of this program with a cache: the same as without, from the cache where it has them, and never what does not
 * belong there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "symbols.h"

#define PLACES 40u

static char root[64];
static char program[4096];
static struct images images;
static struct image image_list[2];
static const struct image_search search;
static uint64_t places[PLACES];

static int find_bias(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr;
	return 1; /* the program comes first */
}

/* Functions of this program to look at; the addresses after their first instructions. */
static int find_program(void **state)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	AUTO_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const void *id;
	uint64_t bias;

	(void)state;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	ssize_t bytes = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
	if (n <= 0 || bytes <= 0 || bytes > (ssize_t)DUMP_BUILD_ID_MAX)
		return -1;
	image_list[1] = (struct image){ .path = program, .build_id_bytes = (uint32_t)bytes };
	memcpy(image_list[1].build_id, id, (size_t)bytes);
	elf_end(elf);
	images = (struct images){ .list = image_list, .count = 2 };
	dl_iterate_phdr(find_bias, &bias);
	for (uint32_t i = 0; i < PLACES; i++)
		places[i] = PLACE(1, (uint64_t)(uintptr_t)&find_program - bias + 4 + 32 * i);
	return 0;
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/memattach-symbols.XXXXXX");
	return mkdtemp(root) && !setenv("XDG_CACHE_HOME", root, 1) && !chdir(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof command, "cd /; rm -rf %s", root);
	return chdir("/") || system(command);
}

/* What is known of the places from first on, as text. */
static char *tell(struct symbol_cache *cache, uint32_t first, uint32_t count, bool lines)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	struct symbols *s = symbols_new(&images, &search, cache, lines);

	assert_true(out && s);
	for (uint32_t i = first; i < first + count; i++) {
		size_t n;
		const struct location *l = symbols_find(s, places[i], &n);
		fprintf(out, "%d", symbols_in_allocator(s, places[i]));
		for (size_t k = 0; k < n; k++)
			fprintf(out, " %s %s %d %d", l[k].function, l[k].file ? l[k].file : "-", l[k].line,
			        l[k].inlined);
		fputc('\n', out);
	}
	symbols_free(s);
	fclose(out);
	return text;
}

static char *tell_cached(uint64_t max_bytes, uint32_t first, uint32_t count, bool lines)
{
	struct symbol_cache cache;

	symbol_cache_open(&cache, max_bytes);
	char *text = tell(&cache, first, count, lines);
	symbol_cache_close(&cache);
	return text;
}

static void expect(uint64_t max_bytes, uint32_t first, uint32_t count, bool lines)
{
	AUTO_FREE char *want = tell(NULL, first, count, lines), *got = tell_cached(max_bytes, first, count, lines);

	assert_true(first || strstr(want, "find_program"));
	assert_string_equal(got, want);
}

/* The one file of the cache, and its bytes; NULL if there is none. */
static struct symbol_file *read_kept(char path[512], size_t *bytes)
{
	DIR *d = opendir("memattach");
	struct symbol_file *f = NULL;
	int found = 0;

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		if (e->d_name[0] == '.')
			continue;
		struct stat st;
		snprintf(path, 512, "memattach/%s", e->d_name);
		AUTO_FCLOSE FILE *file = fopen(path, "re");
		assert_true(file && !fstat(fileno(file), &st));
		assert_int_equal(st.st_mode & 07777, 0600);
		*bytes = (size_t)st.st_size;
		f = malloc(*bytes);
		assert_true(f && fread(f, 1, *bytes, file) == *bytes);
		assert_int_equal(++found, 1);
	}
	if (d)
		closedir(d);
	return f;
}

static void write_kept(const char *path, struct symbol_file *f, size_t bytes)
{
	AUTO_FCLOSE FILE *file = fopen(path, "we");

	f->head.checksum = cache_hash(&f->identity, bytes - sizeof f->head, f->head.magic);
	assert_true(file && fwrite(f, 1, bytes, file) == bytes);
}

static uint32_t kept_places(void)
{
	char path[512];
	size_t bytes;
	AUTO_FREE struct symbol_file *f = read_kept(path, &bytes);

	return f ? f->place_count : 0;
}

static void test_symbols_are_the_same_from_the_cache(void **state)
{
	(void)state;
	expect(SYMBOL_CACHE_MAX_BYTES, 0, PLACES / 2, true);
	assert_int_equal(kept_places(), PLACES / 2);
	expect(SYMBOL_CACHE_MAX_BYTES, 0, PLACES / 2, true);
	expect(SYMBOL_CACHE_MAX_BYTES, PLACES / 4, PLACES / 2, true); /* some are there */
	assert_int_equal(kept_places(), PLACES * 3 / 4);
	expect(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, true);
	assert_int_equal(kept_places(), PLACES);
}

static void test_lines_are_looked_up_when_they_are_asked_for(void **state)
{
	char path[512];
	size_t bytes;

	(void)state;
	expect(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, false);
	expect(SYMBOL_CACHE_MAX_BYTES, 0, 4, true);
	expect(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, false);
	AUTO_FREE struct symbol_file *f = read_kept(path, &bytes);
	assert_non_null(f);
	for (uint32_t i = 0; i < PLACES; i++)
		assert_int_equal(symbol_file_find(f, PLACE_OFFSET(places[i]))->flags, i < 4 ? SYMBOL_PLACE_LINES : 0);
	expect(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, true);
}

/* In place of a name, one as long, so that it is seen where an answer came from. */
static void forge(void (*change)(struct symbol_file *))
{
	char path[512];
	size_t bytes;
	AUTO_FREE struct symbol_file *f = read_kept(path, &bytes);
	char *at = f ? memmem(f, bytes, "find_program", 12) : NULL;

	assert_non_null(at);
	memcpy(at, "FIND_PROGRAM", 12);
	change(f);
	write_kept(path, f, bytes);
}

static void no_change(struct symbol_file *f)
{
	(void)f;
}

static void other_identity(struct symbol_file *f)
{
	f->identity++;
}

static void other_alt(struct symbol_file *f)
{
	f->alt_identity++;
}

static void other_path_of_alt(struct symbol_file *f)
{
	f->alt_path = 0; /* a name instead of a path: no file */
	f->alt_identity = 1;
}

static void outside(struct symbol_file *f)
{
	f->alt_path = f->string_bytes;
}

static bool is_believed(void (*change)(struct symbol_file *))
{
	AUTO_FREE char *first = tell_cached(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, true);

	forge(change);
	AUTO_FREE char *second = tell_cached(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, true);
	bool believed = strstr(second, "FIND_PROGRAM") != NULL;
	if (!believed)
		assert_string_equal(first, second);
	/* What is not believed is replaced. */
	AUTO_FREE char *third = tell_cached(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, true);
	assert_string_equal(third, second);
	return believed;
}

static void test_only_what_came_from_the_same_files_is_believed(void **state)
{
	(void)state;
	assert_false(is_believed(other_identity));
	assert_false(is_believed(other_alt));
	assert_false(is_believed(other_path_of_alt));
	assert_false(is_believed(outside));
	assert_true(is_believed(no_change)); /* the cache is used at all */
}

static void test_damage_is_looked_up_again(void **state)
{
	char path[512];
	size_t bytes;

	(void)state;
	expect(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, true);
	AUTO_FREE struct symbol_file *f = read_kept(path, &bytes);
	assert_non_null(f);
	for (size_t i = 0; i < bytes; i += bytes / 16) {
		AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
		uint8_t byte = (uint8_t)(((uint8_t *)f)[i] ^ 1);
		assert_true(fd >= 0 && pwrite(fd, &byte, 1, (off_t)i) == 1);
		expect(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, true);
		assert_int_equal(truncate(path, (off_t)i), 0);
		expect(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, true);
		assert_int_equal(kept_places(), PLACES);
	}
}

/* How large the file of these places alone is. */
static size_t bytes_for(uint32_t first, uint32_t count)
{
	char path[512];
	size_t bytes;

	expect(SYMBOL_CACHE_MAX_BYTES, first, count, true);
	AUTO_FREE struct symbol_file *f = read_kept(path, &bytes);
	assert_non_null(f);
	assert_int_equal(unlink(path), 0);
	return bytes;
}

static void test_a_file_that_is_too_large_keeps_what_was_asked_for(void **state)
{
	const uint32_t half = PLACES / 2;
	size_t first = bytes_for(0, half), second = bytes_for(half, half), bytes;
	/* One file has a quarter: room for each half, not for both. */
	uint64_t max_bytes = 4 * (first > second ? first : second);
	char path[512];

	(void)state;
	expect(max_bytes, 0, half, true);
	expect(max_bytes, half, half, true);
	AUTO_FREE struct symbol_file *f = read_kept(path, &bytes);
	assert_non_null(f);
	assert_int_equal(f->place_count, half);
	assert_non_null(symbol_file_find(f, PLACE_OFFSET(places[half])));
	/* Nothing has room for all: what is there stays. */
	expect(max_bytes, 0, PLACES, true);
	assert_int_equal(kept_places(), half);
}

static void test_without_a_directory_or_build_id_nothing_is_kept(void **state)
{
	uint32_t bytes = image_list[1].build_id_bytes;

	(void)state;
	assert_int_equal(chmod(root, 01777), 0);
	expect(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, true);
	assert_int_equal(access("memattach", F_OK), -1);
	assert_int_equal(chmod(root, 0700), 0);
	/* A dump that knows no build-id: a file that has one is not the one that was recorded. */
	image_list[1].build_id_bytes = 0;
	AUTO_FREE char *text = tell_cached(SYMBOL_CACHE_MAX_BYTES, 0, PLACES, true);
	image_list[1].build_id_bytes = bytes;
	assert_int_equal(kept_places(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_symbols_are_the_same_from_the_cache, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_lines_are_looked_up_when_they_are_asked_for, make_root,
		                                remove_root),
		cmocka_unit_test_setup_teardown(test_only_what_came_from_the_same_files_is_believed, make_root,
		                                remove_root),
		cmocka_unit_test_setup_teardown(test_damage_is_looked_up_again, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_a_file_that_is_too_large_keeps_what_was_asked_for, make_root,
		                                remove_root),
		cmocka_unit_test_setup_teardown(test_without_a_directory_or_build_id_nothing_is_kept, make_root,
		                                remove_root),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
