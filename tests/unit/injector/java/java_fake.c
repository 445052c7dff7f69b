/* SPDX-License-Identifier: MIT */
#include "java_fake.h"

#include <string.h>
#include <unistd.h>

#define FIELD JAVA_FAKE_FIELD
#define LINE 7u

uint64_t java_fake_at(const void *address)
{
	return (uint64_t)(uintptr_t)address;
}

struct java_view java_fake_view(const struct java_fake *f)
{
	struct java_view v = { .memory = { .pid = getpid(), .mem_fd = -1 } };

	v.s.method_const = FIELD(struct java_fake_method, constant);
	v.s.method_access = FIELD(struct java_fake_method, access);
	v.s.const_pool = FIELD(struct java_fake_const, pool);
	v.s.const_words = FIELD(struct java_fake_const, words);
	v.s.const_name = FIELD(struct java_fake_const, name);
	v.s.const_flags = FIELD(struct java_fake_const, flags);
	v.s.const_code_bytes = FIELD(struct java_fake_const, code_bytes);
	v.s.bytes.const_method = offsetof(struct java_fake_const, code);
	v.s.has_lines = 1;
	v.s.pool_holder = FIELD(struct java_fake_pool, holder);
	v.s.pool_length = FIELD(struct java_fake_pool, length);
	v.s.bytes.pool = offsetof(struct java_fake_pool, entries);
	v.s.class_name = FIELD(struct java_fake_class, name);
	v.s.class_methods = FIELD(struct java_fake_class, methods);
	v.s.class_file = FIELD(struct java_fake_class, file);
	v.s.class_loader = FIELD(struct java_fake_class, loader);
	v.s.class_next = FIELD(struct java_fake_class, next);
	v.s.loaders = (struct java_field){ java_fake_at(&f->loaders), sizeof f->loaders };
	v.s.loader_next = FIELD(struct java_fake_loader, next);
	v.s.loader_classes = FIELD(struct java_fake_loader, classes);
	v.s.array_length = FIELD(struct java_fake_methods, length);
	v.s.methods_data.at = offsetof(struct java_fake_methods, list);
	v.s.symbol_length = FIELD(struct java_fake_symbol, length);
	v.s.symbol_text.at = offsetof(struct java_fake_symbol, text);
	return v;
}

static void symbol_make(struct java_fake_symbol *s, const char *text)
{
	s->length = (uint16_t)strlen(text);
	memcpy(s->text, text, s->length);
}

void java_fake_make(struct java_fake *f, const char *class)
{
	*f = (struct java_fake){
		.method = { .constant = java_fake_at(&f->constant) },
		.constant = { .pool = java_fake_at(&f->pool),
		              .words = sizeof f->constant / 8,
		              .name = 1,
		              .flags = 1,
		              .code_bytes = JAVA_FAKE_CODE,
		              .lines = { LINE } },
		.pool = { .holder = java_fake_at(&f->class),
		          .length = 2,
		          .entries = { 0, java_fake_at(&f->method_name) } },
		.class = { .name = java_fake_at(&f->class_name),
		           .methods = java_fake_at(&f->methods),
		           .loader = java_fake_at(&f->loader) },
		.loader = { .classes = java_fake_at(&f->class) },
		.loaders = java_fake_at(&f->loader),
		.methods = { .length = 1, .list = { java_fake_at(&f->method) } },
	};
	symbol_make(&f->class_name, class);
	symbol_make(&f->method_name, "f");
}

uint8_t *java_fake_number(uint8_t *to, uint32_t value)
{
	for (int i = 0; i < 4 && value >= 192; i++) {
		value -= 192;
		*to++ = (uint8_t)(192 + value % 64);
		value /= 64;
	}
	*to++ = (uint8_t)value;
	return to;
}
