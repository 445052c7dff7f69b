/* SPDX-License-Identifier: MIT */
/* The cache of unwind rows: what is found again, what is refused, what is removed. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "unwind_cache.h"

#define ROWS 40u
#define EXEC_BYTES 4096u

static char root[64];
static const uint8_t build_id[20] = { 0xab, 1, 2 };
static const struct unwind_cache_key key = { build_id, sizeof build_id, 77, EXEC_BYTES };
static const char file_of_key[] = "memattach/ab01020000000000000000000000000000000000-3.unwind";

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/memattach-cache.XXXXXX");
	assert_non_null(mkdtemp(root));
	assert_int_equal(setenv("XDG_CACHE_HOME", root, 1), 0);
	assert_int_equal(chdir(root), 0);
	return 0;
}

static int remove_root(void **state)
{
	char command[96];

	(void)state;
	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

static void make_rows(struct unwind_rows *rows, uint32_t count)
{
	*rows = (struct unwind_rows){
		.pc = calloc(count, 4), .rule = calloc(count, 4), .count = count, .fdes = 5, .damaged = 1
	};
	assert_true(rows->pc && rows->rule);
	for (uint32_t i = 0; i < count; i++) {
		rows->pc[i] = i * 7;
		rows->rule[i] = UNWIND_RULE(UNWIND_RSP, 8 + 8 * (i % 5), 0);
	}
}

static void store_key(const struct unwind_cache_key *k, uint32_t count)
{
	struct unwind_cache c;
	struct unwind_rows rows;

	make_rows(&rows, count);
	unwind_cache_open(&c, UNWIND_CACHE_MAX_BYTES);
	assert_true(c.files.dir >= 0);
	unwind_cache_store(&c, k, &rows);
	unwind_cache_close(&c);
	unwind_rows_done(&rows);
}

static bool is_found(const struct unwind_cache_key *k)
{
	struct unwind_cache c;
	struct unwind_rows rows = { .count = 12345 };

	unwind_cache_open(&c, UNWIND_CACHE_MAX_BYTES);
	bool found = unwind_cache_load(&c, k, &rows);
	unwind_cache_close(&c);
	if (found)
		unwind_rows_done(&rows);
	else
		assert_int_equal(rows.count, 12345);
	return found;
}

static bool has_cache(void)
{
	struct unwind_cache c;

	unwind_cache_open(&c, UNWIND_CACHE_MAX_BYTES);
	bool has = c.files.dir >= 0;
	unwind_cache_close(&c);
	return has;
}

static void test_load_finds_what_was_stored(void **state)
{
	struct unwind_cache c;
	struct unwind_rows in, out;
	struct stat st;

	(void)state;
	assert_false(is_found(&key));
	store_key(&key, ROWS);
	make_rows(&in, ROWS);
	unwind_cache_open(&c, UNWIND_CACHE_MAX_BYTES);
	assert_true(unwind_cache_load(&c, &key, &out));
	unwind_cache_close(&c);
	assert_int_equal(out.count, ROWS);
	assert_memory_equal(out.pc, in.pc, ROWS * 4);
	assert_memory_equal(out.rule, in.rule, ROWS * 4);
	assert_true(out.fdes == 5 && out.damaged == 1);
	unwind_rows_done(&in);
	unwind_rows_done(&out);
	assert_int_equal(stat(file_of_key, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat("memattach", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void test_load_asks_for_the_same_source(void **state)
{
	struct unwind_cache_key other = key;

	(void)state;
	store_key(&key, ROWS);
	other.source_hash++;
	assert_false(is_found(&other));
	other = key;
	other.exec_bytes += 16;
	assert_false(is_found(&other));
	other = key;
	other.build_id_bytes--;
	assert_false(is_found(&other));
	other.build_id_bytes = 0;
	store_key(&other, ROWS);
	assert_false(is_found(&other));
	assert_true(is_found(&key));
}

static size_t slurp(uint8_t *data, size_t room)
{
	AUTO_FCLOSE FILE *f = fopen(file_of_key, "r");

	assert_non_null(f);
	return fread(data, 1, room, f);
}

static void put(const void *data, size_t bytes)
{
	AUTO_FCLOSE FILE *f = fopen(file_of_key, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, bytes, f), bytes);
}

static void test_load_refuses_damage(void **state)
{
	uint8_t data[1024];

	(void)state;
	store_key(&key, ROWS);
	size_t bytes = slurp(data, sizeof data);
	assert_int_equal(bytes, sizeof(struct unwind_cache_file) + ROWS * 8);
	for (size_t i = 0; i < bytes; i++) {
		put(data, i);
		assert_false(is_found(&key));
		data[i] ^= 0x10;
		put(data, bytes);
		assert_false(is_found(&key));
		data[i] ^= 0x10;
	}
	put(data, bytes + 1);
	assert_false(is_found(&key));
	/* It is replaced. */
	store_key(&key, ROWS);
	assert_true(is_found(&key));
}

