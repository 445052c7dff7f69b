/* SPDX-License-Identifier: MIT */
/*
 * What is mapped where a GOT entry is, and what may be done to it. A program can tear at its libraries without the
 * loader: unmap a part, move it onto other memory, map a file over it, take away its protection, cut its file on disk.
 * So a GOT entry is touched only in private memory that can be read, and patched only where still the same is mapped as
 * when it was planned.
 */
#pragma once

#include <stddef.h>

#include "control.h"
#include "maps/maps.h"
#include "elf/modules.h"
#include "process/target_read.h"

/*
 * May the word be touched? planned: the mappings as they were when it was planned; NULL: it is to be given back, and a
 * private copy of the page in the same place is as good as the page.
 */
bool entry_place_is_there(const struct maps *now, const struct maps *planned, uint64_t address);

/* What a word holds that neither is patched nor got its old value back. */
enum got_found {
	GOT_FOUND_NOTHING,    /* it cannot be read: unmapped, or after the end of its file */
	GOT_FOUND_TRAMPOLINE, /* our trampoline: in memory that is not to be written to, or put back there since we
	                         looked */
	GOT_FOUND_ORIGINAL, /* the original, or in a module that was opened anew the way to it: the loader has bound it
	                     */
	GOT_FOUND_CODE,     /* other code: another tool's hook */
	GOT_FOUND_DATA,     /* something that is no code: other memory took the page's place */
};

/* trampolines: where they are mapped; original: what the GOT entry's trampoline leads to when it is inert. */
enum got_found entry_place_inspect(const struct got_entry *entry, uint64_t trampolines, uint64_t original,
                                   const struct modules *modules, const struct maps *maps,
                                   const struct target_memory *memory);

/*
 * Is this word of the module one that its loader fills with a listed function, and value no way to the loader? What is
 * there then and is no such function is a hook. (Another library in the same place has other words there.)
 */
bool entry_place_is_hooked(const struct elf_module *home, const struct target_memory *memory, uint64_t address,
                           uint64_t value);

/*
 * Does value lead to a lazy stub of the module? *number: of the relocation that it stands for. A lazy GOT entry points
 * after the jump of its own PLT entry (old PLT) or to its entry in .plt (IBT PLT): in both cases to `push $number`,
 * perhaps after a landing pad.
 */
bool entry_place_lazy_stub(const struct elf_module *home, const struct target_memory *memory, uint64_t value,
                           uint32_t *number);
