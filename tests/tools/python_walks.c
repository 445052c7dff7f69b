/* SPDX-License-Identifier: MIT */
/*
 * Loaded before the C library of a python3: walks the Python frames of the calling thread at each call of malloc,
 * calloc and realloc, by payload/python/python_walk.c, and reads their code objects, by payload/python/code_object.c.
 * With PYTHONMALLOC=malloc each Python object is such a call. At the end it adds a line to the file that PYTHON_WALKS
 * names:
 *
 *     PID walks frames no_thread truncated lost nameless
 *
 * python_walks_here() is for ctypes: the frames as the walk finds them, to be compared with what Python says of itself.
 *
 * A process that cannot be prepared so writes "PID not CPython" or the like: it has walked nothing.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/machine.h"
#include "python/code_object.h"
#include "dump_format.h"
#include "python/python_releases.h"
#include "python/python_walk.h"

#define ROOM 1024u

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);

static struct python_layout layout;
static const char *trouble = "it has not started";
static atomic_ulong walks, frames, nameless, sum_of_hashes, ends[PYTHON_WALK_LOST + 1];
static __thread struct python_walked found[ROOM] __attribute__((tls_model("initial-exec")));

/* As many as the payload reads. */
static void read_code(uint32_t count)
{
	unsigned long without = 0, sum = 0;
	struct code_object code;

	for (uint32_t i = 0; i < count && i < DUMP_PYTHON_FRAMES_MAX; i++) {
		code_object_read(&code, &layout, &found[i]);
		without += !code.name.bytes || !code.file.bytes || code.table_cut;
		sum += code.hash;
	}
	atomic_fetch_add_explicit(&nameless, without, memory_order_relaxed);
	atomic_fetch_add_explicit(&sum_of_hashes, sum, memory_order_relaxed);
}

static __attribute__((noinline)) void walk(void)
{
	const uint64_t thread_pointer = arch_thread_pointer();
	uint32_t count;

	if (trouble)
		return;
	enum python_walk_end end = python_walk(&layout, thread_pointer, found, ROOM, &count);
	read_code(count);
	atomic_fetch_add_explicit(&walks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&frames, count, memory_order_relaxed);
	atomic_fetch_add_explicit(&ends[end], 1, memory_order_relaxed);
}

/* Code objects and offsets of this thread's frames; the count, -1: not the whole stack. times: so often, to be
 * measured. */
__attribute__((visibility("default"))) int python_walks_here(uint64_t *codes, int32_t *offsets, unsigned room,
                                                             unsigned times);
int python_walks_here(uint64_t *codes, int32_t *offsets, unsigned room, unsigned times)
{
	const uint64_t thread_pointer = arch_thread_pointer();
	uint32_t count = 0;
	enum python_walk_end end = PYTHON_WALK_LOST;

	if (trouble)
		return -1;
	for (unsigned i = 0; i < times; i++)
		end = python_walk(&layout, thread_pointer, found, room < ROOM ? room : ROOM, &count);
	for (uint32_t i = 0; i < count; i++) {
		codes[i] = found[i].code;
		offsets[i] = found[i].offset;
	}
	return end == PYTHON_WALK_WHOLE ? (int)count : -1;
}

void *malloc(size_t bytes)
{
	walk();
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	walk();
	return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
	walk();
	return __libc_realloc(old, bytes);
}

/* Of the state that a thread works with: 3.13 and later export where it is; else PYTHON_WALKS_ATTACHED may say it. */
static int64_t attached_offset(void)
{
	uint64_t (*place)(void) = dlsym(RTLD_DEFAULT, "_Py_GetThreadLocal_Addr");
	const char *offset = getenv("PYTHON_WALKS_ATTACHED");

	return place ? (int64_t)(place() - arch_thread_pointer()) : offset ? atoi(offset) : 0;
}

/* Of the C library's table of keys: exported as the members are; else PYTHON_WALKS_KEYS may say how far it is from the
 * start of the library. */
static uint64_t key_table(void *libc)
{
	const char *offset = getenv("PYTHON_WALKS_KEYS");
	void *table = libc ? dlvsym(libc, "__pthread_keys", "GLIBC_PRIVATE") : NULL;
	Dl_info library;

	if (!table && offset && dladdr((void *)pthread_key_create, &library))
		table = (char *)library.dli_fbase + atoi(offset);
	return (uint64_t)(uintptr_t)table;
}

static const char *prepare(void)
{
	const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
	char *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
	void *libc = dlopen("libc.so.6", RTLD_NOW), *threads = dlopen("libpthread.so.0", RTLD_NOW);
	uint32_t *member = libc ? dlvsym(libc, "_thread_db_pthread_specific", "GLIBC_PRIVATE") : NULL;
	uint32_t *flags = libc ? dlvsym(libc, "_thread_db_pthread_cancelhandling", "GLIBC_PRIVATE") : NULL;
	uint32_t *below = libc ? dlvsym(libc, "_thread_db_sizeof_pthread", "GLIBC_PRIVATE") : NULL;
	char *offset = getenv("PYTHON_WALKS_SPECIFIC"), *flags_offset = getenv("PYTHON_WALKS_LEAVING");
	unsigned minor;

	(void)threads;
	if (!version || !runtime || sscanf(version(), "3.%u.", &minor) != 1)
		return "not CPython";
	const struct python_release *r = python_release_find(minor);
	const uint64_t table = key_table(libc);
	if (!r || (!member && !offset) || (!flags && !flags_offset) || !table) /* not exported before glibc 2.34 */
		return r ? "no _thread_db_pthread_specific or _cancelhandling, or no __pthread_keys"
		         : "not a version that is known";
	layout = (struct python_layout){
		.specific_offset = member ? member[2] : (uint32_t)atoi(offset),
		.leaving_offset = flags ? flags[2] : (uint32_t)atoi(flags_offset),
		.key_address = (uint64_t)(uintptr_t)runtime + r->runtime_key,
		.key_table = table,
		.finalizing = (uint64_t)(uintptr_t)runtime + r->runtime_finalizing,
		.code_type = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type"),
		.frame_type = minor <= 10 ? (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "PyFrame_Type") : 0,
		.string_type = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type"),
		.bytes_type = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "PyBytes_Type"),
		.frames = r->frames,
		.code = python_release_code(r),
		.state_interpreter = r->state_interpreter,
		.attached_offset = attached_offset(),
		.current_state = r->runtime_current != PYTHON_ABSENT ? (uint64_t)(uintptr_t)runtime + r->runtime_current
		                                                     : 0,
		.block_below = ARCH_CONTROL_BELOW && below ? *below : 0,
	};
	return NULL;
}

static __attribute__((constructor)) void start(void)
{
	trouble = prepare();
}

static __attribute__((destructor)) void report(void)
{
	const char *file = getenv("PYTHON_WALKS");
	char line[200];
	int n = trouble ? snprintf(line, sizeof line, "%d %s\n", getpid(), trouble)
	                : snprintf(line, sizeof line, "%d %lu %lu %lu %lu %lu %lu\n", getpid(), walks, frames,
	                           ends[PYTHON_WALK_NO_THREAD], ends[PYTHON_WALK_TRUNCATED], ends[PYTHON_WALK_LOST],
	                           nameless);
	int fd = file ? open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;

	if (fd < 0 || write(fd, line, (size_t)n) != n)
		_exit(99);
	close(fd);
}
