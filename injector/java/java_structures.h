/* SPDX-License-Identifier: MIT */
/*
 * Where HotSpot (JDK 11 to 25) has what a walk and the names of its frames need, taken from its own tables
 * (java_tables.h). What is not in the tables and was taken from its sources:
 *
 * - A frame of the interpreter has, from the frame pointer on, in words: saved frame pointer 0, return address 1, and
 *   below what arch/java_frame.h says.
 * - UNSIGNED5, the coding of numbers in scopes and line tables: from JDK 20 on no byte is 0.
 * - A scope begins with the offset of its caller's scope, the number of its Method and its bytecode index + 1.
 * - The tables of pcs and of what they lead to: nmethod::_scopes_pcs_offset is followed by the offset of its end.
 *
 * Nothing of all this is believed before java_proof.h has seen it right on the process.
 */
#pragma once

#include "java/java_tables.h"

#define JAVA_OLDEST 11u
#define JAVA_NEWEST 25u

struct java_field {
	uint64_t at;    /* offset; of a static field: its address */
	uint32_t bytes; /* of its value: 1, 2, 4, 8; 0: this version has no such field */
};

/* member, its names in the versions, whether all versions have it */
#define JAVA_FIELD_LIST(X)                                                                                             \
	X(version_major, "Abstract_VM_Version::_vm_major_version", true)                                               \
	X(version_text, "Abstract_VM_Version::_s_vm_release", true)                                                    \
	X(cache_low, "CodeCache::_low_bound", true)                                                                    \
	X(cache_high, "CodeCache::_high_bound", true)                                                                  \
	X(heaps, "CodeCache::_heaps", true)                                                                            \
	X(heap_memory, "CodeHeap::_memory", true)                                                                      \
	X(heap_segmap, "CodeHeap::_segmap", true)                                                                      \
	X(heap_shift, "CodeHeap::_log2_segment_size", true)                                                            \
	X(space_low, "VirtualSpace::_low", true)                                                                       \
	X(space_high, "VirtualSpace::_high", true)                                                                     \
	X(list_length, "GrowableArrayBase::_len GenericGrowableArray::_len", true)                                     \
	X(list_data, "GrowableArray<int>::_data", true)                                                                \
	X(block_length, "HeapBlock::Header::_length", true)                                                            \
	X(block_used, "HeapBlock::Header::_used", true)                                                                \
	X(loaders, "ClassLoaderDataGraph::_head", false)                                                               \
	X(loader_next, "ClassLoaderData::_next", false)                                                                \
	X(loader_classes, "ClassLoaderData::_klasses", false)                                                          \
	X(class_loader, "Klass::_class_loader_data", false)                                                            \
	X(class_next, "Klass::_next_link", false)                                                                      \
	X(counters, "PerfMemory::_start", false)                                                                       \
	X(call_stub_return, "StubRoutines::_call_stub_return_address", true)                                           \
	X(interpreter, "AbstractInterpreter::_code", true)                                                             \
	X(queue_buffer, "StubQueue::_stub_buffer", true)                                                               \
	X(blob_name, "CodeBlob::_name", true)                                                                          \
	X(blob_bytes, "CodeBlob::_size", true)                                                                         \
	X(blob_code, "CodeBlob::_code_begin CodeBlob::_code_offset", true)                                             \
	X(blob_frame_words, "CodeBlob::_frame_size", true)                                                             \
	X(blob_mutable, "CodeBlob::_mutable_data", false)                                                              \
	X(blob_relocation, "CodeBlob::_relocation_size", false)                                                        \
	X(blob_data, "CodeBlob::_data_offset", false)                                                                  \
	X(compiled_method, "CompiledMethod::_method nmethod::_method", true)                                           \
	X(compiled_deopt,                                                                                              \
	  "CompiledMethod::_deopt_handler_begin nmethod::_deopt_handler_offset nmethod::_deopt_handler_entry_offset",  \
	  true)                                                                                                        \
	X(compiled_deopt_mh, "CompiledMethod::_deopt_mh_handler_begin nmethod::_deopt_mh_handler_offset", false)       \
	X(compiled_original, "nmethod::_orig_pc_offset", true)                                                         \
	X(compiled_scopes, "CompiledMethod::_scopes_data_begin nmethod::_scopes_data_offset", true)                    \
	X(compiled_pcs, "nmethod::_scopes_pcs_offset", true)                                                           \
	X(compiled_metadata, "nmethod::_metadata_offset", false)                                                       \
	X(compiled_immutable, "nmethod::_immutable_data", false)                                                       \
	X(compiled_id, "nmethod::_compile_id", true)                                                                   \
	X(method_const, "Method::_constMethod", true)                                                                  \
	X(method_access, "Method::_access_flags Method::_access_flags._flags", true)                                   \
	X(const_pool, "ConstMethod::_constants", true)                                                                 \
	X(const_words, "ConstMethod::_constMethod_size", true)                                                         \
	X(const_flags, "ConstMethod::_flags ConstMethod::_flags._flags", true)                                         \
	X(const_code_bytes, "ConstMethod::_code_size", true)                                                           \
	X(const_name, "ConstMethod::_name_index", true)                                                                \
	X(pool_length, "ConstantPool::_length", true)                                                                  \
	X(pool_holder, "ConstantPool::_pool_holder", true)                                                             \
	X(pool_file, "ConstantPool::_source_file_name_index", false)                                                   \
	X(class_file, "InstanceKlass::_source_file_name_index", false)                                                 \
	X(class_name, "Klass::_name", true)                                                                            \
	X(class_methods, "InstanceKlass::_methods", true)                                                              \
	X(array_length, "Array<int>::_length", true)                                                                   \
	X(methods_data, "Array<Method*>::_data", true)                                                                 \
	X(symbol_length, "Symbol::_length", true)                                                                      \
	X(symbol_text, "Symbol::_body[0] Symbol::_body", true)                                                         \
	X(threads, "ThreadsSMRSupport::_java_thread_list", false)                                                      \
	X(threads_length, "ThreadsList::_length", false)                                                               \
	X(threads_data, "ThreadsList::_threads", false)                                                                \
	X(first_thread, "Threads::_thread_list", false)                                                                \
	X(thread_next, "JavaThread::_next", false)                                                                     \
	X(thread_anchor, "JavaThread::_anchor", true)                                                                  \
	X(thread_native, "JavaThread::_osthread Thread::_osthread", true)                                              \
	X(thread_stack_base, "JavaThread::_stack_base Thread::_stack_base", true)                                      \
	X(thread_stack_bytes, "JavaThread::_stack_size Thread::_stack_size", true)                                     \
	X(native_id, "OSThread::_thread_id", true)                                                                     \
	X(anchor_sp, "JavaFrameAnchor::_last_Java_sp", true)                                                           \
	X(anchor_pc, "JavaFrameAnchor::_last_Java_pc", true)                                                           \
	X(anchor_fp, "JavaFrameAnchor::_last_Java_fp", true)                                                           \
	X(wrapper_anchor, "JavaCallWrapper::_anchor", true)

