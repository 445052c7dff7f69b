/* SPDX-License-Identifier: MIT */
/* By name: the mapped file and no other, whatever the name leads to. In a child without capabilities, for whom
 * map_files is closed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "maps/target_file.h"

#define NOBODY 65534u

static char directory[] = "/tmp/target_file-XXXXXX";

static void put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(100);
	close(fd);
}

static const struct mapping *map_of(struct maps *maps, const char *name)
{
	struct err e;
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, 4, PROT_READ, MAP_PRIVATE, fd, 0);

	close(fd);
	if (at == MAP_FAILED || maps_read(maps, "/proc/self/maps", &e))
		_exit(101);
	return maps_find(maps, (uint64_t)(uintptr_t)at);
}

static bool opens(const struct mapping *map, const char *name)
{
	char path[200], text[4] = "";

	snprintf(path, sizeof path, "%s/%s", directory, name);
	int fd = target_file_open(getpid(), map, path);
	if (fd < 0)
		return false;
	bool right = pread(fd, text, 4, 0) == 4 && !memcmp(text, "good", 4);
	close(fd);
	return right;
}

/* The number of the first thing that is not as it should be. */
static int look(void)
{
	struct maps maps;

	if (chdir(directory))
		return 1;
	put("good", "good");
	put("other", "evil");
	if (mkfifo("fifo", 0644) || symlink("good", "link") || symlink("/proc/self/fd/0", "magic") ||
	    symlink("other", "wrong"))
		return 2;
	const struct mapping *map = map_of(&maps, "good");
	if (!map || !opens(map, "good") || !opens(map, "link"))
		return 3;
	if (opens(map, "other") || opens(map, "wrong") || opens(map, "fifo") || opens(map, "magic") ||
	    opens(map, "none"))
		return 4;
	/* The name stands for another file now. */
	if (rename("other", "good") || opens(map, "good"))
		return 5;
	maps_free(&maps);
	return 0;
}

static void test_target_file_open_takes_only_what_is_mapped(void **state)
{
	int status;

	(void)state;
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chmod(directory, 0777), 0);
	pid_t child = fork();
	if (child == 0) {
		if (geteuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
			_exit(102);
		prctl(PR_SET_DUMPABLE, 1);
		_exit(look());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	char command[100];
	snprintf(command, sizeof command, "rm -r %s", directory);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target_file_open_takes_only_what_is_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
