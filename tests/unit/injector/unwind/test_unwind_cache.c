/* SPDX-License-Identifier: MIT */
/* The cache of unwind rows: what is found again, what is refused, what is removed. */
#include "fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/rule_encode.h"
#include "base/cleanup.h"
#include "unwind/unwind_cache.h"

#define ROWS 40u
#define EXEC_BYTES 4096u

static char root[64];
static const struct cache_key key = { { 0xab, 1, 2 } };
#define FILE_OF(first) "memattach/" first "0102" ZEROES ZEROES ".unwind"
#define ZEROES "00000000000000000000000000000"
static const char file_of_key[] = FILE_OF("ab");

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
		rows->rule[i] = UNWIND_RULE(UNWIND_SP, 8 + 8 * (i % 5), 0);
	}
}

static void store_key(const struct cache_key *k, uint32_t count)
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

static bool is_found(const struct cache_key *k)
{
	struct unwind_cache c;
	struct unwind_rows rows = { .count = 12345 };

	unwind_cache_open(&c, UNWIND_CACHE_MAX_BYTES);
	bool found = unwind_cache_load(&c, k, EXEC_BYTES, &rows);
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
	assert_true(unwind_cache_load(&c, &key, EXEC_BYTES, &out));
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

static void test_load_asks_for_the_same_key(void **state)
{
	struct cache_key other = key;
	struct unwind_cache c;
	struct unwind_rows rows;

	(void)state;
	store_key(&key, ROWS);
	for (unsigned i = 0; i < sizeof other.digest; i++) {
		other.digest[i] ^= 1;
		assert_false(is_found(&other));
		other.digest[i] ^= 1;
	}
	assert_true(is_found(&key));
	unwind_cache_open(&c, UNWIND_CACHE_MAX_BYTES);
	assert_false(unwind_cache_load(&c, &key, 7 * (ROWS - 1), &rows)); /* a row begins there */
	unwind_cache_close(&c);
}

/* Another process of this user in the same namespaces; not one of another user, nor one that has another root. */
static void test_is_for_ones_own_processes(void **state)
{
	pid_t child;
	int ready[2], done[2];

	(void)state;
	assert_true(unwind_cache_is_for(getpid()));
	for (int how = 0; how < 3; how++) {
		assert_int_equal(pipe(ready) | pipe(done), 0);
		child = fork();
		if (child == 0) {
			bool made = how == 0 || (how == 1 ? setresuid(-1, -1, 1) : unshare(CLONE_NEWNS)) == 0;
			close(done[1]);
			if (write(ready[1], made ? "y" : "n", 1) == 1 && read(done[0], &made, 1) >= 0)
				_exit(0);
			_exit(1);
		}
		char made = 'n';
		close(done[0]);
		assert_int_equal(read(ready[0], &made, 1), 1);
		if (made == 'y')
			assert_int_equal(unwind_cache_is_for(child), how == 0);
		else
			assert_int_not_equal(geteuid(), 0);
		close(done[1]);
		close(ready[0]), close(ready[1]);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
	assert_false(unwind_cache_is_for(child)); /* which is gone */
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

	cache_dir_checksum(&f->head, bytes, f->head.checksum);
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
	REFUSED(rule[3], unwind_kind_last + 1);
	REFUSED(data.f.count, 0);
	REFUSED(data.f.count, ROWS - 1);
	REFUSED(data.f.count, UINT32_MAX);
	REFUSED(data.f.count, 0x80000000u + ROWS);
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
static void age(struct cache_key *k, int i)
{
	char name[] = FILE_OF("ab"), number[3];
	const struct timespec times[2] = { { .tv_sec = i }, { .tv_sec = i } };

	k->digest[0] = (uint8_t)i;
	store_key(k, ROWS);
	snprintf(number, sizeof number, "%02x", i);
	memcpy(strstr(name, "ab"), number, 2);
	assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
}

static void test_close_removes_the_oldest(void **state)
{
	struct cache_key k = key;
	struct unwind_cache c;
	struct unwind_rows rows;
	const size_t bytes = sizeof(struct unwind_cache_file) + ROWS * 8;

	(void)state;
	for (int i = 1; i <= 8; i++)
		age(&k, i);
	close(open("memattach/notes", O_CREAT | O_WRONLY, 0600));
	k.digest[0] = 2;
	assert_true(is_found(&k)); /* used now */
	make_rows(&rows, ROWS);
	unwind_cache_open(&c, 6 * bytes);
	unwind_cache_store(&c, &key, &rows);
	unwind_cache_close(&c);
	for (int i = 1; i <= 8; i++) {
		k.digest[0] = (uint8_t)i;
		/* Six have room: the new one, number 2, and of the others the last four. */
		assert_int_equal(is_found(&k), i == 2 || i > 4);
	}
	assert_true(is_found(&key));
	assert_int_equal(access("memattach/notes", F_OK), 0);
	/* A file that would take most of the room is not stored at all. */
	k.digest[0] = 99;
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
	struct unwind_input in;
	struct victim v;
	struct view view;
	struct unwind_cache c;
	struct module_file f;
	struct cache_key own;
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
	changed.count = 1;
	unwind_input_read(&in, &f);
	assert_true(unwind_input_key(&in, &own));
	unwind_cache_store(&c, &own, &changed);
	assert_int_equal(unwind_compile_module(&rows[0], &f, &c, &e), 0);
	assert_int_equal(rows[0].count, 1);
	unwind_rows_done(&rows[0]);
	unwind_rows_done(&changed);
	unwind_input_done(&in);
	module_file_close(&f);
	unwind_cache_close(&c);
	view_close(&view);
	victim_end(&v);
}

static bool key_of(struct cache_key *out, struct elf_module *m, const struct view *view,
                   const struct unwind_source *source)
{
	struct module_file f;

	module_file_open(&f, m, &view->tm, &view->maps);
	bool keyed = unwind_cache_key(out, &f, source);
	module_file_close(&f);
	return keyed;
}

/* One byte of the call frame information, one of the code, and where both are: each makes another key. */
static void test_key_covers_what_rows_depend_on(void **state)
{
	uint8_t frames[64] = { 1 };
	struct unwind_source source = { frames, sizeof frames, 0x1000, false, 0x2000, 0x3000 };
	struct cache_key first, other;
	struct view view;

	(void)state;
	view_open(&view, getpid(), false);
	struct elf_module m = *modules_main(&view.modules);
	assert_true(key_of(&first, &m, &view, &source) && key_of(&other, &m, &view, &source));
	assert_memory_equal(&first, &other, sizeof first);
#define DIFFERS(place, value)                                                                                          \
	do {                                                                                                           \
		const __auto_type saved = (place);                                                                     \
		(place) = (value);                                                                                     \
		assert_true(key_of(&other, &m, &view, &source));                                                       \
		assert_memory_not_equal(&first, &other, sizeof first);                                                 \
		(place) = saved;                                                                                       \
	} while (0)
	DIFFERS(frames[63], 1);
	DIFFERS(source.bytes, 63);
	DIFFERS(source.address, 0x1008);
	DIFFERS(source.debug_frame, true);
	DIFFERS(source.exec_start, 0x1000);
	DIFFERS(source.exec_end, 0x4000);
#undef DIFFERS
	/* Code in memory, where a byte can be another one, and which can go. */
	const size_t code_bytes = 4096;
	uint8_t *code = mmap(NULL, code_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(code != MAP_FAILED);
	Elf64_Phdr segment = {
		.p_type = PT_LOAD, .p_flags = PF_X | PF_R, .p_filesz = code_bytes, .p_memsz = code_bytes
	};
	struct elf_module made = { .bias = (uintptr_t)code,
		                   .phdrs = &segment,
		                   .phdr_count = 1,
		                   .exec_start = (uintptr_t)code,
		                   .exec_end = (uintptr_t)code + code_bytes,
		                   .is_vdso = true,
		                   .path = (char[]){ "made" } };
	assert_true(key_of(&first, &made, &view, &source));
	code[code_bytes - 1] = 1;
	assert_true(key_of(&other, &made, &view, &source));
	assert_memory_not_equal(&first, &other, sizeof first);
	assert_int_equal(munmap(code, code_bytes), 0);
	assert_false(key_of(&other, &made, &view, &source));
	view_close(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_load_finds_what_was_stored, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_load_asks_for_the_same_key, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_load_refuses_damage, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_load_refuses_rows_that_harm, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_load_refuses_what_is_no_file, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_open_asks_for_a_directory_of_ones_own, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_open_looks_for_a_home, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_close_removes_the_oldest, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_compile_module_uses_the_cache, make_root, remove_root),
		cmocka_unit_test(test_key_covers_what_rows_depend_on),
		cmocka_unit_test(test_is_for_ones_own_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
