/* SPDX-License-Identifier: MIT */
/*
 * The file that a command names. One that gains rights by execve (set-user-ID, set-group-ID, file capabilities) must
 * not be traced then by a process without CAP_SYS_PTRACE: the kernel would start it without these rights, and so change
 * what it does.
 */
#pragma once

#include <stdbool.h>

/* Would execvp() of the command, or of the interpreter that its first line names, gain rights that a tracer like this
 * process takes away? What cannot be found gains none: execvp() says what is wrong with it. */
bool named_program_loses_rights(const char *command);
