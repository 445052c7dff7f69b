/* SPDX-License-Identifier: MIT */
/*
 * What a process inherits from the one that starts it, put into a known state before anything else is done.
 *
 *   - Descriptors 0 to 2 are open: else the target's memory, or that of the dump, gets such a number, and messages are
 *     written into it.
 *   - SIGCHLD has its default action: where it is ignored the kernel keeps no child for wait4.
 *   - No signal is blocked: a blocked SIGALRM would switch off the deadline of every stop.
 *   - As many descriptors may be open as may be without privilege.
 *
 * A program that memattach starts inherits what memattach has inherited: the child that is to execute it puts that
 * back.
 */
#pragma once

void start_state_settle(void);
/* In a child, before it executes another program. */
void start_state_restore(void);
