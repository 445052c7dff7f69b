/* SPDX-License-Identifier: MIT */
/*
 * Builds dumps in memory as include/dump_format.h says, for the tests of what reads them. Offsets and references
 * are real; a test may then damage the bytes as it likes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dump_format.h"

struct dump_builder {
	unsigned char *bytes;
	size_t size;
	uint64_t live_used; /* next entry of the live table */
	uint64_t index_used;
	uint64_t stack_used; /* bytes used in the arena of stacks */
};

/*
 * An empty dump of a detached session with live_entries and stack_entries (powers of two >= 8): one region of each
 * kind, history_blocks blocks of history. Aborts when out of memory.
 */
void dump_builder_init(struct dump_builder *b, uint64_t rate, uint64_t live_entries, uint64_t stack_entries,
                       uint64_t history_blocks);
void dump_builder_done(struct dump_builder *b);

struct dump_header *dump_builder_header(struct dump_builder *b);
/* Another region, of zeros. */
void dump_builder_add(struct dump_builder *b, uint32_t kind, uint64_t bytes, uint64_t entries);
/* The region of a kind; serial 0. */
struct dump_region *dump_builder_region(struct dump_builder *b, uint32_t kind);
void *dump_builder_at(struct dump_builder *b, uint64_t offset);

/* Interns a stack of n frames and returns its reference. */
uint32_t dump_builder_stack(struct dump_builder *b, const uint64_t *frames, uint32_t n, uint32_t flags);
/* The same with m Python frames, whose flags are DUMP_STACK_PYTHON_TRUNCATED and DUMP_STACK_PYTHON_DEEP. */
uint32_t dump_builder_python_stack(struct dump_builder *b, const uint64_t *frames, uint32_t n, const uint64_t *python,
                                   uint32_t m, uint32_t flags);
/* A code object whose texts are Latin-1. Its lines: from the first one on, units instructions are on each. */
uint32_t dump_builder_code(struct dump_builder *b, const char *name, const char *file, int32_t first_line,
                           uint32_t lines, uint32_t units);
/* Counts a sample of size into the stack's sums; returns its address in the live table if live, else the sample counts
 * as freed and goes to the history if there is room in its first block. */
void dump_builder_sample(struct dump_builder *b, uint32_t stack, uint64_t size, uint32_t rate, int live);
/* Record k of the live table. */
struct dump_live_record *dump_builder_live(struct dump_builder *b, uint64_t k);
void dump_builder_module(struct dump_builder *b, uint32_t id, uint64_t bias, uint64_t start, uint64_t end,
                         const char *path, const void *build_id, uint32_t build_id_bytes, uint32_t flags);
void dump_builder_thread(struct dump_builder *b, uint32_t tid, const char *name);
void dump_builder_rate(struct dump_builder *b, const struct dump_rate_change *change);
void dump_builder_note(struct dump_builder *b, uint32_t kind, const char *text);
/* An entry of sys.path; the first one makes the region. */
void dump_builder_path(struct dump_builder *b, const char *text);
/* A method of Java, and a frame with the methods and lines of its calls; the first one makes the region. */
void dump_builder_java_method(struct dump_builder *b, uint32_t id, uint32_t flags, const char *name, const char *file);
struct dump_java_calls *dump_builder_java_calls(struct dump_builder *b, uint64_t frame,
                                                const struct dump_java_call *calls, uint16_t count);
/* A row of what its memory is, and the end of a look; the first one makes the region. */
void dump_builder_memory(struct dump_builder *b, uint16_t moment, uint16_t kind, uint64_t resident, const char *name);
void dump_builder_look(struct dump_builder *b, uint16_t moment, uint64_t rss, uint64_t flags, const char *text);
/* What was resident at a moment; the first one makes the region. */
struct dump_usage *dump_builder_usage(struct dump_builder *b, uint64_t stamp, uint32_t flags, uint64_t rss);
/* A type or holder, a block that has them (ids), and the end of that; the first one makes the region. */
void dump_builder_block_name(struct dump_builder *b, uint16_t kind, uint16_t source, uint32_t id, const char *text);
void dump_builder_block(struct dump_builder *b, uint64_t address, uint32_t type, uint32_t holder);
void dump_builder_block_look(struct dump_builder *b, uint16_t flags, const char *text);
/* A region with these bytes as its names. */
void dump_builder_symbols(struct dump_builder *b, const void *bytes, size_t count);

/* A descriptor of an unlinked file with the bytes, cut to size. */
int dump_builder_fd(const struct dump_builder *b, size_t size);
/* Writes the bytes to a new file, with holes where memattach leaves some: where nothing was recorded; 0 or -1. */
int dump_builder_write(const struct dump_builder *b, const char *path);

#define DUMP_FRAME(module, address) ((uint64_t)(module) << 48 | (address))

/* Small dumps with something of everything, for tests that damage them; the second one is of a CPython, with its
 * evaluator at DUMP_BUILDER_EVALUATOR in module 1, the third one of a JVM. */
void dump_builder_sampler(struct dump_builder *b);
void dump_builder_snake(struct dump_builder *b);
void dump_builder_hotspot(struct dump_builder *b);
/* The same with addresses of 48 bits (DUMP_FEATURE_JAVA_63). */
void dump_builder_hotspot_63(struct dump_builder *b);
#define DUMP_BUILDER_EVALUATOR 0x500000u
#define DUMP_BUILDER_EVALUATOR_BYTES 0x10000u
