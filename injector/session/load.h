/* SPDX-License-Identifier: MIT */
/*
 * How the payload comes into the target, and out of it again.
 *
 *   the target                                  in by                                          out by
 *   glibc                                       dlopen of /proc/thread-self/fd/N               dlclose
 *   glibc, where that name leads nowhere        dlopen of a descriptor (handed_open.h)         dlclose
 *   musl, whose dlclose never unmaps; static    image_map(): we map it (image_map.h)           munmap
 *   programs, which have no dlopen; glibc,
 *   where no thread comes to a safe point for
 *   dlopen in time, or with --loader own
 *
 * Why dlopen, where it can be had: glibc then knows the module. It resolves its IFUNC under its lock, so GOT entries
 * are patched and restored while no other thread loads or unloads (include/control.h); and unwinders find its
 * .eh_frame, so an exception may pass a hook of an allocation function (operator new throws).
 *
 * What is mapped by us is in no list of a loader. That takes care of itself where it is done: musl has no such lock and
 * unloads nothing, a static program has no loader. memattach finds it by its mapping's name, and has it on its list of
 * modules (modules.h), without a link map: so threads that are in it are seen, and their stacks walked. Exceptions
 * could not pass it, so GOT entries of functions that throw are left alone there, and named (got_plan.h). A function
 * that is hooked at its entry has a quiet one, which is called instead (control.h), or is not hooked either.
 *
 * In a glibc program (libc.set_aside) it is the second choice. No lock of the target is taken then: a thread may be
 * borrowed wherever it is, in malloc, in the loader, with a stack that nobody can walk, but for a restartable sequence
 * and memattach's own code. What needs the loader's lock is not done: GOT entries are left alone, and all allocators
 * that are called are hooked at their entries, in code that is never unmapped while they are called. That an exception
 * cannot pass concerns C++ allocators with an operator new of their own, as above.
 *
 * session.dl_handle tells which it is: 0 it was mapped by us, or its memattach died before CONTROL_START; then the link
 * map on the list of modules does.
 */
#ifndef MEMATTACH_LOAD_H
#define MEMATTACH_LOAD_H

#include "loan.h"

/*
 * With the payload's file as descriptor remote_fd of the target. Afterwards s->payload says where it is, and has been
 * checked; *handle is what dlopen returned, or 0.
 */
int session_load(struct loan *l, int remote_fd, uint64_t *handle, struct err *e) WARN_UNUSED;
/* At a checkpoint, when no thread is inside or can come: the same backwards. */
int session_unload(struct loan *l, uint64_t handle, struct err *e) WARN_UNUSED;
/* The call that unloads s->payload, for a list. -EPROTO: other memory than ours is mapped where it should be. */
int session_unload_call(const struct session *s, uint64_t handle, struct stub_call *call, struct err *e) WARN_UNUSED;

#endif
