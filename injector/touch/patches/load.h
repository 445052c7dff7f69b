/* SPDX-License-Identifier: MIT */
/*
 * How the payload comes into the target, and out of it again.
 *
 *   the target                                  in by                                          out by
 *   glibc, one thread, and nothing that a       dlopen of /proc/thread-self/fd/N               dlclose
 *   dlopen could disturb (loader_choice.h)
 *   … where that name leads nowhere             dlopen of a descriptor (handed_open.h)         dlclose
 *   … with --loader target, beside threads      the same, while they stand still               dlclose, likewise
 *                                               (loader_moment.h)
 *   glibc, all others, and with --loader own;   image_map(): we map it (image_map.h)           munmap
 *   musl, whose dlclose never unmaps; static
 *   programs, which have no dlopen
 *
 * Why dlopen, where it can be had: glibc then knows the module, and unwinders find its .eh_frame, so an exception may
 * pass a hook of an allocation function (operator new throws).
 *
 * In the loader's list the payload has no name, and no segment that can be written: debuggers and libraries open names,
 * collectors read segments.
 *
 * What is mapped by us is in no list of a loader, and no lock of the target is taken for it: a thread may be borrowed
 * wherever it is, in malloc, in the loader, with a stack that nobody can walk, but for a restartable sequence and
 * memattach's own code. memattach finds it by its mapping's name, and has it on its list of modules (modules.h),
 * without a link map: so threads that are in it are seen, and their stacks walked. Exceptions could not pass it: a
 * function that throws has a quiet one, which is called instead (control.h), or is not hooked, and named (got_plan.h).
 * That concerns C++ allocators with an operator new of their own.
 *
 * session.dl_handle tells which it is: 0 it was mapped by us, or its memattach died before CONTROL_START; then the link
 * map on the list of modules does.
 */
#pragma once

#include "touch/patches/loan.h"

/*
 * With the payload's file as descriptor remote_fd of the target. Afterwards s->payload says where it is, and has been
 * checked; *handle is what dlopen returned, or 0. -EDEADLK: it is no moment for dlopen (loader_moment.h).
 */
int load_payload(struct loan *l, int remote_fd, uint64_t *handle, struct err *e) WARN_UNUSED;
/* At a checkpoint, when no thread is inside or can come: the same backwards. */
int load_undo(struct loan *l, uint64_t handle, struct err *e) WARN_UNUSED;
/* Makes a list of calls with that one in it. -EDEADLK: it is no moment for it (loader_moment.h). */
int load_undo_by(struct loan *l, struct stub_call *calls, unsigned count, struct err *e) WARN_UNUSED;
/* The call that unloads s->payload, for a list. -EPROTO: other memory than ours is mapped where it should be. */
int load_undo_call(const struct session *s, uint64_t handle, struct stub_call *call, struct err *e) WARN_UNUSED;
