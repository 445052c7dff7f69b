/* SPDX-License-Identifier: MIT */
/* What a process can still do when it has given up everything, in a child that tells by its exit status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "sandbox/rights.h"

#define DATA_BYTES (32u << 20)
/* Where SANITIZED, there are no filter, no closing and no limit of memory. */

static int try(const int *fds)
{
	char byte = 0;

	if (pwrite(fds[0], &byte, 1, 0) != 1)
		return 3;
	if (pwrite(fds[1], &byte, 1, 0) != -1)
		return 4;
	if (open("/proc/self/maps", O_RDONLY) != -1 || socket(AF_UNIX, SOCK_STREAM, 0) != -1 ||
	    execl("/bin/true", "true", NULL) != -1)
		return 5;
	if (mmap(NULL, DATA_BYTES / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		return 6;
	return mmap(NULL, 2 * DATA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? 0
	                                                                                                            : 7;
}

static void test_rights_drop_to_compute_leaves_what_is_kept(void **state)
{
	int fds[] = { memfd_create("kept", 0), memfd_create("closed", 0) }, status;

	(void)state;
	if (SANITIZED)
		skip();
	pid_t child = fork();
	if (child == 0) {
		rights_drop_to_compute(fds, 1, DATA_BYTES, 10);
		_exit(try(fds));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(fds[0]);
	close(fds[1]);
}

/* Numbers that mean other calls than those of the list. */
static void test_rights_drop_to_compute_ends_at_calls_of_x32(void **state)
{
	int status;

	(void)state;
	if (SANITIZED)
		skip();
	pid_t child = fork();
	if (child == 0) {
		rights_drop_to_compute(NULL, 0, DATA_BYTES, 10);
		_exit(syscall(0x40000000 | SYS_getpid) == -1 ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rights_drop_to_compute_leaves_what_is_kept),
		cmocka_unit_test(test_rights_drop_to_compute_ends_at_calls_of_x32),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
