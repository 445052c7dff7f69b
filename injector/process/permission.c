/* SPDX-License-Identifier: MIT */
#include "process/permission.h"

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process/proc_status.h"
#include "files/whole_io.h"

#define AS_ROOT "run memattach as root"

static void parse_ids(long ids[3], const char *at)
{
	char *end;

	for (unsigned i = 0; at && i < 3; i++, at = end)
		ids[i] = strtol(at, &end, 10);
}

void permission_parse_status(struct permission_party *party, const char *status)
{
	const char *at;

	parse_ids(party->uid, proc_status_field(status, "Uid"));
	parse_ids(party->gid, proc_status_field(status, "Gid"));
	if ((at = proc_status_field(status, "CapPrm")))
		party->permitted = strtoull(at, NULL, 16);
	if ((at = proc_status_field(status, "CapEff")))
		party->effective = strtoull(at, NULL, 16);
	if ((at = proc_status_field(status, "Seccomp")))
		party->filtered = strtol(at, NULL, 10) > 0;
}

static void read_party(struct permission_party *party, const char *who)
{
	char path[64], status[STATUS_BYTES];

	snprintf(path, sizeof path, "/proc/%s/status", who);
	if (whole_io_text(path, status, sizeof status) == 0)
		permission_parse_status(party, status);
	snprintf(path, sizeof path, "/proc/%s/uid_map", who);
	if (whole_io_text(path, party->uid_map, sizeof party->uid_map) < 0)
		party->uid_map[0] = '\0';
	snprintf(path, sizeof path, "/proc/%s/attr/current", who);
	if (whole_io_text(path, party->profile, sizeof party->profile) < 0)
		party->profile[0] = '\0';
	party->profile[strcspn(party->profile, "\n")] = '\0';
}

void permission_read(struct permission *p, pid_t target)
{
	char who[16], path[40], scope[16];
	struct stat st;

	*p = (struct permission){ .yama = -1 };
	snprintf(who, sizeof who, "%d", target);
	read_party(&p->self, "self");
	read_party(&p->target, who);
	/* Of the directory itself the kernel always shows the process's user. */
	snprintf(path, sizeof path, "/proc/%d/maps", target);
	p->owned_by_root = stat(path, &st) == 0 && st.st_uid == 0;
	if (whole_io_text("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope) == 0)
		p->yama = atoi(scope);
}

static bool all_equal(const long ids[3], long id)
{
	return ids[0] == id && ids[1] == id && ids[2] == id;
}

static bool in_first_user_namespace(const struct permission_party *party)
{
	unsigned long inside, outside, count;

	if (!party->uid_map[0])
		return true; /* a kernel without such namespaces */
	return sscanf(party->uid_map, "%lu %lu %lu", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
	       count == UINT32_MAX;
}

static const char *explain_yama(int scope)
{
	switch (scope) {
	case 1: return "kernel.yama.ptrace_scope is 1: only children may be traced; " AS_ROOT;
	case 2: return "kernel.yama.ptrace_scope is 2: only CAP_SYS_PTRACE may trace; " AS_ROOT;
	default: return "kernel.yama.ptrace_scope is 3: nobody may trace until the next boot";
	}
}

void permission_explain(const struct permission *p, char *text, size_t size)
{
	const struct permission_party *self = &p->self, *target = &p->target;
	const bool same_namespace = strcmp(self->uid_map, target->uid_map) == 0;
	const bool capable = self->effective >> CAP_SYS_PTRACE & 1;
	const long owner = p->owned_by_root ? 0 : target->uid[1];
	const char *help = self->uid[1] == 0 ? "give memattach CAP_SYS_PTRACE (docker run --cap-add=SYS_PTRACE)"
	                                     : AS_ROOT;

	/* Capabilities count in one's own user namespace and in those made from it. */
	if (!same_namespace && !in_first_user_namespace(self))
		snprintf(text, size,
		         "it is in another user namespace than memattach; run memattach in that one, or as root "
		         "outside of both");
	else if (capable && p->yama == 3)
		snprintf(text, size, "%s", explain_yama(p->yama));
	else if (capable && !(self->effective >> CAP_DAC_OVERRIDE & 1) && self->uid[1] != owner)
		snprintf(text, size,
		         "its files in /proc belong to another user (%ld), and memattach has no CAP_DAC_OVERRIDE; run "
		         "memattach as that user, or give it that capability, too",
		         owner);
	else if (capable)
		snprintf(text, size, "a security module forbids it%s%s%s; see its log",
		         target->profile[0] ? " (profile " : "", target->profile, target->profile[0] ? ")" : "");
	else if (!all_equal(target->uid, self->uid[0]))
		snprintf(text, size,
		         "it belongs to another user (%ld), and memattach has no CAP_SYS_PTRACE; run memattach as that "
		         "user, or %s",
		         target->uid[0], help);
	else if (!all_equal(target->gid, self->gid[0]))
		snprintf(text, size,
		         "its group ids are not those of memattach (%ld, not %ld), which has no CAP_SYS_PTRACE; %s",
		         target->gid[1], self->gid[0], help);
	else if (p->owned_by_root && target->uid[0] != 0)
		snprintf(text, size, "it is not dumpable (set-id program or PR_SET_DUMPABLE); %s", help);
	else if (!same_namespace)
		snprintf(text, size, "it is in a user namespace of its own, and memattach has no CAP_SYS_PTRACE; %s",
		         help);
	else if (target->permitted & ~self->permitted)
		snprintf(text, size, "it has capabilities that memattach has not (%llx); %s",
		         (unsigned long long)(target->permitted & ~self->permitted), help);
	else if (p->yama > 0)
		snprintf(text, size, "%s", explain_yama(p->yama));
	else if (self->filtered)
		snprintf(text, size,
		         "memattach itself runs under a seccomp filter, which may forbid ptrace; run it outside of the "
		         "container");
	else
		snprintf(text, size, "it is not dumpable, or a security module forbids it%s%s%s; %s",
		         target->profile[0] ? " (profile " : "", target->profile, target->profile[0] ? ")" : "", help);
}

const char *permission_to_suspend_filter(const struct permission_party *self)
{
	if (!in_first_user_namespace(self))
		return "memattach is in a user namespace, in which nobody may suspend the filter of one thread; run it "
		       "as root outside, on the node";
	if (!(self->effective >> CAP_SYS_ADMIN & 1))
		return "memattach needs CAP_SYS_ADMIN to suspend the filter of one thread";
	if (self->filtered)
		return "memattach has one itself, with which it may not suspend that of one thread; run it without "
		       "(--security-opt seccomp=unconfined), or on the node";
	return NULL;
}
