/* SPDX-License-Identifier: MIT */
/*
 * Prints the entry of injector/python/python_releases.c for the version of CPython whose headers it is compiled with.
 * scripts/python-releases runs it.
 */
#ifdef MUTEX_BYTES /* as many as another machine's C library gives a mutex */
#include <bits/pthreadtypes-arch.h>
#undef __SIZEOF_PTHREAD_MUTEX_T
#define __SIZEOF_PTHREAD_MUTEX_T MUTEX_BYTES
#endif
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe.h>
#endif
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX < 0x030b0000
#include <dict-common.h>
#include <frameobject.h>
#else
#include <internal/pycore_dict.h>
#endif

#define MEMBER(name, type, member) printf("\t\t.%s = %zu,\n", #name, offsetof(type, member))
#define FRAME(name, type, member) printf("\t\t\t.%s = %zu,\n", #name, offsetof(type, member))
#define FRAME_IS(name, value) printf("\t\t\t.%s = %s,\n", #name, value)

static void frame_layout(void)
{
	FRAME(state_thread, PyThreadState, thread_id);
	FRAME(object_type, PyObject, ob_type);
	FRAME(bytes_size, PyBytesObject, ob_base.ob_size);
	FRAME(bytes_data, PyBytesObject, ob_sval);
#if PY_VERSION_HEX < 0x030b0000
	FRAME(state_frame, PyThreadState, frame);
	FRAME_IS(cframe_frame, "PYTHON_ABSENT");
	FRAME(frame_previous, PyFrameObject, f_back);
	FRAME(frame_code, PyFrameObject, f_code);
	FRAME(frame_instruction, PyFrameObject, f_lasti);
	FRAME_IS(code_units, "PYTHON_ABSENT");
	FRAME(code_start, PyCodeObject, co_code);
	FRAME_IS(first_traceable, "PYTHON_ABSENT");
	FRAME_IS(instruction, PY_VERSION_HEX < 0x030a0000 ? "PYTHON_LAST_BYTES" : "PYTHON_LAST_UNITS");
#else
	FRAME(frame_previous, struct _PyInterpreterFrame, previous);
	FRAME(code_units, PyVarObject, ob_size);
	FRAME(code_start, PyCodeObject, co_code_adaptive);
	FRAME(first_traceable, PyCodeObject, _co_firsttraceable);
#if PY_VERSION_HEX < 0x030d0000
	FRAME(state_frame, PyThreadState, cframe);
	FRAME(cframe_frame, _PyCFrame, current_frame);
	FRAME(frame_code, struct _PyInterpreterFrame, f_code);
	FRAME(frame_instruction, struct _PyInterpreterFrame, prev_instr);
	FRAME_IS(instruction, "PYTHON_BEFORE_NEXT");
#else
	FRAME(state_frame, PyThreadState, current_frame);
	FRAME_IS(cframe_frame, "PYTHON_ABSENT");
	FRAME(frame_code, struct _PyInterpreterFrame, f_executable);
	FRAME(frame_instruction, struct _PyInterpreterFrame, instr_ptr);
	FRAME_IS(instruction, "PYTHON_CURRENT");
#endif
#endif
#if PY_VERSION_HEX >= 0x030b0000
	FRAME(frame_owner, struct _PyInterpreterFrame, owner);
	printf("\t\t\t.owner_generator = %d,\n", FRAME_OWNED_BY_GENERATOR);
#else
	FRAME_IS(frame_owner, "PYTHON_ABSENT");
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
	FRAME(frame_entry, struct _PyInterpreterFrame, is_entry);
#else
	FRAME_IS(frame_entry, "PYTHON_ABSENT");
#endif
#if PY_VERSION_HEX >= 0x030e0000
	printf("\t\t\t.owner_without_code = %d,\n", FRAME_OWNED_BY_INTERPRETER);
	printf("\t\t\t.executable_tag = %d,\n", (int)Py_TAG_REFCNT);
#elif PY_VERSION_HEX >= 0x030c0000
	printf("\t\t\t.owner_without_code = %d,\n", FRAME_OWNED_BY_CSTACK);
#else
	FRAME_IS(owner_without_code, "UINT8_MAX");
#endif
}

