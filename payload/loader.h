/* SPDX-License-Identifier: MIT */
/*
 * Visits the modules of the target while none of them can be unloaded. dl_iterate_phdr(3) holds the lock of the loader's list: a module on the
 * list cannot leave it meanwhile, and what is unmapped has left it before.
 */
#ifndef MEMATTACH_PAYLOAD_LOADER_H
#define MEMATTACH_PAYLOAD_LOADER_H

#include <stdbool.h>
#include <stdint.h>

/* The writable segments of one module, RELRO included. */
struct loader_module {
	uint64_t bias;
	const void *headers; /* Elf64_Phdr[] */
	uint32_t header_count;
};

typedef void (*loader_visit)(const struct loader_module *module, void *context);

/* Calls visit for every module of the namespace that the C library's own symbols belong to. */
void loader_each_module(uint64_t dl_iterate_phdr, loader_visit visit, void *context);
/* Is the word at address inside a writable segment? */
bool loader_module_holds(const struct loader_module *module, uint64_t address);

#endif
