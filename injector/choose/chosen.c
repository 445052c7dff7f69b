/* SPDX-License-Identifier: MIT */
#include "choose/chosen.h"

#include <dirent.h>
#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/line_width.h"
#include "base/printable.h"
#include "process/proc_stat.h"
#include "process/proc_status.h"
#include "base/size.h"
#include "files/whole_io.h"
#include "base/order.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define CGROUP_BYTES 16384
#define COMMAND_BYTES 4096 /* of a command line; what is longer is cut */
#define DELETED " (deleted)"

/* The name of the program's file; "" where it may not be seen. */
static void program_of(pid_t pid, char *name, size_t size)
{
	char path[40], program[4096];

	name[0] = '\0';
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	ssize_t n = readlink(path, program, sizeof program - 1);
	if (n <= 0)
		return;
	program[n] = '\0';
	char *deleted = strstr(program, DELETED);
	if (deleted && !deleted[strlen(DELETED)])
		*deleted = '\0';
	const char *slash = strrchr(program, '/');
	const char *base = slash ? slash + 1 : program;
	if (strlen(base) < size)
		strcpy(name, base);
}

/* The words of the command line with blanks between them; "" where there is none, or it may not be seen. */
static void command_of(pid_t pid, char command[COMMAND_BYTES])
{
	char path[40];
	size_t used = 0;

	snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	for (ssize_t n; fd >= 0 && (n = read(fd, command + used, COMMAND_BYTES - 1 - used)) > 0;)
		used += (size_t)n;
	while (used && !command[used - 1])
		used--;
	command[used] = '\0';
	for (char *word = command; (word = memchr(word, '\0', used - (size_t)(word - command)));)
		*word = ' ';
}

/* Is it this process, or one that has started it? */
static bool led_here(pid_t pid)
{
	char status[STATUS_BYTES];

	for (pid_t p = getpid(); p > 1; p = (pid_t)proc_status_number(status, "PPid", 10, 0))
		if (p == pid || proc_status_read(status, p, 0) < 0)
			return p == pid;
	return false;
}

static bool has_command(pid_t pid, const regex_t *wanted)
{
	char command[COMMAND_BYTES];

	command_of(pid, command);
	return command[0] && regexec(wanted, command, 0, NULL, 0) == 0 && !led_here(pid);
}

static bool has_name(pid_t pid, const char *status, const char *name)
{
	const char *comm = proc_status_field(status, "Name");
	char program[256];

	if (comm && strcspn(comm, "\n") == strlen(name) && !strncmp(comm, name, strlen(name)))
		return true;
	program_of(pid, program, sizeof program);
	return program[0] && !strcmp(program, name);
}

/* Is group the cgroup path, or below it? Both begin with "/", and the first has no other at its end. */
static bool is_below(const char *group, const char *path, size_t length)
{
	return !strncmp(group, path, length) && (group[length] == '\0' || group[length] == '/' || length == 1);
}

static size_t without_slashes(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return n;
}

/* Where hierarchies of version 1 are mounted their controllers are the first folder: /sys/fs/cgroup/memory/group. */
static bool is_in_cgroup(const char *controllers, size_t controllers_length, const char *group, const char *what)
{
	bool mounted = !strncmp(what, CGROUP_ROOT "/", strlen(CGROUP_ROOT "/"));
	const char *path = mounted ? what + strlen(CGROUP_ROOT) : what;
	const char *rest = mounted ? strchr(path + 1, '/') : NULL;
	char relative[4096];

	if (path[0] != '/') {
		snprintf(relative, sizeof relative, "/%s", path);
		path = relative;
	}
	if (is_below(group, path, without_slashes(path)))
		return !mounted || controllers_length == 0;
	if (!rest)
		return false;
	size_t first = (size_t)(rest - path - 1);
	bool same = first <= controllers_length && !strncmp(path + 1, controllers + controllers_length - first, first);
	bool unified = controllers_length == 0 && first == strlen("unified") && !strncmp(path + 1, "unified", first);
	return (same || unified) && is_below(group, rest, without_slashes(rest));
}

/* One folder of a path. */
struct folder {
	const char *name;
	size_t length;
};

