/* SPDX-License-Identifier: MIT */
/*
 * Answers questions about images from their files: what lives in the jail (jail.h). A question is a message that begins
 * with its number, and so is each answer (wire.h); symbols.c asks, and says what the members are.
 */
#pragma once

/*
 * OPEN      image, flags, deleted, file, lines, build-id, path, root, debug path, fetched path; again to
 *           replace what was opened
 *           -> found, source, reason
 * LINES     image -> whether it has debug information
 * RANGES    image -> known, count, then start and end of each
 * ALLOCATOR place -> whether it is inside one of the allocator's functions
 * PLACES    count, then the places
 *           -> one message for each: failed, count, then function, file, line of each, innermost first
 * SEGMENT   place -> whether the file has an executable segment there, its address, size and offset in the file
 */
enum symbol_question { SYMBOL_OPEN, SYMBOL_LINES, SYMBOL_RANGES, SYMBOL_ALLOCATOR, SYMBOL_PLACES, SYMBOL_SEGMENT };

#define SYMBOL_PLACES_MAX 128u /* in one question */

/* Answers until the other end of the descriptor is closed. doing: the image that is being asked about, for who finds
 * that this process is gone. */
void symbol_reader_run(int fd, _Atomic unsigned *doing);
