/* SPDX-License-Identifier: MIT */
#include "threads_fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE_BYTES 4096

void *threads_sleep(void *number)
{
	(void)number;
	for (;;)
		pause();
	return NULL;
}

static _Noreturn void be_target(unsigned others, thread_work (*work)(uintptr_t number), int ready)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uintptr_t i = 0; i < others; i++)
		if (pthread_create(&thread, NULL, work(i), (void *)i))
			_exit(1);
	if (write(ready, "", 1) == 1)
		threads_sleep(NULL);
	_exit(1);
}

pid_t threads_start(unsigned others, thread_work (*work)(uintptr_t number), void **page)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	*page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(*page, MAP_FAILED);
	pid_t pid = fork();
	if (pid == 0)
		be_target(others, work, ready[1]);
	assert_true(pid > 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

void threads_end(pid_t pid, void *page)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	munmap(page, PAGE_BYTES);
}
