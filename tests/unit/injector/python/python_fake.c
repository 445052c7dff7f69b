/* SPDX-License-Identifier: MIT */
#include "python_fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AREA_BYTES (1u << 17)
#define CODE_BYTES 8u
#define RUNTIME_BYTES 4096u
#define INTERPRETER_BYTES (2u << 13)
#define OBJECT_BYTES 512u

static uint8_t area[AREA_BYTES] __attribute__((aligned(64)));
static size_t used;
static pthread_key_t key;
static bool has_key;

__thread uint64_t python_fake_attached;
#ifdef __x86_64__
#define RETURNS_ATTACHED "mov %fs:python_fake_attached@tpoff, %rax\nret\n"
#else
#define RETURNS_ATTACHED                                                                                               \
	"mrs x0, tpidr_el0\nadd x0, x0, #:tprel_hi12:python_fake_attached, lsl #12\n"                                  \
	"add x0, x0, #:tprel_lo12_nc:python_fake_attached\nldr x0, [x0]\nret\n"
#endif
__asm__(".text\n.globl PyThreadState_GetUnchecked\n.type PyThreadState_GetUnchecked, @function\n"
        "PyThreadState_GetUnchecked: " RETURNS_ATTACHED
        ".size PyThreadState_GetUnchecked, . - PyThreadState_GetUnchecked\n");

uint8_t *python_fake_new(size_t bytes)
{
	size_t at = used;

	used += (bytes + 63) & ~(size_t)63;
	if (used > sizeof area)
		abort();
	memset(area + at, 0, bytes);
	return area + at;
}

void python_fake_put(uint8_t *object, uint32_t offset, uint64_t word)
{
	memcpy(object + offset, &word, sizeof word);
}

void python_fake_put_pointer(uint8_t *object, uint32_t offset, const void *pointer)
{
	python_fake_put(object, offset, (uint64_t)(uintptr_t)pointer);
}

static void put_int(uint8_t *object, uint32_t offset, int32_t value)
{
	memcpy(object + offset, &value, sizeof value);
}

static uint8_t *new_type(struct python_fake *f, const char *name)
{
	uint8_t *type = python_fake_new(OBJECT_BYTES), *text = python_fake_new(strlen(name) + 1);

	memcpy(text, name, strlen(name));
	python_fake_put_pointer(type, f->release->type_name, text);
	python_fake_put_pointer(type, f->release->frames.object_type, f->meta ? f->meta : type);
	return type;
}

static uint8_t *types[PYTHON_KINDS];

uint8_t *python_fake_object(struct python_fake *f, enum python_kind kind, size_t bytes)
{
	uint8_t *object = python_fake_new(bytes);

	python_fake_put_pointer(object, f->release->frames.object_type, types[kind]);
	return object;
}

uint8_t *python_fake_string(struct python_fake *f, const void *characters, size_t count, unsigned width, bool ascii)
{
	const struct python_release *r = f->release;
	uint8_t *s = python_fake_object(f, PYTHON_STR, r->string_wide_data + (count + 1) * width);
	uint32_t state = r->string_compact | (ascii ? r->string_ascii : 0) | width * (r->string_kind & -r->string_kind);

	python_fake_put(s, r->string_length, count);
	put_int(s, r->string_state, (int32_t)state);
	memcpy(s + (ascii ? r->string_ascii_data : r->string_wide_data), characters, count * width);
	return s;
}

uint8_t *python_fake_bytes(struct python_fake *f, const void *bytes, size_t count)
{
	uint8_t *b = python_fake_object(f, PYTHON_BYTES, f->release->frames.bytes_data + count + 1);

	python_fake_put(b, f->release->frames.bytes_size, count);
	memcpy(b + f->release->frames.bytes_data, bytes, count);
	return b;
}

/* Line 10 for the first half of the code, 11 for the other. */
static uint8_t *new_lines(struct python_fake *f)
{
	static const uint8_t lnotab[] = { 4, 1 }, linetable[] = { 4, 0, 4, 1 }, locations[] = { 0x81, 0, 0xd9, 0, 0 };

	switch (f->release->lines) {
	case DUMP_LINES_LNOTAB: return python_fake_bytes(f, lnotab, sizeof lnotab);
	case DUMP_LINES_LINETABLE: return python_fake_bytes(f, linetable, sizeof linetable);
	default: return python_fake_bytes(f, locations, sizeof locations);
	}
}

static uint8_t *new_code(struct python_fake *f)
{
	const struct python_release *r = f->release;
	uint8_t *code = python_fake_object(f, PYTHON_CODE, OBJECT_BYTES);
	static const uint8_t noise[CODE_BYTES];

	if (r->frames.code_units != PYTHON_ABSENT)
		python_fake_put(code, r->frames.code_units, CODE_BYTES / 2);
	else
		python_fake_put_pointer(code, r->frames.code_start, python_fake_bytes(f, noise, sizeof noise));
	put_int(code, r->code_first_line, 10);
	python_fake_put_pointer(code, r->code_name, f->name);
	if (r->code_qualname != PYTHON_ABSENT)
		python_fake_put_pointer(code, r->code_qualname, f->name);
	python_fake_put_pointer(code, r->code_filename, f->file);
	python_fake_put_pointer(code, r->code_lines, f->lines);
	return code;
}

