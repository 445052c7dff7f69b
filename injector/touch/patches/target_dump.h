/* SPDX-License-Identifier: MIT */
/* The dump where the target has mapped it: all that a memattach has which did not begin the session. */
#pragma once

#include "touch/remote/borrow.h"
#include "control.h"
#include "recording/dump_file.h"
#include "maps/maps.h"
#include "touch/remote/target_write.h"

struct target_dump {
	const struct memattach_session *block;
	const struct maps *maps;
	const struct target_memory *memory;
};

/*
 * Ends the recording of a session whose memattach died, as dump_writer_end_lease() does: else it would go on until the
 * lease runs out. The lease ends now, on both clocks, so a reader still knows until when the session recorded. Nothing
 * is written if what is mapped at d->block->dump_address is not the dump of that session, or if its lease has ended.
 */
int target_dump_end_lease(const struct target_dump *d, const struct target_writer *writer, struct err *e) WARN_UNUSED;

/* The dump is that of another process: this one was forked from it, and shares its memory. Nothing of it may be written
 * to then. */
bool target_dump_is_of_another(const struct target_dump *d, uint64_t start_ticks);

/*
 * Copies the recording of a session whose memattach died to the disk, when nothing is recorded any more. Nothing of it
 * is believed but what can be checked; -EPROTO: it makes no sense, -EFBIG: more than max_bytes. Else as
 * dump_file_write.
 */
int target_dump_save(const struct target_dump *d, uint64_t max_bytes, struct dump_file *file,
                     const struct patience *patience, struct err *e) WARN_UNUSED;

/*
 * To unmap a dump takes the thread that does it about 35 ns for each page that was touched: 170 ms for 5 GB, in one
 * system call. Before that, piece by piece and each time with a thread borrowed anew, the target is made to forget the
 * pages. They stay in the file.
 *
 * Nobody may write to the dump any more. All but the last piece; nothing at all if what is mapped at
 * d->block->dump_address is not the dump. The mapping stays, so that it can be done again if memattach dies meanwhile.
 * -EINPROGRESS: a thread was left in the stub and may still be about to make the call; -ESRCH: the target has ended.
 * After any other failure no call is under way: all that was missed is a short stop.
 */
int target_dump_forget(const struct target_dump *d, const struct borrower *b, struct err *e) WARN_UNUSED;
