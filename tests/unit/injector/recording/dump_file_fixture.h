/* SPDX-License-Identifier: MIT */
/* A recording in memory and its file on disk, in a directory of their own. */
#pragma once

#include "recording/dump_file.h"
#include "dump/dump_reader.h"
#include "recording/dump_writer.h"

#define RATE 65536u
#define MAX_BYTES (16u << 20)

extern struct dump_writer writer;
extern struct dump_file file;
extern char directory[64], path[128]; /* of the file */

int open_all(void **state);
int close_all(void **state);
#define WITH_FILE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

/* A copy as at the end of a session, */
int write_now(struct err *e);
/* … given up after 600 asks; context: unsigned *, 0. */
bool patient(void *context, double done);
/* In the directory, with hidden ones. */
unsigned count_files(void);
/* A dump that is whole, with so many samples taken. */
void assert_dump(const char *name, uint64_t taken);
/* As the payload records a live block. */
void put_live(uint64_t address);
/* Adds to *arg, a uint64_t. */
int sum_addresses(void *arg, const struct dump_live_record *record);
