/* SPDX-License-Identifier: MIT */
#include "process/clone_vm.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define STACK_BYTES 65536

static int wait_for_end(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
	return 0;
}

/* A process that has made a child by clone(CLONE_VM) alone. */
static pid_t start_target(pid_t *child)
{
	int told[2];

	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pid_t made = stack == MAP_FAILED ? -1
		                                 : clone(wait_for_end, stack + STACK_BYTES, CLONE_VM | SIGCHLD, NULL);
		_exit(write(told[1], &made, sizeof made) != sizeof made || wait_for_end(NULL));
	}
	assert_true(pid > 0);
	assert_int_equal(read(told[0], child, sizeof *child), sizeof *child);
	assert_true(*child > 0);
	close(told[0]);
	close(told[1]);
	return pid;
}

static int check(const struct target *t, char state, int64_t number)
{
	const struct thread_info thread = { .tid = t->tid, .state = state, .call.number = number };
	struct err e = { .text = "" };
	int rc = clone_vm_check_thread_pointers(t, &thread, 1, &e);

	assert_true(rc == 0 || strstr(e.text, "CLONE_VM"));
	return rc;
}

static void test_only_a_vfork_parent_accounts_for_a_sharer(void **state)
{
	pid_t child = 0, pid = start_target(&child), *list = NULL;
	const struct target t = { .pid = pid, .tid = pid };
	size_t count = 0;
	struct err e;

	(void)state;
	bool known = clone_vm_is_one(&t, child);
	if (known) {
		assert_int_equal(clone_vm_find(&t, &list, &count, &e), 0);
		assert_int_equal(count, 1);
		assert_int_equal(list[0], child);
		assert_int_equal(check(&t, 'S', SYS_wait4), -EBUSY);
		assert_int_equal(check(&t, 'D', SYS_read), -EBUSY); /* a disk */
		assert_int_equal(check(&t, 'R', -1), -EBUSY);
#ifdef SYS_vfork
		assert_int_equal(check(&t, 'D', SYS_vfork), 0);
#endif
		assert_int_equal(check(&t, 'D', SYS_clone), 0);
		assert_int_equal(check(&t, 'D', 435), 0);
		assert_int_equal(check(&t, 'D', -1), 0);
	}
	assert_false(clone_vm_is_one(&t, getpid()));
	free(list);
	kill(child, SIGKILL);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	if (!known)
		skip(); /* a kernel without kcmp */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_a_vfork_parent_accounts_for_a_sharer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
