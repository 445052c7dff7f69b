/* SPDX-License-Identifier: MIT */
/*
 * A cave: unused bytes after the end of an executable segment, in its last page, where a stub can be without mapping
 * anything. The bytes are zero in memory now; behind them may be others, by which a program waits at its entry
 * (start_image.h). It is in a module that stays for the life of the process, since others may be gone, and something
 * else mapped there, when it is written or used: the loader, the C library, the program, then what the loader does not
 * unload (scope_stays()). The vdso comes last: a static program is one module, whose last page of code may be full.
 *
 * What the stub has the kernel read (struct stub_frame, arch/stub.h) is behind it where there is room. Else it is in
 * any unused bytes of a private mapping of a file that is not writable: behind code or data that is only read, or, as
 * linkers of aarch64 make no such data, in front of the data that is only read after relocation (RELRO), in its first
 * page. Behind and in front of writable data there are others: musl's loader gives both to malloc, glibc's allocates
 * there itself, and a heap may begin there.
 */
#pragma once

#include "elf/modules.h"

struct cave {
	uint64_t address; /* multiple of 16 */
	uint64_t bytes;   /* zeros from there on, in its page */
	const struct elf_module *module;
};

/* Where the stub is put. */
struct stub_place {
	uint64_t code;        /* it, with struct stub_data behind it; 0: nowhere */
	uint64_t frame;       /* struct stub_frame; 0: nowhere, or the machine has none */
	uint64_t frame_bytes; /* that it may take there */
};

/*
 * The best cave of at least bytes, with a place for a frame of so many: -ENOSPC if there is none. Other modules of the
 * base namespace are taken only after those three, if they stay.
 */
int cave_find(struct stub_place *place, const struct modules *m, const struct target_memory *tm,
              const struct maps *maps, uint64_t bytes, uint64_t frame_bytes, struct err *e) WARN_UNUSED;
/* A place for the frame of a stub whose code is in a cave already. */
int cave_find_frame(struct stub_place *place, const struct modules *m, const struct target_memory *tm,
                    const struct maps *maps, uint64_t bytes, uint64_t frame_bytes, struct err *e) WARN_UNUSED;
/* Are all of these bytes unused ones where a frame may be, zero or not? */
bool cave_holds_frame(const struct modules *m, const struct target_memory *tm, const struct maps *maps,
                      uint64_t address, uint64_t bytes);

/*
 * The caves of one module: where its padding is, whether zero or not (a stub of an earlier session may be
 * there). False: none.
 */
bool cave_of_module(struct cave *cave, const struct elf_module *module, const struct target_memory *tm,
                    const struct maps *maps);