/* member, type */
#define JAVA_SIZE_LIST(X)                                                                                              \
	X(block, "HeapBlock")                                                                                          \
	X(const_method, "ConstMethod")                                                                                 \
	X(pool, "ConstantPool")                                                                                        \
	X(pc_desc, "PcDesc")

#define JAVA_RELEASE_TEXT 64u

struct java_structures {
	uint32_t version; /* 17 */
	char release[JAVA_RELEASE_TEXT];
#define X(member, names, required) struct java_field member;
	JAVA_FIELD_LIST(X)
#undef X
	struct {
#define X(member, type) uint32_t member;
		JAVA_SIZE_LIST(X)
#undef X
	} bytes;               /* of the structures */
	int32_t entry_wrapper; /* words from the frame pointer of a call from native code to its JavaCallWrapper */
	uint32_t has_lines;    /* of ConstMethod::_flags: it has a table of lines */
	uint32_t unused_bytes; /* UNSIGNED5: bytes below this are not used */
};

/* -ENOEXEC: libjvm does not say all of it, or is of a version that is not known; the text says which. tm: with a
 * budget. */
int java_structures_read(struct java_structures *s, const struct elf_module *libjvm, const struct target_memory *tm,
                         struct err *e) WARN_UNUSED;

/* Reads a field of the structure at address, or (address 0) a static one. 0 for one that this version has not. */
int java_field_read(const struct target_memory *tm, uint64_t address, const struct java_field *f, uint64_t *value,
                    struct err *e) WARN_UNUSED;
