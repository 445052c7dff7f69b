/* SPDX-License-Identifier: MIT */
/*
 * Functions in whose frame a stack begins, although there is more memory of a stack outside of it.
 *
 * greenlet (below gevent, eventlet and SQLAlchemy's asyncio) gives its coroutines no stacks of their own: all use that
 * of the thread, and what one has there is copied away while another runs in its place. A coroutine begins wherever
 * the stack has ended then, in a function that calls what the coroutine is to do (inner_bootstrap). Further out are the
 * frames of those that began before, some of them copied away long ago and written over: what a walk finds there has
 * not called the coroutine. So that frame is the outermost one.
 *
 * The function is known by its name, which greenlet exports from version 2 on.
 */
#pragma once

#include "unwind/unwind_compile.h"

/* Where such a function of the module is, relative to the start of its code; both 0: it has none. */
void stack_base_find(const struct elf_module *m, uint32_t *start, uint32_t *end);
/* Ends the stacks in the module that rows are of. -ENOMEM. */
int stack_base_mark(struct unwind_rows *rows, const struct elf_module *m, struct err *e) WARN_UNUSED;
/* The pure part: frames from start up to end are outermost ones. -ENOMEM: nothing has changed. */
int stack_base_mark_rows(struct unwind_rows *rows, uint32_t start, uint32_t end) WARN_UNUSED;