/* systemd puts a "_" before what the kernel could take for a file of its own. */
static struct folder first_folder(const char *path)
{
	struct folder f = { .name = path + strspn(path, "/") };

	f.name += f.name[0] == '_';
	f.length = strcspn(f.name, "/");
	return f;
}

static bool is_called(const struct folder *f, const char *name)
{
	return f->length == strlen(name) && !strncmp(f->name, name, f->length);
}

static bool is_slice(const struct folder *f)
{
	static const char ending[] = ".slice";

	return f->length > sizeof ending - 1 &&
	       !strncmp(f->name + f->length - (sizeof ending - 1), ending, sizeof ending - 1);
}

/*
 * As systemd tells it: first come slices, which only the system's manager makes; the folder after them is the unit, and
 * what is below is the unit's own affair. The unit of a user's manager holds a tree of the same kind, which that user
 * may make as he likes: it counts for him alone.
 */
static bool is_in_unit(const char *group, const char *unit, uid_t uid)
{
	char name[256], manager[64];
	const char *dot = strrchr(unit, '.');
	bool in_manager = false;

	if ((size_t)snprintf(name, sizeof name, "%s%s", unit, dot && dot[1] ? "" : ".service") >= sizeof name)
		return false;
	snprintf(manager, sizeof manager, "user@%u.service", uid);
	for (struct folder f = first_folder(group); f.length; f = first_folder(f.name + f.length)) {
		if (is_called(&f, name))
			return true;
		if (is_slice(&f))
			continue;
		if (in_manager || !is_called(&f, manager))
			return false;
		in_manager = true;
	}
	return false;
}

/* In the hierarchies that systemd keeps: version 2, or its own one of version 1. */
static bool is_of_systemd(const char *controllers, size_t length)
{
	static const char own[] = "name=systemd";

	return length == 0 || (length == sizeof own - 1 && !strncmp(controllers, own, length));
}

bool chosen_line_matches(const char *line, enum chosen_by by, const char *what, uid_t uid)
{
	/* "number:controllers:path", see cgroups(7). */
	const char *controllers = strchr(line, ':');
	const char *group = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!group || group[1] != '/')
		return false;
	size_t length = (size_t)(group - controllers - 1);
	if (by == CHOSEN_BY_UNIT)
		return is_of_systemd(controllers + 1, length) && is_in_unit(group + 1, what, uid);
	return is_in_cgroup(controllers + 1, length, group + 1, what);
}

static bool has_cgroup(pid_t pid, enum chosen_by by, const char *what)
{
	char path[40], text[CGROUP_BYTES], *rest = text;

	snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
	if (whole_io_text(path, text, sizeof text) < 0)
		return false;
	for (char *line; (line = strsep(&rest, "\n"));)
		if (chosen_line_matches(line, by, what, geteuid()))
			return true;
	return false;
}

void chosen_cgroup(pid_t pid, char *path, size_t size)
{
	char file[40], text[CGROUP_BYTES], *rest = text;

	path[0] = '\0';
	snprintf(file, sizeof file, "/proc/%d/cgroup", pid);
	if (whole_io_text(file, text, sizeof text) < 0)
		return;
	for (char *line; (line = strsep(&rest, "\n"));) {
		const char *controllers = strchr(line, ':');
		const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (group && strlen(group + 1) > strlen(path))
			snprintf(path, size, "%s", group + 1);
	}
}

static void fill_in(struct chosen *c, const char *status)
{
	const char *comm = proc_status_field(status, "Name");

	program_of(c->pid, c->name, sizeof c->name);
	if (!c->name[0] && comm)
		snprintf(c->name, sizeof c->name, "%.*s", (int)strcspn(comm, "\n"), comm);
	c->private_bytes = (uint64_t)proc_status_number(status, "RssAnon", 10, 0) * 1024;
}

int chosen_look(struct chosen *chosen, pid_t pid, struct err *e)
{
	struct chosen c = { .pid = pid };
	char status[STATUS_BYTES];

	int rc = proc_stat_number(pid, 22, &c.start_ticks, e);
	if (rc < 0)
		return rc;
	/* Only what has an address space: no kernel threads, no zombies. */
	rc = proc_status_read(status, pid, 0);
	if (rc < 0)
		return proc_stat_unread(rc, pid, e);
	if (!proc_status_field(status, "VmSize"))
		return err_set(e, ESRCH, "process %d has ended", pid);
	fill_in(&c, status);
	*chosen = c;
	return 0;
}

