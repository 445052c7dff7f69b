/* SPDX-License-Identifier: MIT */
/*
 * A program in the moment after execve, before its first instruction: what the kernel has put on its stack (psABI
 * 3.4.1), its headers and those of its loader, and the padding behind their code. Its memory is read and written
 * through /proc/PID/mem. All of it is what the program's file says, so every number is checked, and loops are bounded.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define START_SEGMENTS_MAX 64

/* The program, or its loader. */
struct start_object {
	uint64_t bias;
	Elf64_Phdr segments[START_SEGMENTS_MAX];
	unsigned segment_count; /* 0: there is none */
};

struct start_image {
	int mem; /* /proc/PID/mem */
	uint64_t argc, argv;
	uint64_t entry;    /* AT_ENTRY */
	uint64_t entry_at; /* the address of its value on the stack */
	struct start_object program, loader;
	bool dynamic; /* a loader runs first */
};

/* The thread is stopped, its stack pointer is sp. mem stays the caller's. -ENOEXEC: it is no program for this machine,
 * or none as linkers make them. */
int start_image_read(struct start_image *image, int mem, uint64_t sp, struct err *e) WARN_UNUSED;
/* The address of so many zero bytes behind its code, at the end of the same page, or behind that of its loader;
 * -ENOSPC. */
int start_image_padding(const struct start_image *image, uint64_t bytes, uint64_t *address, struct err *e) WARN_UNUSED;
/* Is this an address of its code? */
bool start_image_is_code(const struct start_image *image, uint64_t address);
