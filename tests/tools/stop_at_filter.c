/* SPDX-License-Identifier: MIT */
/* Loaded before the C library: a process stops when it has set its first filter for system calls. */
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...)
{
	static bool stopped;
	unsigned long a[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(ap, unsigned long);
	va_end(ap);
	int result = (int)syscall(SYS_prctl, option, a[0], a[1], a[2], a[3]);
	if (option == PR_SET_SECCOMP && !stopped) {
		stopped = true;
		raise(SIGSTOP);
	}
	return result;
}