void python_fake_put_code(struct python_fake *f, unsigned frame, const uint8_t *code)
{
	uint64_t bits = (uint64_t)(uintptr_t)code | f->release->frames.executable_tag;

	python_fake_put(f->frames[frame], f->release->frames.frame_code, bits);
}

void python_fake_put_instruction(struct python_fake *f, unsigned frame, int32_t offset)
{
	const struct python_frame_layout *l = &f->release->frames;

	if (l->instruction == PYTHON_LAST_BYTES)
		put_int(f->frames[frame], l->frame_instruction, offset);
	else if (l->instruction == PYTHON_LAST_UNITS)
		put_int(f->frames[frame], l->frame_instruction, offset / 2);
	else
		python_fake_put_pointer(f->frames[frame], l->frame_instruction,
		                        f->codes[frame] + (int64_t)l->code_start + offset);
}

static void make_frames(struct python_fake *f)
{
	const struct python_frame_layout *l = &f->release->frames;

	for (unsigned i = 0; i < FAKE_FRAMES; i++) {
		f->codes[i] = new_code(f);
		f->frames[i] = python_fake_object(f, PYTHON_FRAME, OBJECT_BYTES);
	}
	for (unsigned i = 0; i < FAKE_FRAMES; i++) {
		if (l->instruction > PYTHON_LAST_UNITS) /* these have no head */
			memset(f->frames[i], 0, OBJECT_BYTES);
		python_fake_put_code(f, i, f->codes[i]);
		python_fake_put_instruction(f, i, 4);
		python_fake_put_pointer(f->frames[i], l->frame_previous, i + 1 < FAKE_FRAMES ? f->frames[i + 1] : NULL);
	}
}

static void put_key(struct python_fake *f)
{
	put_int(f->runtime, f->release->runtime_key, 1);
	put_int(f->runtime, f->release->runtime_key + 4, (int32_t)key);
}

void python_fake_bind(struct python_fake *f)
{
	pthread_setspecific(key, f->state);
}

void python_fake_make_key_again(struct python_fake *f, bool same_number)
{
	pthread_key_t taken;

	pthread_key_delete(key);
	bool other = !same_number && pthread_key_create(&taken, NULL) == 0;
	has_key = pthread_key_create(&key, NULL) == 0;
	if (other)
		pthread_key_delete(taken);
	put_key(f);
}

static void make_states(struct python_fake *f)
{
	const struct python_release *r = f->release;

	python_fake_put_pointer(f->runtime, r->runtime_interpreters, f->interpreter);
	python_fake_put_pointer(f->runtime, r->runtime_main, f->interpreter);
	put_key(f);
	python_fake_put_pointer(f->interpreter, r->interpreter_threads, f->state);
	python_fake_put_pointer(f->state, r->state_interpreter, f->interpreter);
	python_fake_put(f->state, r->frames.state_thread, (uint64_t)pthread_self());
	if (r->state_native != PYTHON_ABSENT)
		python_fake_put(f->state, r->state_native, (uint64_t)gettid());
	python_fake_put_pointer(f->state, r->frames.state_frame, f->frames[0]);
	if (r->frames.cframe_frame != PYTHON_ABSENT) {
		f->cframe = python_fake_new(OBJECT_BYTES);
		python_fake_put_pointer(f->cframe, r->frames.cframe_frame, f->frames[0]);
		python_fake_put_pointer(f->cframe, r->frames.cframe_frame + 8,
		                        f->state + 8); /* previous: the state's own */
		python_fake_put_pointer(f->state, r->frames.state_frame, f->cframe);
	}
	python_fake_bind(f);
}

void python_fake_make(struct python_fake *f, const struct python_release *release)
{
	static const char *const names[PYTHON_KINDS] = { "code", "str", "bytes", "frame", "NoneType", "dict", "list" };

	if (!has_key)
		has_key = pthread_key_create(&key, NULL) == 0;
	used = 0;
	python_fake_attached = 0;
	*f = (struct python_fake){ .release = release };
	f->meta = new_type(f, "type");
	for (unsigned i = 0; i < PYTHON_KINDS; i++)
		types[i] = new_type(f, names[i]);
	f->code_type = types[PYTHON_CODE];
	f->none_type = types[PYTHON_NONE];
	f->frame_type = types[PYTHON_FRAME];
	f->string_type = types[PYTHON_STR];
	f->bytes_type = types[PYTHON_BYTES];
	f->name = python_fake_string(f, "handle", 6, 1, true);
	f->file = python_fake_string(f, "views.py", 8, 1, true);
	f->lines = new_lines(f);
	f->runtime = python_fake_new(RUNTIME_BYTES);
	f->interpreter = python_fake_new(INTERPRETER_BYTES);
	f->state = python_fake_new(OBJECT_BYTES);
	for (unsigned i = 0; i < PYTHON_SELF_WORDS && release->self[i].at; i++)
		python_fake_put(f->runtime, release->self[i].at, release->self[i].value);
	make_frames(f);
	make_states(f);
}
