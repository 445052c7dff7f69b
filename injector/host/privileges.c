/* SPDX-License-Identifier: MIT */
#include "host/privileges.h"

#include <linux/capability.h>
#include <sys/prctl.h>

#include "files/owner.h"
#include "sandbox/rights.h"

#define BIT(capability) (1ull << (capability))

void privileges_keep_for_detach(void)
{
	/*
	 * Tracing; suspending seccomp filters; /proc/PID/map_files (one of two, as the kernel has them); going first
	 * while a thread is stopped; /proc/PID of other users, and the dump in their directories; becoming another
	 * user, in a child that reads what the target has written; ending such a child.
	 */
	uint64_t needed = BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_ADMIN) | BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_SYS_NICE) |
	                  BIT(CAP_DAC_OVERRIDE) | BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_KILL);
	uint64_t permitted = rights_capabilities();
	uid_t uid;
	gid_t gid;

	/* And to give copies of the dump to another user, and to replace his in a directory like /tmp. */
	if (owner_is_other(&uid, &gid))
		needed |= BIT(CAP_CHOWN) | BIT(CAP_FOWNER);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (permitted & BIT(CAP_SYS_PTRACE))
		rights_set_capabilities(permitted & needed);
}
