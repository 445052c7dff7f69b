/* SPDX-License-Identifier: MIT */
/*
 * To unmap a dump takes the thread that does it about 35 ns for each page that was touched: 170 ms for 5 GB, in one system call. Before that,
 * piece by piece and each time with a thread borrowed anew, the target is made to forget the pages. They stay in the file.
 */
#ifndef MEMATTACH_DUMP_PAGES_H
#define MEMATTACH_DUMP_PAGES_H

#include "borrow.h"
#include "control.h"
#include "maps.h"

/*
 * Nobody may write to the dump any more. All but the last piece; nothing at all if what is mapped at block->dump_address is not the dump. The mapping
 * stays, so that it can be done again if memattach dies meanwhile. -EINPROGRESS: a thread was left in the stub and may still be about to make
 * the call; -ESRCH: the target has ended. After any other failure no call is under way: all that was missed is a short hold.
 */
int dump_pages_forget(const struct memattach_session *block, const struct maps *maps, const struct borrower *b, struct err *e) WARN_UNUSED;

#endif
