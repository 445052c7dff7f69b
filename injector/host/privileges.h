/* SPDX-License-Identifier: MIT */
/* Giving up what is not needed any more. */
#pragma once

/*
 * For memattach once it is attached: capabilities down to those that follow and detach need, and none can be gained by
 * execve. They stay where memattach has no CAP_SYS_PTRACE: then it may trace the target because it has all capabilities
 * that the target has (ptrace(2)).
 *
 * No seccomp filter: the kernel lets only a process without one suspend the filter of a thread
 * (PTRACE_O_SUSPEND_SECCOMP). No Landlock: a process in a domain traces none outside of it.
 */
void privileges_keep_for_detach(void);
