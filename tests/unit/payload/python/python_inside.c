/* SPDX-License-Identifier: MIT */
#include "python_inside.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "arch/thread_block.h"

/* As glibc describes its control block to debuggers (nptl_db); python_specific.c finds it from outside. */
static const uint32_t *private_object(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	const uint32_t *object = libc ? dlvsym(libc, name, "GLIBC_PRIVATE") : NULL;

	if (!object)
		skip(); /* before glibc 2.34 it is not exported */
	return object;
}

/* How far its description of a thread is below the thread pointer. */
static uint32_t block_below(void)
{
	return THREAD_BLOCK_SELF ? 0 : *private_object("_thread_db_sizeof_pthread");
}

static uint32_t member_offset(const char *name)
{
	return private_object(name)[2];
}

void python_inside_layout(const struct python_fake *f, struct python_layout *l)
{
	const struct python_release *r = f->release;

	*l = (struct python_layout){
		.version = 3u << 24 | r->minor << 16,
		.specific_offset = member_offset("_thread_db_pthread_specific"),
		.leaving_offset = member_offset("_thread_db_pthread_cancelhandling"),
		.key_address = (uint64_t)(uintptr_t)f->runtime + r->runtime_key,
		.key_table = (uint64_t)(uintptr_t)private_object("__pthread_keys"),
		.finalizing = (uint64_t)(uintptr_t)f->runtime + r->runtime_finalizing,
		.code_type = (uint64_t)(uintptr_t)f->code_type,
		.frame_type = r->minor <= 10 ? (uint64_t)(uintptr_t)f->frame_type : 0,
		.string_type = (uint64_t)(uintptr_t)f->string_type,
		.bytes_type = (uint64_t)(uintptr_t)f->bytes_type,
		.frames = r->frames,
		.code = python_release_code(r),
		.state_interpreter = r->state_interpreter,
		.attached_offset = r->minor >= 12 ? (char *)&python_fake_attached - (char *)__builtin_thread_pointer()
		                                  : 0,
		.current_state = r->minor <= 11 ? (uint64_t)(uintptr_t)f->runtime + r->runtime_current : 0,
		.main_interpreter = r->minor >= 12 ? (uint64_t)(uintptr_t)f->interpreter : 0,
		.block_below = block_below(),
	};
}

void python_inside_each(void (*test)(struct python_fake *f))
{
	uint32_t count;
	const struct python_release *list = python_release_list(&count);

	for (uint32_t i = 0; i < count; i++) {
		struct python_fake f;

		python_fake_make(&f, &list[i]);
		test(&f);
	}
}
