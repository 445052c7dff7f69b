/* SPDX-License-Identifier: MIT */
/*
 * Where CPython's structures have their members, for each minor version whose release builds are known. The table is
 * made from CPython's headers by scripts/python-releases; nothing in it is written by hand.
 *
 * The offsets are those of release builds for Linux on x86-64; on other machines those that have mutexes in front are
 * greater. Between the patch levels of a minor version they have been
 * the same in all headers that were compared, but CPython does not promise that, and other builds differ. So they are
 * used only after a proof (python_proof.h); 3.13 and later also describe themselves, and must agree (python_version.h).
 */
#pragma once

#include "dump_format.h"
#include "python_layout.h"

#define PYTHON_SELF_WORDS 34u

/* Members of the structures, by offset, that only a reader from outside needs. */
struct python_release {
	uint32_t minor;      /* 11: 3.11 */
	const char *headers; /* of the releases that it was made from */
	struct python_frame_layout frames;
	/* _PyRuntime */
	uint32_t runtime_interpreters; /* interpreters.head */
	uint32_t runtime_main;         /* interpreters.main */
	uint32_t runtime_finalizing;   /* _finalizing: an address, not 0 from the beginning of Py_FinalizeEx on */
	uint32_t runtime_key;          /* gilstate.autoTSSkey, autoTSSkey */
	uint32_t runtime_current;      /* gilstate.tstate_current; absent: 3.12 and later */
	/* interpreter state */
	uint32_t interpreter_id;
	uint32_t interpreter_next;
	uint32_t interpreter_threads;
	uint32_t interpreter_sys; /* sysdict: the dict of the module sys */
	/* thread state */
	uint32_t state_previous;
	uint32_t state_next;
	uint32_t state_interpreter;
	uint32_t state_native; /* native_thread_id; absent: 3.9, 3.10 */
	/* code object */
	uint32_t code_bytes; /* of the structure without the code */
	uint32_t code_filename;
	uint32_t code_name;
	uint32_t code_qualname;   /* absent: 3.9, 3.10 */
	uint32_t code_first_line; /* int32 */
	uint32_t code_lines;      /* co_lnotab, co_linetable: a bytes object */
	enum dump_lines lines;
	/* string */
	uint32_t string_length; /* 8 bytes, code points */
	uint32_t string_state;  /* 4 bytes of flags */
	uint32_t string_kind;   /* mask of the bits that hold the bytes of a character */
	uint32_t string_compact;
	uint32_t string_ascii;
	uint32_t string_ascii_data; /* where the characters are, compact and ascii */
	uint32_t string_wide_data;  /* … compact and not ascii */
	/* dict */
	uint32_t dict_keys;
	uint32_t dict_values; /* an address, 0: the values are in the entries */
	/* its keys: the index, and behind it the entries */
	uint32_t keys_slots;       /* 8 bytes, slots of the index; absent: 3.11 and later */
	uint32_t keys_index_log2;  /* 1 byte, of the bytes of the index; absent: 3.9, 3.10 */
	uint32_t keys_kind;        /* 1 byte; absent: 3.9, 3.10, which have the first kind of entries alone */
	uint32_t keys_entry_count; /* 8 bytes, entries in use */
	uint32_t keys_index;
	struct python_dict_entry {
		uint32_t kind;
		uint32_t bytes; /* of an entry; 0: there is none of this kind */
		uint32_t key, value;
	} dict_entries[2];
	/* list */
	uint32_t list_count; /* 8 bytes */
	uint32_t list_items; /* the address of so many objects */
	/* type */
	uint32_t type_name; /* tp_name: address of a C string */
	/* Words of 8 bytes of _Py_DebugOffsets, which is at the start of _PyRuntime in 3.13 and later, and what they
	   must hold. The first with value 0 and offset 0 ends the list. */
	struct python_self_word {
		uint32_t at;
		uint32_t value;
	} self[PYTHON_SELF_WORDS];
};

/* What of it the payload needs to copy a code object. */
static inline struct python_code_layout python_release_code(const struct python_release *r)
{
	return (struct python_code_layout){
		.file = r->code_filename,
		.name = r->code_qualname != PYTHON_ABSENT ? r->code_qualname : r->code_name,
		.first_line = r->code_first_line,
		.lines = r->code_lines,
		.string_length = r->string_length,
		.string_state = r->string_state,
		.string_kind = r->string_kind,
		.string_compact = r->string_compact,
		.string_ascii = r->string_ascii,
		.ascii_data = r->string_ascii_data,
		.wide_data = r->string_wide_data,
		.lines_format = r->lines,
	};
}

/* NULL: a version that is not known. */
const struct python_release *python_release_find(uint32_t minor);
/* All of them, by minor version. */
const struct python_release *python_release_list(uint32_t *count);
