/* SPDX-License-Identifier: MIT */
/*
 * A JVM that is none: a class with one method, as HotSpot has them in memory, in the data of this program. Tests change
 * it and look at it from outside.
 */
#pragma once

#include <stddef.h>

#include "java/java_method.h"

#define JAVA_FAKE_CODE 16u /* bytes of its bytecode */
#define JAVA_FAKE_TEXT 16u

#define JAVA_FAKE_FIELD(type, member) ((struct java_field){ offsetof(type, member), sizeof((type *)0)->member })

struct java_fake_symbol {
	uint16_t length;
	char text[JAVA_FAKE_TEXT];
};

struct java_fake {
	_Alignas(8) struct java_fake_method {
		uint64_t constant;
		uint32_t access;
	} method;
	struct java_fake_const {
		uint64_t pool, words;
		uint32_t name, flags, code_bytes;
		uint8_t code[JAVA_FAKE_CODE];
		uint8_t lines[32];
	} constant;
	struct java_fake_pool {
		uint64_t holder, length;
		uint64_t entries[2];
	} pool;
	struct java_fake_class {
		uint64_t name, methods, loader, next;
		uint16_t file;
	} class;
	struct java_fake_loader {
		uint64_t next, classes;
	} loader;
	uint64_t loaders; /* leads to it */
	struct java_fake_methods {
		uint32_t length;
		uint64_t list[1];
	} methods;
	struct java_fake_symbol class_name, method_name;
};

/* Of this program. Classes are those of this one; Methods may be of others, too. */
struct java_view java_fake_view(const struct java_fake *f);
/* Made anew: its class is called so, its method "f". Each bytecode is in line 7. */
void java_fake_make(struct java_fake *f, const char *class);
uint64_t java_fake_at(const void *address);
/* As HotSpot writes UNSIGNED5, before JDK 20. Returns what is behind it. */
uint8_t *java_fake_number(uint8_t *to, uint32_t value);
