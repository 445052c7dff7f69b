/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void read_line(struct victim *v)
{
	char c = 0;

	while (c != '\n')
		assert_int_equal(read(v->from, &c, 1), 1);
}

void victim_start(struct victim *v, const char *program, const char *argument, const char *environment)
{
	char path[1024], copy[1024] = "";
	int in[2], out[2];

	snprintf(path, sizeof path, "%s%s%s", program[0] == '/' ? "" : VICTIM_DIR, program[0] == '/' ? "" : "/",
	         program);
	if (environment)
		snprintf(copy, sizeof copy, "%s", environment);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	v->pid = fork();
	assert_true(v->pid >= 0);
	if (v->pid == 0) {
		char *arguments[] = { path, (char *)(uintptr_t)argument, NULL };
		char *variables[] = { copy[0] ? copy : NULL, NULL };
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execve(path, arguments, variables);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	v->to = in[1];
	v->from = out[0];
	read_line(v);
}

void victim_order(struct victim *v, char order)
{
	assert_int_equal(write(v->to, &order, 1), 1);
	read_line(v);
}

/* It must end by itself and well: looking at it has not disturbed it. */
void victim_end(struct victim *v)
{
	int status;

	close(v->to);
	assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
	close(v->from);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void must(int r, const struct err *e)
{
	if (r)
		fail_msg("%s", e->text);
}

void view_open(struct view *view, pid_t pid, bool plan)
{
	const struct got_plan_options options = { .groups = GROUP_BIT(GROUP_MALLOC) | GROUP_BIT(GROUP_JEMALLOC) };
	uint32_t next_id = 1;
	char path[64];
	struct err e;

	memset(view, 0, sizeof *view);
	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	must(target_memory_open(&view->tm, pid, &e), &e);
	must(maps_read(&view->maps, path, &e), &e);
	must(modules_read(&view->modules, &view->tm, &view->maps, &e), &e);
	modules_number(&view->modules, NULL, &next_id);
	must(libc_find(&view->libc, &view->modules, &view->tm, &e), &e);
	if (plan)
		must(got_plan_make(&view->plans, &view->modules, &view->libc, &view->tm, &view->maps, &options, &e),
		     &e);
}

void view_close(struct view *view)
{
	got_plan_free(&view->plans);
	modules_free(&view->modules);
	maps_free(&view->maps);
	target_memory_close(&view->tm);
}

const struct elf_module *view_module(const struct view *view, const char *part_of_path)
{
	for (size_t i = 0; i < view->modules.count; i++)
		if (strstr(view->modules.list[i].path, part_of_path))
			return &view->modules.list[i];
	fail_msg("no module %s", part_of_path);
	return NULL;
}

const struct entry_plan *view_entry(const struct view *view, const struct elf_module *m, uint32_t hook,
                                    uint32_t relocation)
{
	for (size_t i = 0; i < view->plans.entry_count; i++) {
		const struct entry_plan *s = &view->plans.entries[i];
		if (&view->modules.list[s->module] == m && s->hook == hook &&
		    (!relocation || s->relocation == relocation))
			return s;
	}
	return NULL;
}

const struct entry_route *view_route(const struct view *view, uint32_t hook, const struct elf_module *definer)
{
	for (size_t i = 0; i < view->plans.route_count; i++) {
		const struct entry_route *r = &view->plans.routes[i];
		if (r->hook == hook && r->definer < view->modules.count && &view->modules.list[r->definer] == definer)
			return r;
	}
	return NULL;
}
