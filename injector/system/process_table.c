/* SPDX-License-Identifier: MIT */
#include "system/process_table.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "process/proc_stat.h"
#include "process/proc_status.h"

#define AHEAD_S 60.0            /* a process counts with what it will have grown by then */
#define RETRY_NS 60000000000ull /* the first time; then twice as long, and so on */
#define ANCESTORS_MAX 64u
#define FIRST_PID_NAMESPACE "pid:[4026531836]" /* PROC_PID_INIT_INO of the kernel */
#define WAITING_WHY "its turn had not come"
#define INIT_WHY "process 1 is left out: what harms it ends the machine; memattach 1 profiles it"

/* ---- which are ours ---- */

static bool runs_this_program(pid_t pid)
{
	static struct stat own;
	struct stat other;
	char path[40];

	if (!own.st_ino && stat("/proc/self/exe", &own) < 0)
		return false;
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	return stat(path, &other) == 0 && other.st_dev == own.st_dev && other.st_ino == own.st_ino;
}

/* What sessions start for themselves: readers of symbols, writers of reports. */
static bool descends_from_us(pid_t pid)
{
	char status[STATUS_BYTES];
	pid_t self = getpid();

	for (unsigned i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (pid == self)
			return true;
		if (proc_status_read(status, pid, 0) < 0)
			return false;
		pid = (pid_t)proc_status_number(status, "PPid", 10, 0);
	}
	return false;
}

/* Elsewhere process 1 is a program like others, often the only one of a container. */
static bool is_first_namespace(void)
{
	char name[64] = "";

	return readlink("/proc/self/ns/pid", name, sizeof name - 1) > 0 && strcmp(name, FIRST_PID_NAMESPACE) == 0;
}

static enum process_state judge(const struct process_table *t, struct seen_process *p)
{
	pid_t pid = p->is.pid;

	if ((t->what && !chosen_fits(pid, t->by, t->what)) || runs_this_program(pid) || descends_from_us(pid))
		return PROCESS_LEFT_OUT;
	if (pid != 1 || !is_first_namespace())
		return PROCESS_WAITING;
	snprintf(p->why, sizeof p->why, "%s", INIT_WHY);
	p->next_try_ns = UINT64_MAX;
	return PROCESS_REFUSED;
}

/* ---- a look ---- */

static int compare(const struct seen_process *p, pid_t pid, uint64_t start_ticks)
{
	if (p->is.pid != pid)
		return p->is.pid < pid ? -1 : 1;
	return p->is.start_ticks < start_ticks ? -1 : p->is.start_ticks > start_ticks;
}

/* Where it is, or would be. */
static size_t place_of(const struct process_table *t, pid_t pid, uint64_t start_ticks)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare(&t->list[middle], pid, start_ticks) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void note_growth(struct seen_process *p, uint64_t now_ns)
{
	char status[STATUS_BYTES];

	if (proc_status_read(status, p->is.pid, 0) < 0)
		return;
	uint64_t bytes = (uint64_t)proc_status_number(status, "RssAnon", 10, 0) * 1024;
	if (p->looked_ns && now_ns > p->looked_ns)
		p->growth = ((double)bytes - (double)p->is.private_bytes) / ((double)(now_ns - p->looked_ns) / 1e9);
	p->is.private_bytes = bytes;
	p->looked_ns = now_ns;
}

static void add(struct process_table *t, size_t at, const struct seen_process *p)
{
	if (!grow_list(t->list, t->count))
		return; /* the next look finds it again */
	memmove(&t->list[at + 1], &t->list[at], (t->count - at) * sizeof *t->list);
	t->list[at] = *p;
	t->count++;
}

static void take_up(struct process_table *t, size_t at, pid_t pid, uint64_t start_ticks, uint64_t now_ns)
{
	struct seen_process p = { .present = true };

	if (chosen_age_ns(start_ticks) < PROCESS_AGE_NS) {
		t->young = true;
		return;
	}
	if (chosen_look(&p.is, pid, ERR_IGNORED) < 0)
		p.is = (struct chosen){ .pid = pid, .start_ticks = start_ticks }; /* a kernel thread, a zombie */
	else if (p.is.start_ticks == start_ticks)
		p.state = judge(t, &p);
	else
		return;
	if (p.state == PROCESS_WAITING)
		note_growth(&p, now_ns);
	add(t, at, &p);
}

