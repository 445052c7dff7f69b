/* SPDX-License-Identifier: MIT */
/* A process to look at, and what the preparation finds there. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "got/got_plan.h"

struct victim {
	pid_t pid;
	int to;   /* its standard input */
	int from; /* its standard output */
};

/* Starts a program, by name in VICTIM_DIR or by path, and waits for its first line. environment may be NULL or
 * "NAME=value". */
void victim_start(struct victim *v, const char *program, const char *argument, const char *environment);
void victim_order(struct victim *v, char order); /* waits for the answer */
void victim_end(struct victim *v);

struct view {
	struct target_memory tm;
	struct maps maps;
	struct modules modules;
	struct libc libc;
	struct got_plan plans;
};

/* Looks at a process; fails the test if it cannot. plan: with got_plan_make. */
void view_open(struct view *view, pid_t pid, bool plan);
void view_close(struct view *view);

const struct elf_module *view_module(const struct view *view, const char *part_of_path);
/* The planned GOT entry of a hook in a module with this kind of relocation (0: any), or NULL. */
const struct entry_plan *view_entry(const struct view *view, const struct elf_module *m, uint32_t hook,
                                    uint32_t relocation);
const struct entry_route *view_route(const struct view *view, uint32_t hook, const struct elf_module *definer);
