/* SPDX-License-Identifier: MIT */
/*
 * Why the kernel does not let memattach trace a process: it only says EPERM. The rules are those of ptrace(2), "Ptrace
 * access mode checking", looked at in the same order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What the rules ask of one process. */
struct permission_party {
	long uid[3], gid[3]; /* real, effective, saved: from /proc/PID/status */
	uint64_t permitted;  /* capabilities */
	uint64_t effective;
	bool filtered;     /* by seccomp */
	char uid_map[256]; /* the text of /proc/PID/uid_map: differs between user namespaces, unless they are made alike
	                    */
	char profile[128]; /* of a security module (/proc/PID/attr/current), "" none */
};

struct permission {
	struct permission_party self, target;
	bool owned_by_root; /* the files in /proc/PID: so are those of a process that is not dumpable */
	int yama;           /* kernel.yama.ptrace_scope, -1 absent */
};

/* Fills in from the text of /proc/PID/status; what is not there stays. */
void permission_parse_status(struct permission_party *party, const char *status);

/* Reads all of it for a target. */
void permission_read(struct permission *p, pid_t target);

/* One sentence without a full stop: the rule, and what would help. */
void permission_explain(const struct permission *p, char *text, size_t size);

/*
 * Why memattach could not suspend the seccomp filter of a thread (PTRACE_O_SUSPEND_SECCOMP), and what would help, as
 * half a sentence; NULL: it could. The kernel wants CAP_SYS_ADMIN in the first user namespace, and a tracer that has no
 * filter itself.
 */
const char *permission_to_suspend_filter(const struct permission_party *self);
