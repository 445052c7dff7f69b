/* SPDX-License-Identifier: MIT */
/*
 * The pages of code that jumps are written to are a mapping of their own while they hold them.
 *
 * A page of a file's code that is written to becomes a private copy, and from then on the kernel copies its whole
 * mapping page by page at each fork(2), for as long as it is mapped: that of glibc, 1.3 MiB, makes a fork of a small
 * process dearer by a fifth, also when the jumps are long gone. So before the jumps are written a hint sets the pages
 * apart (madvise(MADV_RANDOM), about reading ahead: neighbours of different hints are different mappings), and a detach
 * has the stub make, in one list:
 *
 *   mremap(MREMAP_DONTUNMAP)   the private copies go elsewhere; their place is as freshly mapped, so the file's pages
 *                              are there when they are used. One step for all threads: who runs there waits for the
 *                              kernel
 *   munmap                     of the copies
 *   madvise(MADV_NORMAL)       the mapping is one again
 *
 * That is a matter of cost, so wherever something is not as it should be less is done, and the copies stay, which hold
 * what the file does:
 *
 *   - processes of several threads: one might map something there, or write, between the look at the pages and the list
 *     (who forks much has one thread). The copies stay; before 6.16 kernels would not join mappings with them, so there
 *     the pages are not set apart
 *   - pages that were private before, are of another file or of none by then (code that the program has moved into huge
 *     pages), or hold something else than then (a uprobe's breakpoint)
 *   - a mapping that holds the stub, which would have to run there
 *   - modules that may go away meanwhile: all but the C library, the allocator in force and the program
 *   - locked memory, which mremap would unlock
 *   - a thread with a seccomp filter, which would be in force if memattach died
 *   - kernels before 5.13
 *   - sessions whose memattach has died, where the pages do not hold what the file does
 *
 * The file's pages may have to be read again when they are used, as those of any code.
 */
#pragma once

#include "touch/patches/loan.h"

/* At a checkpoint, when the jumps are listed (code_patches_list) and not written yet. -ETIMEDOUT, -ESRCH: as of
 * remote_call; all else is passed over. */
int code_pages_set_apart(struct loan *l, struct err *e) WARN_UNUSED;
/* Of a session whose memattach, which knew what the pages held, has died: what the file has there, when the jumps are
 * taken back. Nothing may be stopped: the file may be on a disk that is slow. */
void code_pages_look(struct session *s);
/* At a checkpoint, when the jumps are taken back and the payload, which lists them, is still there. The same errors. */
int code_pages_join(struct loan *l, struct err *e) WARN_UNUSED;
