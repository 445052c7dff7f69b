/* SPDX-License-Identifier: MIT */
/*
 * What a process may do in its life while memattach is there, one mode each:
 *
 *     exec MS        executes itself anew (as "calm") after MS milliseconds, -1: at a line of stdin
 *     exit MS        exits with status 7, likewise
 *     calm           allocates and checks
 *     vfork          single-threaded, waits in vfork for a child that waits for a line: D state until it comes
 *     vfork_beside   the same, and another thread allocates
 *     vfork_busy     one thread allocates, and so do children of vfork
 *     clone_vm       a child process shares the memory and allocates through the same tables, without being a thread
 *     clone_vm_held  at a line such a child is made, which spends a second inside malloc (of slow_malloc.c, preloaded)
 *                    and ends
 *     overhook       at the line "hook" another tool takes its GOT entry of malloc and passes on to what was there
 *     hook_all FILE  at the line "take" a tool of its own takes all its GOT entries and passes on to what was there,
 *                    and the library FILE is loaded; at "old" they get what they held at the start, at "put" what was
 *                    there before "take" or "old"; at "call" all GOT entries are called
 *     held           every other second is spent inside malloc (of slow_malloc.c, preloaded)
 *     held_beside    likewise, while another thread allocates
 *     notsc          forbids itself the cycle counter
 *     strict         a thread is in seccomp's strict mode and allocates, which needs no system call
 *     dlerror        a dlopen has failed before READY; at the line "tell", dlerror() still says which
 *     relay          the first thread has ended, and each other lives for a millisecond, in which it makes the next
 *     mappings       two threads change the protection of pages all the time: mappings are split and merged
 *     seccomp        a filter kills the process for any system call but the few that it makes itself
 *     undumpable     PR_SET_DUMPABLE 0
 */
#include "victim.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD_BYTES 4242 /* known to slow_malloc.c */

/* One round of allocations that are checked. */
static void allocate(uint64_t *random)
{
	unsigned char *blocks[16];
	size_t bytes[16];

	for (int i = 0; i < 16; i++) {
		bytes[i] = 1 + victim_random(random) % 3000;
		blocks[i] = malloc(bytes[i]);
		if (blocks[i])
			memset(blocks[i], i + 1, bytes[i]);
	}
	for (int i = 0; i < 16; i++) {
		if (blocks[i] && (blocks[i][0] != i + 1 || blocks[i][bytes[i] - 1] != i + 1))
			victim_wrong("a block of %zu bytes changed", bytes[i]);
		free(blocks[i]);
	}
	victim_round();
}

static void *allocator(void *argument)
{
	uint64_t random = 12345 + (uint64_t)(uintptr_t)argument;

	while (!victim_done())
		allocate(&random);
	return NULL;
}

static void *relay(void *argument)
{
	uint64_t random = (uintptr_t)argument + 77;
	pthread_attr_t detached;
	pthread_t next;

	allocate(&random);
	usleep(1000);
	if (victim_done())
		exit(victim_report());
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&next, &detached, relay, (void *)(uintptr_t)random))
		victim_wrong("no thread");
	pthread_attr_destroy(&detached);
	return NULL;
}

static void calm(void)
{
	uint64_t random = 99991;

	while (!victim_done())
		allocate(&random);
}

static void wait_for(const char *when)
{
	char line[32];

	if (atoi(when) >= 0)
		usleep((useconds_t)atoi(when) * 1000);
	else if (!victim_line(line, sizeof line))
		victim_wrong("no line came");
}

/* The end is asked for more than once, and each time interrupts. */
static int status_of(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void run_vfork(void)
{
	char line[32];

	while (!victim_done() && victim_line(line, sizeof line) && strcmp(line, "end") != 0) {
		uint64_t random = 5;
		/* The child waits for the next line; its parent is in D state so long. */
		pid_t child = vfork();
		if (child == 0) {
			char byte = 0;
			while (byte != '\n' && syscall(SYS_read, STDIN_FILENO, &byte, 1) == 1)
				;
			_exit(5);
		}
		const int status = status_of(child);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 5)
			victim_wrong("the vfork child ended with %x", (unsigned)status);
		allocate(&random);
		victim_say("BACK");
	}
}

static void run_vfork_beside(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, allocator, NULL))
		victim_wrong("pthread_create: %s", strerror(errno));
	run_vfork();
	pthread_join(thread, NULL);
}

