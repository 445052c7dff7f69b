/* SPDX-License-Identifier: MIT */
/* A region of a dump of kind BLOCKS: what the sampled blocks that are live at the end are, and who holds them. Part of
 * dump_format.h. */
#pragma once

#include <stdint.h>

/* Names come before the lists that refer to them; dump_block_look comes last: without it the region is not whole. */
enum dump_block_kind {
	DUMP_BLOCK_TYPE = 1,    /* these are a dump_block_name */
	DUMP_BLOCK_HOLDER = 2,
	DUMP_BLOCK_LIST = 3,    /* this is a dump_block_list */
	DUMP_BLOCK_LOOK = 4,    /* a dump_block_look */
};
enum dump_type_source {
	DUMP_TYPE_NONE = 0,     /* of holders; of types: none was found */
	DUMP_TYPE_VTABLE = 1,   /* a class of C++, by its vtable */
	DUMP_TYPE_PYTHON = 2,   /* a class of CPython */
	DUMP_TYPE_CONTENT = 3,  /* text, zeros, pointers */
	DUMP_TYPE_SOURCES
};
struct dump_block_name {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint16_t kind;          /* DUMP_BLOCK_TYPE or DUMP_BLOCK_HOLDER */
	uint16_t source;        /* enum dump_type_source; a reader takes others for NONE */
	uint32_t id;            /* 1, 2, 3 … of its kind */
	uint32_t reserved_;
	char text[];            /* NUL-terminated UTF-8 */
};
struct dump_block {
	uint64_t address;       /* as in the live record */
	uint32_t type;          /* id; 0: not looked at */
	uint32_t holder;        /* the same; 0: not looked at, or not found */
};
struct dump_block_list {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint16_t kind;          /* DUMP_BLOCK_LIST */
	uint16_t reserved16_;
	uint32_t count;         /* 1 … DUMP_BLOCK_LIST_MAX */
	uint32_t reserved_;
	struct dump_block blocks[];
};
struct dump_block_look {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint16_t kind;          /* DUMP_BLOCK_LOOK */
	uint16_t flags;
	uint64_t looked_at;     /* blocks of the lists whose type was looked at */
	char text[];            /* why it is not known who holds them, or "" */
};
#define DUMP_BLOCK_TYPES_CUT 1u   /* there was no time, or no room, for all of them */
#define DUMP_BLOCK_HOLDERS 2u     /* it is known who holds them */
#define DUMP_BLOCK_LIST_MAX 2048u /* blocks of a record */
#define DUMP_BLOCK_NAME_MAX 160u  /* with its NUL */
#define DUMP_BLOCK_NAMES_MAX (1u << 16) /* of a kind */

_Static_assert(sizeof(struct dump_block_name) == 16, "dump_block_name");
_Static_assert(sizeof(struct dump_block) == 16, "dump_block");
_Static_assert(sizeof(struct dump_block_list) == 16, "dump_block_list");
_Static_assert(sizeof(struct dump_block_look) == 16, "dump_block_look");