/* The rows of a file whose hash is right. */
static void forge(struct unwind_cache_file *f, uint32_t rows_in_file)
{
	size_t bytes = sizeof *f + rows_in_file * 8;

	f->head.checksum = cache_hash(&f->source_hash, bytes - 16, UNWIND_CACHE_MAGIC);
	put(f, bytes);
}

static void test_load_refuses_rows_that_harm(void **state)
{
	union {
		struct unwind_cache_file f;
		uint32_t words[256];
	} data;
	uint32_t *pc = &data.words[sizeof data.f / 4], *rule = pc + ROWS, saved;

	(void)state;
	store_key(&key, ROWS);
	slurp((uint8_t *)&data, sizeof data);
	forge(&data.f, ROWS);
	assert_true(is_found(&key));
#define REFUSED(place, value)                                                                                          \
	do {                                                                                                           \
		saved = (place);                                                                                       \
		(place) = (value);                                                                                     \
		forge(&data.f, ROWS);                                                                                  \
		assert_false(is_found(&key));                                                                          \
		(place) = saved;                                                                                       \
	} while (0)
	REFUSED(pc[0], 1);
	REFUSED(pc[5], pc[4]);
	REFUSED(pc[5], pc[6] + 1);
	REFUSED(pc[ROWS - 1], EXEC_BYTES);
	REFUSED(rule[3], UNWIND_UNSUPPORTED + 1);
	REFUSED(data.f.count, 0);
	REFUSED(data.f.count, ROWS - 1);
	REFUSED(data.f.count, UINT32_MAX);
	REFUSED(data.f.count, 0x80000000u + ROWS);
	REFUSED(data.f.version, UNWIND_VERSION + 1);
#undef REFUSED
	forge(&data.f, ROWS);
	assert_true(is_found(&key));
}

static void test_load_refuses_what_is_no_file(void **state)
{
	(void)state;
	store_key(&key, ROWS);
	assert_int_equal(rename(file_of_key, "elsewhere"), 0);
	assert_int_equal(symlink("../elsewhere", file_of_key), 0);
	assert_false(is_found(&key));
	assert_int_equal(unlink(file_of_key), 0);
	assert_int_equal(mkfifo(file_of_key, 0600), 0);
	assert_false(is_found(&key));
	assert_int_equal(unlink(file_of_key), 0);
	assert_int_equal(mkdir(file_of_key, 0700), 0);
	assert_false(is_found(&key));
	store_key(&key, ROWS);
	assert_false(is_found(&key));
}

static void test_open_asks_for_a_directory_of_ones_own(void **state)
{
	(void)state;
	assert_true(has_cache());
	assert_int_equal(chmod("memattach", 0770), 0);
	assert_false(has_cache());
	assert_int_equal(chmod("memattach", 0707), 0);
	assert_false(has_cache());
	assert_int_equal(chmod("memattach", 0755), 0);
	assert_true(has_cache());
	assert_int_equal(chmod(root, 01777), 0);
	assert_false(has_cache());
	assert_int_equal(chmod(root, 0700), 0);
	assert_int_equal(rename("memattach", "other"), 0);
	assert_int_equal(symlink("other", "memattach"), 0);
	assert_false(has_cache());
	assert_int_equal(unlink("memattach"), 0);
	assert_int_equal(rename("other", "memattach"), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown("memattach", 1, 1), 0);
		assert_false(has_cache());
		assert_int_equal(chown("memattach", 0, 0), 0);
		assert_int_equal(chown(root, 1, 1), 0);
		assert_false(has_cache());
		assert_int_equal(chown(root, 0, 0), 0);
	}
	assert_true(has_cache());
}

static void test_open_looks_for_a_home(void **state)
{
	(void)state;
	assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
	assert_int_equal(setenv("HOME", root, 1), 0);
	assert_true(has_cache());
	assert_int_equal(access(".cache/memattach", F_OK), 0);
	assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
	assert_true(has_cache());
	assert_int_equal(setenv("HOME", "/nonexistent", 1), 0);
	assert_false(has_cache());
	assert_int_equal(setenv("HOME", "", 1), 0);
	assert_false(has_cache());
	assert_int_equal(unsetenv("HOME"), 0);
	assert_false(has_cache());
}

/* Sets when the file of key number i was used: i seconds after the epoch. */
static void age(uint8_t id[20], struct unwind_cache_key *k, int i)
{
	char name[96];
	const struct timespec times[2] = { { .tv_sec = i }, { .tv_sec = i } };

	id[0] = (uint8_t)i;
	*k = (struct unwind_cache_key){ id, 20, 77, EXEC_BYTES };
	store_key(k, ROWS);
	snprintf(name, sizeof name, "memattach/%02x01020000000000000000000000000000000000-3.unwind", i);
	assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
}