/* Another thread allocates, and so do children of vfork, for 0.3 s each. */
static void run_vfork_busy(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, allocator, NULL))
		victim_wrong("pthread_create: %s", strerror(errno));
	while (!victim_done()) {
		pid_t child = vfork();
		if (child == 0) {
			uint64_t random = 4;
			for (uint64_t end = victim_monotonic_ns() + 300000000; victim_monotonic_ns() < end;)
				allocate(&random);
			_exit(6);
		}
		int status = 0;
		while (waitpid(child, &status, 0) < 0 && errno == EINTR && victim_done())
			;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 6)
			victim_wrong("the vfork child ended with %x", (unsigned)status);
	}
	pthread_join(thread, NULL);
}

static atomic_bool child_ends;
static atomic_ulong child_rounds;

static int shared_child(void *argument)
{
	uint64_t random = 777;

	(void)argument;
	while (!atomic_load(&child_ends)) {
		allocate(&random);
		atomic_fetch_add(&child_rounds, 1);
	}
	return 3;
}

static void run_clone_vm(void)
{
	static unsigned char stack[256 << 10] __attribute__((aligned(64)));

	/* It allocates on this thread's TLS: so this thread must not allocate meanwhile, and does not. */
	pid_t child = clone(shared_child, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
	while (!victim_done())
		usleep(1000);
	atomic_store(&child_ends, true);
	const int status = status_of(child);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
		victim_wrong("the child that shares the memory ended with %x", (unsigned)status);
	if (!atomic_load(&child_rounds))
		victim_wrong("the child that shares the memory did nothing");
}

static atomic_bool child_wanted, restored_meanwhile;
static void *volatile unpatched; /* what its GOT entry of malloc held at the start; a copy of what it holds later would
                                    be found by the detach */
static void **entry_of_malloc(void);

static int held_child(void *argument)
{
	(void)argument;
	victim_say("HELD");
	void *volatile p = malloc(HELD_BYTES);
	atomic_store(&restored_meanwhile, *(void *volatile *)entry_of_malloc() == unpatched);
	free(p);
	return 4;
}

/*
 * Makes the children, which use its TLS meanwhile: so it waits in a system call in which memattach borrows a thread
 * only if there is no other.
 */
static void *make_held_children(void *argument)
{
	static unsigned char stack[256 << 10] __attribute__((aligned(64)));
	const struct timespec pause = { .tv_nsec = 20000000 };
	sigset_t none;
	pid_t child = 0;
	int status = 0;

	sigemptyset(&none);
	while (!victim_done() || child > 0) {
		if (child <= 0 && atomic_exchange(&child_wanted, false))
			child = clone(held_child, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
		if (child > 0 && waitpid(child, &status, WNOHANG) == child) {
			if (!WIFEXITED(status) || WEXITSTATUS(status) != 4)
				victim_wrong("the child that shares the memory ended with %x", (unsigned)status);
			child = 0;
			victim_round();
			victim_say(atomic_load(&restored_meanwhile) ? "BACK restored" : "BACK");
		}
		sigtimedwait(&none, NULL, &pause);
	}
	return argument;
}

/* Half of the time it looks like the parent of a vfork child; but what it waits for is a process with a memory of its
 * own. */
static void *wait_uninterruptibly(void *argument)
{
	const struct timespec nap = { .tv_nsec = 30000000 };

	while (!victim_done()) {
		pid_t child = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, 0);
		if (child == 0) {
			syscall(SYS_nanosleep, &nap, NULL);
			_exit(0);
		}
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		nanosleep(&nap, NULL);
	}
	return argument;
}

/*
 * No thread is borrowed while such a child is there, unless as many threads wait as the parents of vfork children do.
 * With one that does so now and then the tables are restored while the child is in the payload, and no thread is in
 * the way of unloading it.
 */
static void run_clone_vm_held(void)
{
	pthread_t maker, waiter;
	char line[32];

	unpatched = *entry_of_malloc();
	if (pthread_create(&maker, NULL, make_held_children, NULL) ||
	    pthread_create(&waiter, NULL, wait_uninterruptibly, NULL))
		victim_wrong("pthread_create: %s", strerror(errno));
	while (victim_line(line, sizeof line) && strcmp(line, "end") != 0)
		atomic_store(&child_wanted, true);
	raise(SIGUSR1);
	pthread_join(maker, NULL);
	pthread_join(waiter, NULL);
}

static void *(*before_hook)(size_t);
static atomic_ulong hook_calls;

static void *tool_malloc(size_t bytes)
{
	atomic_fetch_add(&hook_calls, 1);
	return before_hook(bytes);
}

/* The word of this program that JUMP_SLOT or GLOB_DAT fills with the function. */
static void **entry_of(const char *name)
{
	const Elf64_Sym *symbols = NULL;
	const char *strings = NULL;
	const Elf64_Rela *tables[2] = { NULL, NULL };
	size_t bytes[2] = { 0, 0 };

	for (const Elf64_Dyn *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			symbols = (const void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_STRTAB)
			strings = (const void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_JMPREL)
			tables[0] = (const void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_PLTRELSZ)
			bytes[0] = d->d_un.d_val;
		else if (d->d_tag == DT_RELA)
			tables[1] = (const void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_RELASZ)
			bytes[1] = d->d_un.d_val;
	}
	uint64_t bias = _r_debug.r_map->l_addr;
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; tables[t] && i < bytes[t] / sizeof *tables[t]; i++)
			if (!strcmp(strings + symbols[ELF64_R_SYM(tables[t][i].r_info)].st_name, name))
				return (void **)(uintptr_t)(bias + tables[t][i].r_offset);
	return NULL;
}