static void look_at(struct process_table *t, pid_t pid, uint64_t now_ns)
{
	uint64_t start_ticks;

	if (proc_stat_number(pid, 22, &start_ticks, ERR_IGNORED) < 0)
		return;
	size_t at = place_of(t, pid, start_ticks);
	if (at == t->count || compare(&t->list[at], pid, start_ticks) != 0) {
		take_up(t, at, pid, start_ticks, now_ns);
		return;
	}
	struct seen_process *p = &t->list[at];
	p->present = true;
	/* It may have been moved to a group, or execute another program. */
	if (p->state == PROCESS_LEFT_OUT && t->what && chosen_look(&p->is, pid, ERR_IGNORED) == 0)
		p->state = judge(t, p);
	if (p->state == PROCESS_REFUSED && now_ns >= p->next_try_ns)
		p->state = PROCESS_WAITING;
	if (p->state == PROCESS_WAITING)
		note_growth(p, now_ns);
}

static void note_ended(struct process_table *t, const struct seen_process *p)
{
	if (p->state == PROCESS_WAITING)
		unseen_add(&t->ended, p->is.name, p->is.pid, "it ended before its turn");
	else if (p->state == PROCESS_REFUSED)
		unseen_add(&t->ended, p->is.name, p->is.pid, p->why);
}

static void drop_ended(struct process_table *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->count; i++) {
		if (t->list[i].present || t->list[i].session) {
			t->list[kept++] = t->list[i];
			continue;
		}
		note_ended(t, &t->list[i]);
	}
	/* grow_list goes by the count: the room that is left over for it was made for more. */
	t->count = kept;
}

void process_table_look(struct process_table *t, uint64_t now_ns)
{
	DIR *proc = opendir("/proc");

	if (!proc)
		return;
	t->young = false;
	for (size_t i = 0; i < t->count; i++)
		t->list[i].present = false;
	for (struct dirent *entry; (entry = readdir(proc));) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		if (pid > 0 && pid != getpid())
			look_at(t, pid, now_ns);
	}
	closedir(proc);
	drop_ended(t);
}

void process_table_execed(const struct process_table *t, struct seen_process *p)
{
	struct chosen now;

	if (chosen_look(&now, p->is.pid, ERR_IGNORED) < 0 || now.start_ticks != p->is.start_ticks)
		return;
	p->is = now;
	p->state = ++p->programs < PROCESS_PROGRAMS ? judge(t, p) : PROCESS_DONE;
}

/* ---- what follows from it ---- */

static double weight(const struct seen_process *p)
{
	return (double)p->is.private_bytes + (p->growth > 0 ? AHEAD_S * p->growth : 0);
}

struct seen_process *process_table_next(struct process_table *t, uint64_t now_ns)
{
	struct seen_process *best = NULL;

	for (size_t i = 0; i < t->count; i++) {
		struct seen_process *p = &t->list[i];
		const bool ready = p->state == PROCESS_WAITING && !p->session && now_ns >= p->next_try_ns;
		if (ready && !p->forks.over && (!best || weight(p) > weight(best)))
			best = p;
	}
	return best;
}

size_t process_table_count(const struct process_table *t, enum process_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < t->count; i++)
		n += t->list[i].state == state;
	return n;
}

void process_table_refuse(struct seen_process *p, const char *why, uint64_t now_ns)
{
	snprintf(p->why, sizeof p->why, "%s", why);
	p->state = PROCESS_REFUSED;
	p->next_try_ns = ++p->tries < PROCESS_TRIES ? now_ns + (RETRY_NS << (p->tries - 1)) : UINT64_MAX;
}

bool process_table_had_a_turn(const struct process_table *t, uint64_t age_ns)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct seen_process *p = &t->list[i];
		bool awaited = p->state == PROCESS_WAITING || (p->share && !p->attached);
		if (awaited && chosen_age_ns(p->is.start_ticks) >= age_ns)
			return false;
	}
	return true;
}

struct seen_process *process_table_find(struct process_table *t, pid_t pid)
{
	size_t next = place_of(t, pid, UINT64_MAX);

	return next > 0 && t->list[next - 1].is.pid == pid ? &t->list[next - 1] : NULL;
}

void process_table_hold(struct process_table *t, const char *why)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->list[i].state == PROCESS_WAITING)
			snprintf(t->list[i].why, sizeof t->list[i].why, "%s", why);
}

void process_table_unseen(const struct process_table *t, struct unseen *u)
{
	unseen_merge(u, &t->ended);
	for (size_t i = 0; i < t->count; i++) {
		const struct seen_process *p = &t->list[i];
		if (p->state == PROCESS_WAITING)
			unseen_add(u, p->is.name, p->is.pid, p->why[0] ? p->why : WAITING_WHY);
		else if (p->state == PROCESS_REFUSED)
			unseen_add(u, p->is.name, p->is.pid, p->why);
	}
	unseen_sort(u);
}

void process_table_free(struct process_table *t)
{
	unseen_free(&t->ended);
	free(t->list);
	*t = (struct process_table){ 0 };
}