/* The bits that a member of the flags has, which no offset tells. */
#define FLAG(name, member)                                                                                             \
	do {                                                                                                           \
		PyASCIIObject ascii = { 0 };                                                                           \
		uint32_t word;                                                                                         \
		ascii.state.member = (uint32_t)~0u;                                                                    \
		memcpy(&word, &ascii.state, sizeof word);                                                              \
		printf("\t\t.%s = 0x%x,\n", #name, word);                                                              \
	} while (0)

static void strings(void)
{
	MEMBER(string_length, PyASCIIObject, length);
	MEMBER(string_state, PyASCIIObject, state);
	FLAG(string_kind, kind);
	FLAG(string_compact, compact);
	FLAG(string_ascii, ascii);
	printf("\t\t.string_ascii_data = %zu,\n", sizeof(PyASCIIObject));
	printf("\t\t.string_wide_data = %zu,\n", sizeof(PyCompactUnicodeObject));
}

static void dict_entry(size_t kind, size_t bytes, size_t key, size_t value)
{
	printf("\t\t\t{ .kind = %zu, .bytes = %zu, .key = %zu, .value = %zu },\n", kind, bytes, key, value);
}

#define ENTRY(kind, type) dict_entry(kind, sizeof(type), offsetof(type, me_key), offsetof(type, me_value))

static void containers(void)
{
	MEMBER(dict_keys, PyDictObject, ma_keys);
	MEMBER(dict_values, PyDictObject, ma_values);
#if PY_VERSION_HEX < 0x030b0000
	MEMBER(keys_slots, struct _dictkeysobject, dk_size);
	puts("\t\t.keys_index_log2 = PYTHON_ABSENT,");
	puts("\t\t.keys_kind = PYTHON_ABSENT,");
#else
	puts("\t\t.keys_slots = PYTHON_ABSENT,");
	MEMBER(keys_index_log2, struct _dictkeysobject, dk_log2_index_bytes);
	MEMBER(keys_kind, struct _dictkeysobject, dk_kind);
#endif
	MEMBER(keys_entry_count, struct _dictkeysobject, dk_nentries);
	MEMBER(keys_index, struct _dictkeysobject, dk_indices);
	puts("\t\t.dict_entries = {");
#if PY_VERSION_HEX < 0x030b0000
	ENTRY(0, PyDictKeyEntry);
#else
	ENTRY(DICT_KEYS_GENERAL, PyDictKeyEntry);
	ENTRY(DICT_KEYS_UNICODE, PyDictUnicodeEntry);
#endif
	puts("\t\t},");
	MEMBER(list_count, PyListObject, ob_base.ob_size);
	MEMBER(list_items, PyListObject, ob_item);
}

static void code_object(void)
{
	MEMBER(code_filename, PyCodeObject, co_filename);
	MEMBER(code_name, PyCodeObject, co_name);
	MEMBER(code_first_line, PyCodeObject, co_firstlineno);
#if PY_VERSION_HEX < 0x030b0000
	printf("\t\t.code_bytes = %zu,\n", sizeof(PyCodeObject));
	puts("\t\t.code_qualname = PYTHON_ABSENT,");
#else
	MEMBER(code_bytes, PyCodeObject, co_code_adaptive);
	MEMBER(code_qualname, PyCodeObject, co_qualname);
#endif
#if PY_VERSION_HEX < 0x030a0000
	MEMBER(code_lines, PyCodeObject, co_lnotab);
	puts("\t\t.lines = DUMP_LINES_LNOTAB,");
#else
	MEMBER(code_lines, PyCodeObject, co_linetable);
	puts(PY_VERSION_HEX < 0x030b0000 ? "\t\t.lines = DUMP_LINES_LINETABLE," : "\t\t.lines = DUMP_LINES_LOCATIONS,");
#endif
}

static void states(void)
{
	MEMBER(runtime_interpreters, _PyRuntimeState, interpreters.head);
	MEMBER(runtime_main, _PyRuntimeState, interpreters.main);
	MEMBER(runtime_finalizing, _PyRuntimeState, _finalizing);
#if PY_VERSION_HEX < 0x030c0000
	MEMBER(runtime_key, _PyRuntimeState, gilstate.autoTSSkey);
	MEMBER(runtime_current, _PyRuntimeState, gilstate.tstate_current);
#else
	MEMBER(runtime_key, _PyRuntimeState, autoTSSkey);
	puts("\t\t.runtime_current = PYTHON_ABSENT,");
#endif
	MEMBER(interpreter_id, PyInterpreterState, id);
	MEMBER(interpreter_next, PyInterpreterState, next);
#if PY_VERSION_HEX < 0x030b0000
	MEMBER(interpreter_threads, PyInterpreterState, tstate_head);
#else
	MEMBER(interpreter_threads, PyInterpreterState, threads.head);
#endif
	MEMBER(interpreter_sys, PyInterpreterState, sysdict);
	MEMBER(state_previous, PyThreadState, prev);
	MEMBER(state_next, PyThreadState, next);
	MEMBER(state_interpreter, PyThreadState, interp);
#if PY_VERSION_HEX < 0x030b0000
	puts("\t\t.state_native = PYTHON_ABSENT,");
#else
	MEMBER(state_native, PyThreadState, native_thread_id);
#endif
}

#if PY_VERSION_HEX >= 0x030d0000
/* A word of the self-description, and what it holds. */
#define SELF(member, type, of) printf("\t\t\t{ %zu, %zu },\n", offsetof(_Py_DebugOffsets, member), offsetof(type, of))

static void self_description(void)
{
	puts("\t\t.self = {");
	SELF(runtime_state.finalizing, _PyRuntimeState, _finalizing);
	SELF(runtime_state.interpreters_head, _PyRuntimeState, interpreters.head);
	SELF(interpreter_state.id, PyInterpreterState, id);
	SELF(interpreter_state.next, PyInterpreterState, next);
	SELF(interpreter_state.threads_head, PyInterpreterState, threads.head);
	SELF(interpreter_state.sysdict, PyInterpreterState, sysdict);
	SELF(thread_state.prev, PyThreadState, prev);
	SELF(thread_state.next, PyThreadState, next);
	SELF(thread_state.interp, PyThreadState, interp);
	SELF(thread_state.current_frame, PyThreadState, current_frame);
	SELF(thread_state.thread_id, PyThreadState, thread_id);
	SELF(thread_state.native_thread_id, PyThreadState, native_thread_id);
	SELF(interpreter_frame.previous, struct _PyInterpreterFrame, previous);
	SELF(interpreter_frame.executable, struct _PyInterpreterFrame, f_executable);
	SELF(interpreter_frame.instr_ptr, struct _PyInterpreterFrame, instr_ptr);
	SELF(interpreter_frame.owner, struct _PyInterpreterFrame, owner);
	SELF(code_object.filename, PyCodeObject, co_filename);
	SELF(code_object.name, PyCodeObject, co_name);
	SELF(code_object.qualname, PyCodeObject, co_qualname);
	SELF(code_object.linetable, PyCodeObject, co_linetable);
	SELF(code_object.firstlineno, PyCodeObject, co_firstlineno);
	SELF(code_object.co_code_adaptive, PyCodeObject, co_code_adaptive);
	SELF(pyobject.ob_type, PyObject, ob_type);
	SELF(type_object.tp_name, PyTypeObject, tp_name);
	SELF(bytes_object.ob_size, PyBytesObject, ob_base.ob_size);
	SELF(bytes_object.ob_sval, PyBytesObject, ob_sval);
	SELF(unicode_object.state, PyASCIIObject, state);
	SELF(unicode_object.length, PyASCIIObject, length);
	SELF(dict_object.ma_keys, PyDictObject, ma_keys);
	SELF(dict_object.ma_values, PyDictObject, ma_values);
	SELF(list_object.ob_size, PyListObject, ob_base.ob_size);
	SELF(list_object.ob_item, PyListObject, ob_item);
	printf("\t\t\t{ %zu, %zu },\n", offsetof(_Py_DebugOffsets, unicode_object.asciiobject_size),
	       sizeof(PyASCIIObject));
	puts("\t\t},");
}
#else
static void self_description(void)
{
}
#endif

int main(void)
{
#if PY_VERSION_HEX < 0x03090000 || PY_VERSION_HEX >= 0x030f0000
#error "the structures of this version are not known"
#endif
	printf("\t{\n\t\t.minor = %d,\n\t\t.headers = HEADERS,\n\t\t.frames = {\n", PY_MINOR_VERSION);
	frame_layout();
	puts("\t\t},");
	states();
	code_object();
	strings();
	containers();
	MEMBER(type_name, PyTypeObject, tp_name);
	self_description();
	puts("\t},");
	return 0;
}