static void **entry_of_malloc(void)
{
	return entry_of("malloc");
}

static void run_overhook(void)
{
	uint64_t random = 31;
	char line[32];
	void **entry = entry_of_malloc();

	if (!entry || mprotect((void *)((uintptr_t)entry & ~4095ul), 4096, PROT_READ | PROT_WRITE)) {
		victim_wrong("no GOT entry of malloc");
		return;
	}
	while (victim_line(line, sizeof line) && strcmp(line, "end") != 0) {
		if (!strcmp(line, "hook")) {
			memcpy(&before_hook, entry, sizeof before_hook);
			void *(*mine)(size_t) = tool_malloc;
			memcpy(entry, &mine, sizeof mine);
		} else if (!strcmp(line, "unhook")) {
			memcpy(entry, &before_hook, sizeof before_hook);
		}
		unsigned long before = atomic_load(&hook_calls);
		for (int i = 0; i < 2000; i++)
			allocate(&random);
		victim_say("DONE %s %lu", line, atomic_load(&hook_calls) - before);
	}
}

/* A tool that is linked into the program and takes all GOT entries of it. What it passes on to it found there. */
static void *found_there[3];

static void *tool_all_malloc(size_t bytes)
{
	return ((void *(*)(size_t))found_there[0])(bytes);
}

static void *tool_all_valloc(size_t bytes)
{
	return ((void *(*)(size_t))found_there[1])(bytes);
}

static void tool_all_free(void *block)
{
	((void (*)(void *))found_there[2])(block);
}

static void run_hook_all(const char *library)
{
	void **const entries[3] = { entry_of("malloc"), entry_of("valloc"), entry_of("free") };
	void *const mine[3] = { (void *)tool_all_malloc, (void *)tool_all_valloc, (void *)tool_all_free };
	void *first[3];
	uint64_t random = 32;
	char line[32];

	for (int i = 0; i < 3; i++)
		if (!entries[i] || mprotect((void *)((uintptr_t)entries[i] & ~4095ul), 4096, PROT_READ | PROT_WRITE)) {
			victim_wrong("no GOT entry %d", i);
			return;
		}
	for (int i = 0; i < 3; i++)
		memcpy(&first[i], entries[i], sizeof first[i]);
	while (victim_line(line, sizeof line) && strcmp(line, "end") != 0) {
		if (!strcmp(line, "take")) {
			for (int i = 0; i < 3; i++) {
				memcpy(&found_there[i], entries[i], sizeof found_there[i]);
				memcpy(entries[i], &mine[i], sizeof mine[i]);
			}
			if (!dlopen(library, RTLD_NOW))
				victim_wrong("%s", dlerror());
		} else if (!strcmp(line, "old")) {
			for (int i = 0; i < 3; i++) {
				memcpy(&found_there[i], entries[i], sizeof found_there[i]);
				memcpy(entries[i], &first[i], sizeof first[i]);
			}
		} else if (!strcmp(line, "put")) {
			for (int i = 0; i < 3; i++)
				memcpy(entries[i], &found_there[i], sizeof found_there[i]);
			memset(found_there, 0, sizeof found_there);
		} else if (!strcmp(line, "call")) {
			unsigned char *block = valloc(5000);
			if (!block || (uintptr_t)block % 4096)
				victim_wrong("valloc gave %p", (void *)block);
			free(block);
		}
		for (int i = 0; i < 20; i++)
			allocate(&random);
		victim_say("DONE %s", line);
	}
}

static void run_held(void)
{
	uint64_t random = 8;

	while (!victim_done()) {
		victim_say("HELD");
		void *volatile p = malloc(HELD_BYTES);
		free(p);
		for (uint64_t end = victim_monotonic_ns() + 1000000000; victim_monotonic_ns() < end;)
			allocate(&random);
	}
}

