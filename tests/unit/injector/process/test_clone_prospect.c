/* SPDX-License-Identifier: MIT */
#include "process/clones/clone_prospect.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/clones/task_room.h"

#define BYTES (1u << 20)
#define NOBODY 65534
#define LOOKS 10000u
#define PAGE 4096u
#define MANY 5000u

static char *map(void)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(at, 1, BYTES);
	return at;
}

static bool is_plain(void)
{
	return true;
}

static bool takes_memory_from_children(void)
{
	return madvise(map(), BYTES, MADV_DONTFORK) == 0 && madvise(map(), BYTES, MADV_WIPEONFORK) == 0;
}

static bool filters(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog program = { 1, &allow };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool gives_memory_to_userfaultfd(void)
{
	const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (uintptr_t)map(), BYTES }, .mode = UFFDIO_REGISTER_MODE_MISSING };

	return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &range) == 0;
}

static bool has_a_namespace_for_children(void)
{
	return unshare(CLONE_NEWPID) == 0;
}

static bool may_have_no_more_tasks(void)
{
	const struct rlimit few = { 4, 4 };

	return setuid(NOBODY) == 0 && setrlimit(RLIMIT_NPROC, &few) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0;
}

/* A child that lives as long as the process: who had died before the child has asked for that is seen by its parent. */
static pid_t start_child(void)
{
	const pid_t parent = getpid(), child = fork();

	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(0);
}

static void *wait_for_any_kind(void *unused)
{
	for (;;)
		waitpid(-1, NULL, __WALL);
	return unused;
}

static bool waits_for_any_kind(void)
{
	const pid_t child = start_child();
	pthread_t thread;

	return child > 0 && pthread_create(&thread, NULL, wait_for_any_kind, NULL) == 0;
}

static bool traces_its_child(void)
{
	const pid_t child = start_child();

	return child > 0 && ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_EXITKILL) == 0;
}

static bool has_a_queue_of_io(void)
{
	aio_context_t queue = 0;

	return syscall(SYS_io_setup, 8, &queue) == 0;
}

static bool has_many_mappings(void)
{
	char *at = mmap(NULL, MANY * PAGE * 2, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < MANY; i++)
		if (mprotect(at + i * PAGE * 2, PAGE, PROT_READ | PROT_WRITE) < 0)
			return false;
	return true;
}

/* A process that has made ready so, which then stands; 0: this machine does not let it. */
static pid_t start(bool (*ready)(void))
{
	int told[2];
	char byte = 0;

	assert_int_equal(pipe(told), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(told[0]);
		const bool is_ready = ready();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!is_ready || write(told[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	close(told[1]);
	const bool is_ready = read(told[0], &byte, 1) == 1;
	close(told[0]);
	if (!is_ready)
		waitpid(pid, NULL, 0);
	return is_ready ? pid : 0;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int look(pid_t pid, bool splits, struct clone_prospect *p, struct err *e)
{
	struct target t;

	assert_int_equal(target_open(&t, pid, e), 0);
	int rc = clone_prospect_look(p, &t, splits, e);
	target_close(&t);
	return rc;
}

static void test_what_a_clone_would_harm_is_refused_by_name(void **state)
{
	static const struct {
		bool (*ready)(void);
		const char *why;
	} cases[] = {
		{ filters, "seccomp" },
		{ gives_memory_to_userfaultfd, "userfaultfd" },
		{ has_a_namespace_for_children, "namespace" },
		{ waits_for_any_kind, "any kind" },
		{ traces_its_child, "it traces" },
		{ has_a_queue_of_io, "AIO" },
		{ may_have_no_more_tasks, "processes" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct clone_prospect p;
		struct err e = { .text = "" };
		const pid_t pid = start(cases[i].ready);
		if (!pid)
			continue;
		int rc = look(pid, true, &p, &e);
		for (unsigned k = 0; rc == 0 && k < LOOKS; k++) { /* a thread of it may not be there yet */
			clone_prospect_free(&p);
			usleep(1000);
			rc = look(pid, true, &p, &e);
		}
		assert_int_equal(rc, -ENOTSUP);
		assert_non_null(strstr(e.text, cases[i].why));
		clone_prospect_free(&p);
		end(pid);
	}
}

static void test_memory_that_a_clone_has_not_is_known(void **state)
{
	struct clone_prospect plain, apart;
	struct err e;
	const pid_t one = start(is_plain), other = start(takes_memory_from_children);

	(void)state;
	assert_true(one && other);
	assert_true(task_room_is_ample(one));
	assert_int_equal(look(one, false, &plain, &e), 0);
	assert_int_equal(look(other, false, &apart, &e), 0);
	assert_int_equal(apart.apart_count, plain.apart_count + 2);
	for (size_t i = 0; i < apart.apart_count; i++) {
		const struct apart_range *r = &apart.apart[i];
		assert_true(r->end > r->start);
		assert_false(clone_prospect_keeps(&apart, r->start, r->start + 4096));
		assert_false(clone_prospect_keeps(&apart, r->start - 4096, r->end + 4096));
	}
	assert_true(clone_prospect_keeps(&apart, apart.apart[0].start - 4096, apart.apart[0].start));
	assert_true(apart.small_bytes > 0 && clone_prospect_expected_ns(&apart) > 0);
	clone_prospect_free(&plain);
	clone_prospect_free(&apart);
	end(one);
	end(other);
}

static void test_time_for_mappings_is_foreseen(void **state)
{
	struct clone_prospect few, many;
	const pid_t one = start(is_plain), other = start(has_many_mappings);
	struct err e;

	(void)state;
	assert_true(one && other);
	assert_int_equal(look(one, false, &few, &e), 0);
	assert_int_equal(look(other, false, &many, &e), 0);
	assert_true(many.mappings >= few.mappings + 2 * MANY - 2);
	assert_true(clone_prospect_expected_ns(&many) > clone_prospect_expected_ns(&few) + 2 * MANY * 1000ull);
	clone_prospect_free(&few);
	clone_prospect_free(&many);
	end(one);
	end(other);
}

static bool has_huge_pages(void)
{
	const size_t bytes = 128u << 20;
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (madvise(at, bytes, MADV_HUGEPAGE) < 0)
		return false;
	memset(at, 1, bytes);
	return true;
}

static void test_huge_pages_are_not_split_unasked(void **state)
{
	struct clone_prospect first, asked;
	struct err e = { .text = "" };
	const pid_t pid = start(has_huge_pages);

	(void)state;
	if (!pid)
		skip();
	const int rc = look(pid, false, &first, &e);
	assert_int_equal(look(pid, true, &asked, ERR_IGNORED), 0);
	if (asked.huge_bytes > 64u << 20) { /* the kernel gives them as it likes */
		assert_int_equal(rc, -ENOTSUP);
		assert_non_null(strstr(e.text, "huge pages"));
	} else {
		assert_int_equal(rc, 0);
	}
	clone_prospect_free(&first);
	clone_prospect_free(&asked);
	end(pid);
}

static void test_room_is_asked_for(void **state)
{
	const struct clone_prospect none = { 0 }, all = { .room_bytes = UINT64_MAX - 1 };
	const struct target self = { .pid = getpid(), .tid = getpid() };

	(void)state;
	assert_true(clone_prospect_has_room(&none, &self));
	assert_false(clone_prospect_has_room(&all, &self));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_clone_would_harm_is_refused_by_name),
		cmocka_unit_test(test_memory_that_a_clone_has_not_is_known),
		cmocka_unit_test(test_time_for_mappings_is_foreseen),
		cmocka_unit_test(test_huge_pages_are_not_split_unasked),
		cmocka_unit_test(test_room_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