static void test_close_removes_the_oldest(void **state)
{
	uint8_t id[20] = { 0, 1, 2 };
	struct unwind_cache c;
	struct unwind_cache_key k;
	struct unwind_rows rows;
	const size_t bytes = sizeof(struct unwind_cache_file) + ROWS * 8;

	(void)state;
	for (int i = 1; i <= 8; i++)
		age(id, &k, i);
	close(open("memattach/notes", O_CREAT | O_WRONLY, 0600));
	id[0] = 2;
	assert_true(is_found(&k)); /* used now */
	make_rows(&rows, ROWS);
	unwind_cache_open(&c, 6 * bytes);
	unwind_cache_store(&c, &key, &rows);
	unwind_cache_close(&c);
	for (int i = 1; i <= 8; i++) {
		id[0] = (uint8_t)i;
		/* Six have room: the new one, number 2, and of the others the last four. */
		assert_int_equal(is_found(&k), i == 2 || i > 4);
	}
	assert_true(is_found(&key));
	assert_int_equal(access("memattach/notes", F_OK), 0);
	/* A file that would take most of the room is not stored at all. */
	id[0] = 99;
	unwind_cache_open(&c, 3 * bytes);
	unwind_cache_store(&c, &k, &rows);
	unwind_cache_close(&c);
	assert_false(is_found(&k));
	unwind_rows_done(&rows);
}

static void compile(struct victim *v, struct unwind_rows rows[2])
{
	struct unwind_cache c;
	struct view view;
	struct module_file f;
	struct err e;

	view_open(&view, v->pid, false);
	unwind_cache_open(&c, UNWIND_CACHE_MAX_BYTES);
	module_file_open(&f, modules_main(&view.modules), &view.tm, &view.maps);
	assert_true(f.module->build_id_bytes > 0);
	assert_int_equal(unwind_compile_module(&rows[0], &f, NULL, &e), 0);
	assert_int_equal(unwind_compile_module(&rows[1], &f, &c, &e), 0);
	module_file_close(&f);
	unwind_cache_close(&c);
	view_close(&view);
}

static void compare_and_free(struct unwind_rows rows[2])
{
	assert_true(rows[0].count > 0);
	assert_int_equal(rows[0].count, rows[1].count);
	assert_int_equal(rows[0].fdes, rows[1].fdes);
	assert_memory_equal(rows[0].pc, rows[1].pc, rows[0].count * 4);
	assert_memory_equal(rows[0].rule, rows[1].rule, rows[0].count * 4);
	unwind_rows_done(&rows[0]);
	unwind_rows_done(&rows[1]);
}

/* Compiled, stored, found; and it is the file that is read: one with other rows gives these. */
static void test_compile_module_uses_the_cache(void **state)
{
	struct unwind_rows rows[2], changed;
	struct victim v;
	struct view view;
	struct unwind_cache c;
	struct module_file f;
	struct err e;

	(void)state;
	victim_start(&v, "victim_now", NULL, NULL);
	for (int i = 0; i < 2; i++) {
		compile(&v, rows);
		compare_and_free(rows);
	}
	view_open(&view, v.pid, false);
	unwind_cache_open(&c, UNWIND_CACHE_MAX_BYTES);
	for (size_t i = 0; i < view.modules.count; i++) {
		if (view.modules.list[i].is_vdso)
			continue;
		module_file_open(&f, &view.modules.list[i], &view.tm, &view.maps);
		assert_int_equal(unwind_compile_module(&rows[0], &f, &c, &e), 0);
		assert_int_equal(unwind_compile_module(&rows[1], &f, &c, &e), 0);
		compare_and_free(rows);
		module_file_close(&f);
	}
	module_file_open(&f, modules_main(&view.modules), &view.tm, &view.maps);
	assert_int_equal(unwind_compile_module(&changed, &f, NULL, &e), 0);
	struct unwind_cache_file head;
	char path[200];
	snprintf(path, sizeof path, "memattach/");
	for (uint32_t i = 0; i < f.module->build_id_bytes; i++)
		sprintf(path + strlen(path), "%02x", f.module->build_id[i]);
	strcat(path, "-3.unwind");
	AUTO_FCLOSE FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fread(&head, sizeof head, 1, file), 1);
	changed.count = 1;
	const struct unwind_cache_key own = { f.module->build_id, f.module->build_id_bytes, head.source_hash,
		                              head.exec_bytes };
	unwind_cache_store(&c, &own, &changed);
	assert_int_equal(unwind_compile_module(&rows[0], &f, &c, &e), 0);
	assert_int_equal(rows[0].count, 1);
	unwind_rows_done(&rows[0]);
	unwind_rows_done(&changed);
	module_file_close(&f);
	unwind_cache_close(&c);
	view_close(&view);
	victim_end(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_load_finds_what_was_stored, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_load_asks_for_the_same_source, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_load_refuses_damage, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_load_refuses_rows_that_harm, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_load_refuses_what_is_no_file, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_open_asks_for_a_directory_of_ones_own, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_open_looks_for_a_home, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_close_removes_the_oldest, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_compile_module_uses_the_cache, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