static void *change_mappings(void *argument)
{
	enum { PAGES = 64 };
	uint64_t random = 1 + (uint64_t)(uintptr_t)argument;
	char *const base = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	while (base != MAP_FAILED && !victim_done()) {
		uint64_t n = victim_random(&random);
		size_t first = n % PAGES, count = 1 + (n >> 8) % (PAGES - first);
		if (mprotect(base + first * 4096, count * 4096, n >> 32 & 1 ? PROT_READ : PROT_READ | PROT_WRITE))
			victim_wrong("mprotect: %s", strerror(errno));
		victim_round();
	}
	return NULL;
}

#define NO_LIBRARY "/nowhere/no-such-library.so"

static void run_dlerror(void)
{
	char line[32];

	while (victim_line(line, sizeof line) && strcmp(line, "tell") == 0) {
		const char *first = dlerror();
		if (!first || !strstr(first, NO_LIBRARY))
			victim_wrong("dlerror() says %s", first ? first : "nothing");
		const char *second = dlerror();
		if (second)
			victim_wrong("dlerror() says %s once more", second);
		victim_round();
		dlopen(NO_LIBRARY, RTLD_NOW);
		victim_say("TOLD");
	}
}

static atomic_bool is_strict;

/* It may only read, write and exit: the block that it allocates over and over is there before. */
static void *allocate_strictly(void *argument)
{
	void *volatile block = malloc(100);

	free(block);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		victim_wrong("strict mode: %s", strerror(errno));
	atomic_store(&is_strict, true);
	while (!victim_done()) {
		block = malloc(100);
		free(block);
		victim_round();
	}
	syscall(SYS_exit, 0);
	return argument;
}

static int forbid_system_calls(void)
{
#define ALLOW(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (n), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_write),
		ALLOW(SYS_brk),
		ALLOW(SYS_rt_sigreturn),
		ALLOW(SYS_clock_nanosleep),
		ALLOW(SYS_nanosleep),
		ALLOW(SYS_restart_syscall),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "calm", *when = argc > 2 ? argv[2] : "-1";
	uint64_t random = 3;
	pthread_t thread;

	victim_start("lives");
	if (!strcmp(mode, "notsc") && prctl(PR_SET_TSC, PR_TSC_SIGSEGV)) {
		victim_say("CANNOT %s", strerror(errno));
		victim_ready();
		return 77;
	}
	if (!strcmp(mode, "seccomp") && forbid_system_calls()) {
		victim_say("CANNOT %s", strerror(errno));
		victim_ready();
		return 77;
	}
	if (!strcmp(mode, "strict")) {
		if (pthread_create(&thread, NULL, allocate_strictly, NULL))
			return 2;
		while (!atomic_load(&is_strict))
			usleep(1000);
	}
	if (!strcmp(mode, "dlerror"))
		dlopen(NO_LIBRARY, RTLD_NOW);
	if (!strcmp(mode, "undumpable"))
		prctl(PR_SET_DUMPABLE, 0);
	if (!strcmp(mode, "exec") || !strcmp(mode, "exit") || !strcmp(mode, "held_beside"))
		pthread_create(&thread, NULL, allocator, NULL);
	victim_ready();
	if (!strcmp(mode, "exec")) {
		wait_for(when);
		execl("/proc/self/exe", "lives", "calm", NULL);
		victim_wrong("execl: %s", strerror(errno));
	} else if (!strcmp(mode, "exit")) {
		wait_for(when);
		exit(7);
	} else if (!strcmp(mode, "vfork")) {
		run_vfork();
	} else if (!strcmp(mode, "vfork_beside")) {
		run_vfork_beside();
	} else if (!strcmp(mode, "vfork_busy")) {
		run_vfork_busy();
	} else if (!strcmp(mode, "clone_vm")) {
		run_clone_vm();
	} else if (!strcmp(mode, "clone_vm_held")) {
		run_clone_vm_held();
	} else if (!strcmp(mode, "dlerror")) {
		run_dlerror();
	} else if (!strcmp(mode, "overhook")) {
		run_overhook();
	} else if (!strcmp(mode, "hook_all")) {
		run_hook_all(when);
	} else if (!strcmp(mode, "relay")) {
		relay(NULL);
		pthread_exit(NULL);
	} else if (!strcmp(mode, "mappings")) {
		pthread_create(&thread, NULL, change_mappings, &random);
		change_mappings(NULL);
		pthread_join(thread, NULL);
	} else if (!strncmp(mode, "held", 4)) {
		run_held();
	} else {
		calm();
	}
	return victim_report();
}
