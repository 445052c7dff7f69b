/* SPDX-License-Identifier: MIT */
/*
 * Made from CPython's own headers by scripts/python-releases, which compiles and runs scripts/python_releases.c with:
 *
 *   3.9   headers of 3.9.2, 3.9.18
 *   3.10  headers of 3.10.13
 *   3.11  headers of 3.11.2, 3.11.7
 *   3.12  headers of 3.12.1, 3.12.6
 *   3.13  headers of 3.13.0, 3.13.5, 3.13.15
 *   3.14  headers of 3.14.8, 3.14.10
 *
 * Not to be edited by hand.
 */
#include "python/python_releases.h"

#include <stddef.h>

#include "arch/thread_block.h"

#define MORE (MUTEX_BYTES - 40) /* of a mutex, than x86-64 has */

/* clang-format off */
static const struct python_release releases[] = {
	{
		.minor = 9, .headers = "3.9.2, 3.9.18",
		.frames = {
			.state_thread = 176, .object_type = 8, .bytes_size = 16, .bytes_data = 32, .state_frame = 24,
			.cframe_frame = PYTHON_ABSENT, .frame_previous = 24, .frame_code = 32, .frame_instruction = 104,
			.code_units = PYTHON_ABSENT, .code_start = 48, .first_traceable = PYTHON_ABSENT,
			.instruction = PYTHON_LAST_BYTES, .frame_owner = PYTHON_ABSENT, .frame_entry = PYTHON_ABSENT,
			.owner_without_code = UINT8_MAX,
		},
		.runtime_interpreters = 32, .runtime_main = 40, .runtime_finalizing = 16, .runtime_key = 584 + 2 * MORE,
		.runtime_current = 568 + 2 * MORE, .interpreter_id = 24, .interpreter_next = 0,
		.interpreter_threads = 8, .interpreter_sys = 872, .state_previous = 0, .state_next = 8,
		.state_interpreter = 16, .state_native = PYTHON_ABSENT, .code_filename = 104, .code_name = 112,
		.code_first_line = 40, .code_bytes = 176, .code_qualname = PYTHON_ABSENT, .code_lines = 120,
		.lines = DUMP_LINES_LNOTAB, .string_length = 16, .string_state = 32, .string_kind = 0x1c,
		.string_compact = 0x20, .string_ascii = 0x40, .string_ascii_data = 48, .string_wide_data = 72,
		.dict_keys = 32, .dict_values = 40, .keys_slots = 8, .keys_index_log2 = PYTHON_ABSENT,
		.keys_kind = PYTHON_ABSENT, .keys_entry_count = 32, .keys_index = 40,
		.dict_entries = {
			{ .kind = 0, .bytes = 24, .key = 8, .value = 16 },
		},
		.list_count = 16, .list_items = 24, .type_name = 24,
	},
	{
		.minor = 10, .headers = "3.10.13",
		.frames = {
			.state_thread = 176, .object_type = 8, .bytes_size = 16, .bytes_data = 32, .state_frame = 24,
			.cframe_frame = PYTHON_ABSENT, .frame_previous = 24, .frame_code = 32, .frame_instruction = 96,
			.code_units = PYTHON_ABSENT, .code_start = 48, .first_traceable = PYTHON_ABSENT,
			.instruction = PYTHON_LAST_UNITS, .frame_owner = PYTHON_ABSENT, .frame_entry = PYTHON_ABSENT,
			.owner_without_code = UINT8_MAX,
		},
		.runtime_interpreters = 32, .runtime_main = 40, .runtime_finalizing = 16, .runtime_key = 584 + 2 * MORE,
		.runtime_current = 568 + 2 * MORE, .interpreter_id = 24, .interpreter_next = 0,
		.interpreter_threads = 8, .interpreter_sys = 872, .state_previous = 0, .state_next = 8,
		.state_interpreter = 16, .state_native = PYTHON_ABSENT, .code_filename = 104, .code_name = 112,
		.code_first_line = 40, .code_bytes = 176, .code_qualname = PYTHON_ABSENT, .code_lines = 120,
		.lines = DUMP_LINES_LINETABLE, .string_length = 16, .string_state = 32, .string_kind = 0x1c,
		.string_compact = 0x20, .string_ascii = 0x40, .string_ascii_data = 48, .string_wide_data = 72,
		.dict_keys = 32, .dict_values = 40, .keys_slots = 8, .keys_index_log2 = PYTHON_ABSENT,
		.keys_kind = PYTHON_ABSENT, .keys_entry_count = 32, .keys_index = 40,
		.dict_entries = {
			{ .kind = 0, .bytes = 24, .key = 8, .value = 16 },
		},
		.list_count = 16, .list_items = 24, .type_name = 24,
	},
	{
		.minor = 11, .headers = "3.11.2, 3.11.7",
		.frames = {
			.state_thread = 152, .object_type = 8, .bytes_size = 16, .bytes_data = 32, .frame_previous = 48,
			.code_units = 16, .code_start = 184, .first_traceable = 168, .state_frame = 56,
			.cframe_frame = 8, .frame_code = 32, .frame_instruction = 56, .instruction = PYTHON_BEFORE_NEXT,
			.frame_owner = 69, .owner_generator = 1, .frame_entry = 68, .owner_without_code = UINT8_MAX,
		},
		.runtime_interpreters = 40, .runtime_main = 48, .runtime_finalizing = 24, .runtime_key = 592 + 2 * MORE,
		.runtime_current = 576 + 2 * MORE, .interpreter_id = 48, .interpreter_next = 0,
		.interpreter_threads = 16, .interpreter_sys = 904, .state_previous = 0, .state_next = 8,
		.state_interpreter = 16, .state_native = 160, .code_filename = 112, .code_name = 120,
		.code_first_line = 72, .code_bytes = 184, .code_qualname = 128, .code_lines = 136,
		.lines = DUMP_LINES_LOCATIONS, .string_length = 16, .string_state = 32, .string_kind = 0x1c,
		.string_compact = 0x20, .string_ascii = 0x40, .string_ascii_data = 48, .string_wide_data = 72,
		.dict_keys = 32, .dict_values = 40, .keys_slots = PYTHON_ABSENT, .keys_index_log2 = 9, .keys_kind = 10,
		.keys_entry_count = 24, .keys_index = 32,
		.dict_entries = {
			{ .kind = 0, .bytes = 24, .key = 8, .value = 16 },
			{ .kind = 1, .bytes = 16, .key = 0, .value = 8 },
		},
		.list_count = 16, .list_items = 24, .type_name = 24,
	},
	{
		.minor = 12, .headers = "3.12.1, 3.12.6",
		.frames = {
			.state_thread = 136, .object_type = 8, .bytes_size = 16, .bytes_data = 32, .frame_previous = 8,
			.code_units = 16, .code_start = 192, .first_traceable = 176, .state_frame = 56,
			.cframe_frame = 0, .frame_code = 0, .frame_instruction = 56, .instruction = PYTHON_BEFORE_NEXT,
			.frame_owner = 70, .owner_generator = 1, .frame_entry = PYTHON_ABSENT, .owner_without_code = 3,
		},
		.runtime_interpreters = 40, .runtime_main = 48, .runtime_finalizing = 24, .runtime_key = 1544,
		.runtime_current = PYTHON_ABSENT, .interpreter_id = 8, .interpreter_next = 0, .interpreter_threads = 72,
		.interpreter_sys = 352, .state_previous = 0, .state_next = 8, .state_interpreter = 16,
		.state_native = 144, .code_filename = 112, .code_name = 120, .code_first_line = 68, .code_bytes = 192,
		.code_qualname = 128, .code_lines = 136, .lines = DUMP_LINES_LOCATIONS, .string_length = 16,
		.string_state = 32, .string_kind = 0x1c, .string_compact = 0x20, .string_ascii = 0x40,
		.string_ascii_data = 40, .string_wide_data = 56, .dict_keys = 32, .dict_values = 40,
		.keys_slots = PYTHON_ABSENT, .keys_index_log2 = 9, .keys_kind = 10, .keys_entry_count = 24,
		.keys_index = 32,
		.dict_entries = {
			{ .kind = 0, .bytes = 24, .key = 8, .value = 16 },
			{ .kind = 1, .bytes = 16, .key = 0, .value = 8 },
		},
		.list_count = 16, .list_items = 24, .type_name = 24,
	},
	{
		.minor = 13, .headers = "3.13.0, 3.13.5, 3.13.15",
		.frames = {
			.state_thread = 152, .object_type = 8, .bytes_size = 16, .bytes_data = 32, .frame_previous = 8,
			.code_units = 16, .code_start = 200, .first_traceable = 184, .state_frame = 72,
			.cframe_frame = PYTHON_ABSENT, .frame_code = 0, .frame_instruction = 56,
			.instruction = PYTHON_CURRENT, .frame_owner = 70, .owner_generator = 1,
			.frame_entry = PYTHON_ABSENT, .owner_without_code = 3,
		},
		.runtime_interpreters = 632, .runtime_main = 640, .runtime_finalizing = 608, .runtime_key = 2160,
		.runtime_current = PYTHON_ABSENT, .interpreter_id = 7272, .interpreter_next = 7264,
		.interpreter_threads = 7344, .interpreter_sys = 7640, .state_previous = 0, .state_next = 8,
		.state_interpreter = 16, .state_native = 160, .code_filename = 112, .code_name = 120,
		.code_first_line = 68, .code_bytes = 200, .code_qualname = 128, .code_lines = 136,
		.lines = DUMP_LINES_LOCATIONS, .string_length = 16, .string_state = 32, .string_kind = 0x1c,
		.string_compact = 0x20, .string_ascii = 0x40, .string_ascii_data = 40, .string_wide_data = 56,
		.dict_keys = 32, .dict_values = 40, .keys_slots = PYTHON_ABSENT, .keys_index_log2 = 9, .keys_kind = 10,
		.keys_entry_count = 24, .keys_index = 32,
		.dict_entries = {
			{ .kind = 0, .bytes = 24, .key = 8, .value = 16 },
			{ .kind = 1, .bytes = 16, .key = 0, .value = 8 },
		},
		.list_count = 16, .list_items = 24, .type_name = 24,
		.self = {
			{ 32, 608 }, { 40, 632 }, { 56, 7272 }, { 64, 7264 }, { 72, 7344 }, { 96, 7640 }, { 160, 0 },
			{ 168, 8 }, { 176, 16 }, { 184, 72 }, { 192, 152 }, { 200, 160 }, { 232, 8 }, { 240, 0 },
			{ 248, 56 }, { 264, 70 }, { 280, 112 }, { 288, 120 }, { 296, 128 }, { 304, 136 }, { 312, 68 },
			{ 344, 200 }, { 360, 8 }, { 376, 24 }, { 520, 16 }, { 528, 32 }, { 544, 32 }, { 552, 16 },
			{ 456, 32 }, { 464, 40 }, { 440, 16 }, { 432, 24 }, { 560, 40 },
		},
	},
	{
		.minor = 14, .headers = "3.14.8, 3.14.10",
		.frames = {
			.state_thread = 152, .object_type = 8, .bytes_size = 16, .bytes_data = 32, .frame_previous = 8,
			.code_units = 16, .code_start = 208, .first_traceable = 192, .state_frame = 72,
			.cframe_frame = PYTHON_ABSENT, .frame_code = 0, .frame_instruction = 56,
			.instruction = PYTHON_CURRENT, .frame_owner = 74, .owner_generator = 1,
			.frame_entry = PYTHON_ABSENT, .owner_without_code = 3, .executable_tag = 1,
		},
		.runtime_interpreters = 808, .runtime_main = 816, .runtime_finalizing = 784, .runtime_key = 2336,
		.runtime_current = PYTHON_ABSENT, .interpreter_id = 7280, .interpreter_next = 7272,
		.interpreter_threads = 7344, .interpreter_sys = 7672, .state_previous = 0, .state_next = 8,
		.state_interpreter = 16, .state_native = 160, .code_filename = 112, .code_name = 120,
		.code_first_line = 68, .code_bytes = 208, .code_qualname = 128, .code_lines = 136,
		.lines = DUMP_LINES_LOCATIONS, .string_length = 16, .string_state = 32, .string_kind = 0x1c,
		.string_compact = 0x20, .string_ascii = 0x40, .string_ascii_data = 40, .string_wide_data = 56,
		.dict_keys = 32, .dict_values = 40, .keys_slots = PYTHON_ABSENT, .keys_index_log2 = 9, .keys_kind = 10,
		.keys_entry_count = 24, .keys_index = 32,
		.dict_entries = {
			{ .kind = 0, .bytes = 24, .key = 8, .value = 16 },
			{ .kind = 1, .bytes = 16, .key = 0, .value = 8 },
		},
		.list_count = 16, .list_items = 24, .type_name = 24,
		.self = {
			{ 32, 784 }, { 40, 808 }, { 56, 7280 }, { 64, 7272 }, { 72, 7344 }, { 104, 7672 }, { 184, 0 },
			{ 192, 8 }, { 200, 16 }, { 208, 72 }, { 216, 152 }, { 224, 160 }, { 256, 8 }, { 264, 0 },
			{ 272, 56 }, { 288, 74 }, { 320, 112 }, { 328, 120 }, { 336, 128 }, { 344, 136 }, { 352, 68 },
			{ 384, 208 }, { 408, 8 }, { 424, 24 }, { 600, 16 }, { 608, 32 }, { 624, 32 }, { 632, 16 },
			{ 536, 32 }, { 544, 40 }, { 488, 16 }, { 480, 24 }, { 640, 40 },
		},
	},
};
/* clang-format on */

#define RELEASES (sizeof releases / sizeof releases[0])

const struct python_release *python_release_find(uint32_t minor)
{
	for (size_t i = 0; i < RELEASES; i++)
		if (releases[i].minor == minor)
			return &releases[i];
	return NULL;
}

const struct python_release *python_release_list(uint32_t *count)
{
	*count = RELEASES;
	return releases;
}
