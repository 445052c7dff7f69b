/* SPDX-License-Identifier: MIT */
/*
 * The census by clone: all threads stand still while a clone of the process is made (memory_clone.h), and the clone is
 * read in place of the process, at leisure.
 *
 *   1. clone_prospect.h says whether it may be cloned, and what a clone will not have.
 *   2. One thread is borrowed, at a point where it holds no lock of malloc; then all others are stopped. Their
 *      registers are read, the words that the kernel has, and memory that a clone does not hold still. No arena of
 *      malloc may be locked.
 *   3. The borrowed thread makes the clone. All go on.
 *   4. This memattach seizes the clone while it sleeps. reach_settle reads it, as it would read the process, and it is
 *      ended. While it is read it is given up where the process ends, or has too little memory left for its copies.
 *   5. A thread of the process is borrowed once more, and waits for it.
 *
 * Who dies when: before 3 nothing is there. Then the clone ends by itself after some seconds, or with memattach when it
 * is seized; clone_guardian.h does 5.
 */
#pragma once

#include "run/stop_words.h"
#include "session/session.h"

/*
 * As census_stop. -ENOTSUP: it is not to be cloned, or cannot be; the reason is in e. *left: a zombie is left that
 * could not be collected.
 */
int census_clone(struct census *c, struct stop_words *words, const struct session_options *o, uint64_t longest_ns,
                 bool *left, struct err *e) WARN_UNUSED;