uint64_t chosen_age_ns(uint64_t start_ticks)
{
	uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec boot;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	uint64_t now_ns = (uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec;
	uint64_t start_ns = start_ticks / hertz * 1000000000u + start_ticks % hertz * 1000000000u / hertz;
	return now_ns > start_ns ? now_ns - start_ns : 0;
}

/* command: NULL, or what is looked for instead of a name. */
static bool matches(pid_t pid, enum chosen_by by, const char *what, const regex_t *command)
{
	char status[STATUS_BYTES];

	if (command)
		return has_command(pid, command);
	if (by != CHOSEN_BY_NAME)
		return has_cgroup(pid, by, what);
	return proc_status_read(status, pid, 0) == 0 && has_name(pid, status, what);
}

bool chosen_fits(pid_t pid, enum chosen_by by, const char *what)
{
	return matches(pid, by, what, NULL);
}

ORDER_BY(by_pid, struct chosen, pid);

static int search(DIR *proc, struct chosen_list *l, enum chosen_by by, const char *what, const regex_t *command,
                  struct err *e)
{
	struct chosen found;

	rewinddir(proc);
	for (struct dirent *entry; (entry = readdir(proc));) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		/* The look comes first: if the number is used again the match is of the later process, which the
		 * start time of the look is not. */
		if (pid <= 0 || pid == getpid() || chosen_look(&found, pid, ERR_IGNORED) < 0 ||
		    !matches(pid, by, what, command))
			continue;
		if (!grow_list(l->list, l->count))
			return err_set(e, ENOMEM, "out of memory");
		l->list[l->count++] = found;
	}
	return 0;
}

/* What is no regular expression is in no command line. */
static int search_commands(DIR *proc, struct chosen_list *l, const char *what, struct err *e)
{
	regex_t command;

	if (regcomp(&command, what, REG_EXTENDED | REG_NOSUB) != 0)
		return 0;
	int rc = search(proc, l, CHOSEN_BY_NAME, what, &command, e);
	regfree(&command);
	return rc;
}

int chosen_find(struct chosen_list *chosen, enum chosen_by by, const char *what, struct err *e)
{
	static const char *const kinds[] = { [CHOSEN_BY_NAME] = "is called, or has in its command line,",
		                             [CHOSEN_BY_CGROUP] = "is in the cgroup",
		                             [CHOSEN_BY_UNIT] = "is in the unit" };
	struct chosen_list l = { 0 };
	DIR *proc = opendir("/proc");

	if (!proc)
		return err_sys(e, "cannot read /proc");
	int rc = search(proc, &l, by, what, NULL, e);
	if (rc == 0 && l.count == 0 && by == CHOSEN_BY_NAME)
		rc = search_commands(proc, &l, what, e);
	closedir(proc);
	if (rc == 0 && l.count == 0)
		rc = err_set(e, ESRCH, "no process %s %s", kinds[by], what);
	if (rc < 0) {
		chosen_free(&l);
		return rc;
	}
	qsort(l.list, l.count, sizeof *l.list, by_pid);
	*chosen = l;
	return 0;
}

void chosen_free(struct chosen_list *chosen)
{
	free(chosen->list);
	*chosen = (struct chosen_list){ 0 };
}

void chosen_print(const struct chosen_list *chosen, size_t most, FILE *out)
{
	char command[COMMAND_BYTES], bytes[SIZE_TEXT];
	size_t width = line_width(fileno(out));

	for (size_t i = 0; i < chosen->count && i < most; i++) {
		const struct chosen *c = &chosen->list[i];
		command_of(c->pid, command);
		printable_copy(command[0] ? command : c->name, command, sizeof command);
		int used = fprintf(out, "%10d  %10s private memory  ", c->pid,
		                   size_format((double)c->private_bytes, bytes));
		size_t room = width > (size_t)used ? width - (size_t)used : 0;
		fprintf(out, "%.*s\n", (int)line_width_fit(command, room), command);
	}
	if (chosen->count > most)
		fprintf(out, "            and %zu more\n", chosen->count - most);
}
