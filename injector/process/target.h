/* SPDX-License-Identifier: MIT */
/*
 * The process that is attached to: who it is, whether it may be touched, which threads it has. A pidfd and the start
 * time guard against a pid that is given to another process. Nothing here changes the target.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "process/thread.h"

#define TARGET_LOCKS 2

struct target {
	pid_t pid;
	pid_t tid;                 /* a live thread: the main one unless it has exited */
	int pidfd;                 /* -1 closed */
	int lock_fd[TARGET_LOCKS]; /* of session_lock.h, -1 none */
	int announced_fd;          /* the same */
	uint64_t start_ticks;      /* field 22 of /proc/PID/stat */
	char comm[32];
	char program[256]; /* what /proc/PID/exe points to, "" unknown */
	uint64_t file[2];  /* device and inode of the program; zero if not known */
	uint64_t image[2]; /* where its code and its stack begin (stat): execve chooses anew */
};

/*
 * Looks at the process and refuses, with the cause and what would help, what cannot be attached to: -ESRCH no such
 * process, or a zombie; -EINVAL memattach itself, a kernel thread; -EBUSY frozen; -EPERM not permitted.
 */
int target_open(struct target *t, pid_t pid, struct err *e) WARN_UNUSED;
/*
 * The same process once more, after a while in which it may have executed another program; -ESRCH also where its number
 * belongs to another process by now. Nothing of it may be held yet (session_lock.h). On failure t is as before.
 */
int target_reopen(struct target *t, struct err *e) WARN_UNUSED;
#define TRACER_NAME 32
/* Who traces this thread, tid 0: the process, and the comm of that; 0: nobody. -ESRCH: there is no such thread; -errno.
 */
pid_t target_tracer(pid_t pid, pid_t tid, char name[TRACER_NAME]);
/* -EBUSY: it is traced by somebody, who is named. */
int target_check_tracer(const struct target *t, struct err *e) WARN_UNUSED;
void target_close(struct target *t);
/* What its pidfd tells: the process is gone, or a zombie. */
bool target_has_ended(const struct target *t);
/* The same process, alive (not a zombie), as far as can be seen: where it cannot be looked at its pidfd tells. */
bool target_alive(const struct target *t);
/* Still the program that it was: false after execve. */
bool target_same_program(const struct target *t);
/* Both: there is nothing of ours in it any more, and nothing to compare it with. False if it was never opened. */
bool target_has_execed(const struct target *t);
/* Explains a ptrace EPERM: which rule, what would help. Appends to e. */
void target_explain_permission(const struct target *t, struct err *e);

/* Its memory in bytes, as /proc/PID/status has it: cheap, also for huge targets. */
struct memory_use {
	uint64_t resident;  /* VmRSS: what ps and top call RSS */
	uint64_t anonymous; /* RssAnon: the part of it that no file stands behind */
	uint64_t swapped;   /* VmSwap */
	uint64_t shared;    /* RssShmem: tmpfs, memfd, shared anonymous mappings */
	uint64_t files;     /* RssFile */
};
/* -ESRCH: it has ended. */
int target_memory_use(const struct target *t, struct memory_use *use, struct err *e) WARN_UNUSED;
/*
 * Resident bytes as /proc/PID/smaps_rollup counts them, page by page: exact, where VmRSS lacks what threads or
 * processors have not handed in yet. The kernel goes through all page tables, also those of memory that is swapped or
 * sparse, and the target can map nothing meanwhile: not where they have more than 4 MiB. 0 unknown.
 */
uint64_t target_resident_exact(const struct target *t);
/* Anonymous memory that is resident, and private memory that is swapped out, in bytes; 0 unknown. */
void target_private_memory(const struct target *t, uint64_t *resident, uint64_t *swapped);
/* Anonymous memory that is resident or swapped out (RssAnon and VmSwap of /proc/PID/status: cheap, also for huge
 * targets); 0 unknown. */
uint64_t target_private_bytes(const struct target *t);

/* CPU time of all its threads since it began, those that have ended included; 0 if it has ended. */
uint64_t target_cpu_ns(const struct target *t);

/*
 * The numbers of all threads, those that have ended but are not gone among them; *list is malloc'ed. Left out are those
 * that the kernel keeps in the process for its own work (io_uring, vhost): they have no code of the program to run, and
 * would never go on from registers that a tracer has set.
 */
int target_tids(const struct target *t, pid_t **list, size_t *count, struct err *e) WARN_UNUSED;
/* All threads, with a look at each; *list is malloc'ed. */
int target_threads(const struct target *t, struct thread_info **list, size_t *count, struct err *e) WARN_UNUSED;
/*
 * Some of them: at most max, from number first on, beginning again after the last one. *total: how many there are. A
 * look takes some 30 µs of CPU time, and where a thousand threads run memattach gets a thousandth of it.
 */
int target_some_threads(const struct target *t, size_t first, size_t max, struct thread_info **list, size_t *count,
                        size_t *total, struct err *e) WARN_UNUSED;
