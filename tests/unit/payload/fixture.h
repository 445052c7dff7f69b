/* SPDX-License-Identifier: MIT */
/*
 * A session without memattach: dump and tables as memfds, filled as memattach would, for the tests of the payload. The
 * test sees both through mappings of its own. Failures are assertions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"
#include "dump_format.h"
#include "unwind_table.h"

#define FIXTURE_DUMP_BYTES (64ull << 20)
#define FIXTURE_TABLES_BYTES (16ull << 20)

struct fixture {
	int dump_fd;
	int tables_fd;
	int payload_fd;
	struct dump_header *dump;
	uint8_t *tables;
	uint64_t dump_end; /* end of the last region */
	uint64_t tables_end;
	uint32_t generation;
	struct control_start start;
};

/* A dump with no regions, tables with no index. payload_path: the file that holds the trampolines' code. */
void fixture_open(struct fixture *f, uint64_t rate_bytes, const char *payload_path);
void fixture_close(struct fixture *f);
/* Publishes a region; returns its offset in the dump. */
uint64_t fixture_region(struct fixture *f, uint32_t kind, uint64_t bytes, uint64_t entries);
/* One region of each kind, large enough for most tests. */
void fixture_regions(struct fixture *f);
/* Publishes an index. The rows of modules must be in the tables (fixture_rows). */
void fixture_index(struct fixture *f, const struct unwind_module *modules, uint32_t module_count,
                   const struct unwind_range *ranges, uint32_t range_count);
/* Appends rows to the tables; returns rows_offset. */
uint64_t fixture_rows(struct fixture *f, const uint32_t *pcs, const uint32_t *rules, uint32_t count);
/* Publishes an index of this process as it is mapped now: no rows, so that stacks are walked by frame pointer. The
 * module with the code of the test has id. */
void fixture_index_self(struct fixture *f, uint32_t id);

/* What the dump says. */
uint64_t fixture_counter(const struct fixture *f, enum dump_counter counter);
bool fixture_live(const struct fixture *f, const void *address, struct dump_live_record *record);
uint64_t fixture_live_count(const struct fixture *f);
/* Copies of all live records, at most `most`, in the order of the table; how many there are. */
uint64_t fixture_all_live(const struct fixture *f, struct dump_live_record *records, uint64_t most);
uint64_t fixture_history_count(const struct fixture *f);
/* The n-th record of the history, oldest block first. */
bool fixture_history(const struct fixture *f, uint64_t n, struct dump_history_record *record);
const struct dump_stack *fixture_stack(const struct fixture *f, uint32_t reference);

/* Makes the session inert, as memattach does before CONTROL_STOP (SESSION_INERT). */
void fixture_inert(struct memattach_session *session);
