/* SPDX-License-Identifier: MIT */
#include "launch/named_program.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/proc_status.h"
#include "files/regular_file.h"

#define LINE_BYTES 256     /* of a script's first line, as the kernel reads it */
#define INTERPRETERS_MAX 5 /* one may be a script itself */

static bool may_trace_all(void)
{
	char status[STATUS_BYTES];

	return proc_status_read(status, getpid(), 0) == 0 &&
	       (uint64_t)proc_status_number(status, "CapEff", 16, 0) >> CAP_SYS_PTRACE & 1;
}

static bool is_executable(const char *path)
{
	struct stat st;

	return access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* As execvp() looks for it. */
static bool find(const char *command, char path[PATH_MAX])
{
	const char *list = getenv("PATH");
	AUTO_FREE char *copy = strdup(list ? list : "/bin:/usr/bin");
	char *rest = copy;

	if (strchr(command, '/'))
		return (size_t)snprintf(path, PATH_MAX, "%s", command) < PATH_MAX && is_executable(path);
	for (char *folder; rest && (folder = strsep(&rest, ":"));)
		if ((size_t)snprintf(path, PATH_MAX, "%s/%s", folder[0] ? folder : ".", command) < PATH_MAX &&
		    is_executable(path))
			return true;
	return false;
}

static bool gains_rights(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	       ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getegid()) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

/* "#! interpreter argument": *path becomes the interpreter. False: it is no script. */
static bool take_interpreter(char path[PATH_MAX])
{
	AUTO_CLOSE int fd = regular_file_open_at(AT_FDCWD, path, 0);
	char line[LINE_BYTES + 1];
	ssize_t n = fd < 0 ? -1 : read(fd, line, LINE_BYTES);

	if (n < 2 || memcmp(line, "#!", 2) != 0)
		return false;
	line[n] = '\0';
	char *name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t\n")] = '\0';
	snprintf(path, PATH_MAX, "%s", name);
	return name[0] != '\0';
}

bool named_program_loses_rights(const char *command)
{
	char path[PATH_MAX];

	if (may_trace_all() || !find(command, path))
		return false;
	for (int i = 0; i < INTERPRETERS_MAX; i++) {
		/* The kernel heeds these bits of the program that it executes in the end, not those of a script. */
		if (!take_interpreter(path))
			return gains_rights(path);
	}
	return false;
}
