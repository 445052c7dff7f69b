/* SPDX-License-Identifier: MIT */
/*
 * A loader of our own: maps the payload's image into the target without the help of any loader there.
 *
 * The payload needs no library, no symbol and no thread-local storage: what a loader does for it is to map it, to add
 * the load bias to a few words, and to clear its .bss. image_layout() finds out what that is, and refuses an image that
 * needs more. The linker gives each segment of the payload the same place in the file and in memory (check_payload asks
 * for that), so one mapping of the file from its start has everything where it belongs. image_map() then is:
 *
 *   1. mmap            room for all of the image, readable, from the descriptor; the kernel chooses the address
 *   2. (from outside)  the relocated words, and zeros from the end of the data to the end of its page. The pages become
 *                      private copies by that, as they do when a loader writes to them
 *   3. one list        mprotect of the code and of the data, anonymous memory for .bss: all or none
 *
 * A death of memattach after 1 or 2 leaves a mapping that is found by its name, with a session block in it that says
 * LOADED; nothing has run there. What is read-only after relocation (RELRO) has never been writable.
 *
 * Addresses are chosen by the kernel in the first step only: the calls of the list replace memory that is ours.
 */
#pragma once

#include <stddef.h>

#include "touch/remote/remote.h"

#define IMAGE_PIECES_MAX 4u
#define IMAGE_WORDS_MAX 16u

/* Whole pages that get another protection than PROT_READ. */
struct image_piece {
	uint64_t start, end;
	uint32_t prot;
};

/* A word that holds bias + value. */
struct image_word {
	uint64_t offset;
	uint64_t value;
};

/* Offsets from the start of the image, which is that of its file as well. */
struct image_layout {
	uint64_t bytes; /* whole pages */
	struct image_piece pieces[IMAGE_PIECES_MAX];
	unsigned piece_count;
	struct image_word words[IMAGE_WORDS_MAX];
	unsigned word_count;
	uint64_t zero_start, zero_end; /* the rest of the last page of the file that holds data */
	uint64_t bss_start, bss_end;   /* whole pages of zeros */
	uint64_t code_end;             /* of the executable segment, which is the first; exact */
};

/* Pure. -ENOEXEC, with the reason: it takes a loader to load this. */
int image_layout(struct image_layout *l, const unsigned char *image, size_t image_bytes, struct err *e) WARN_UNUSED;

/*
 * At a checkpoint: maps the image whose file is descriptor remote_fd of the target. -ETIMEDOUT, -ESRCH: as of
 * remote_call; *base may be there, and is found by name. After any other failure nothing is mapped.
 */
int image_map(struct remote *r, const struct image_layout *l, int remote_fd, uint64_t *base, uint64_t deadline_ns,
              struct err *e) WARN_UNUSED;

/* The call that unmaps it, for a list. */
struct stub_call image_map_undo_call(uint64_t base, uint64_t bytes);
