/* SPDX-License-Identifier: MIT */
/*
 * The modules of the target, as its loader knows them: the program, its libraries in all link-map namespaces,
 * the loader and the vdso. Found without its help: AT_PHDR in /proc/PID/auxv → PT_DYNAMIC → DT_DEBUG → struct
 * r_debug → link maps, each one checked against /proc/PID/maps.
 */
#pragma once

#include "elf/elf_module.h"

#define MODULES_MAX 16384u /* link maps; more is taken for a damaged list */

struct modules {
	struct elf_module *list; /* order of the link maps: base namespace first (main program first), then the others,
	                            then the vdso, then a payload that memattach has mapped by itself */
	size_t count;
	bool is_static;  /* a program without a loader: it is alone on the list, but for the vdso and a payload */
	bool consistent; /* every r_state was RT_CONSISTENT when it was read: no dlopen/dlclose under way */
	char *unread;    /* sentences, one per line, on modules on the list that could not be read; "" none */
	char *broken; /* name of a module whose names the loader itself could not read: dlopen would crash; NULL none */
	struct modules_watch *watch;
};

/*
 * Enumerates. maps must be fresh: read it again for each try. -ENOEXEC: not a 64-bit program of this machine (the text
 * says 32-bit or x32); -EAGAIN: the list changed under our hands or since maps was read, or is not set up yet (early in
 * exec): try again. consistent == false is not an error: do not patch then, try again. -E2BIG: beyond the budget
 * (budget.h). modules_free afterwards; on failure *m is untouched.
 */
int modules_read(struct modules *m, const struct target_memory *memory, const struct maps *maps,
                 struct err *e) WARN_UNUSED;
void modules_free(struct modules *m);

/*
 * Has the list changed since modules_read? One or two system calls, about 10 µs for 30 modules: fit to be
 * called 10 times a second. *consistent tells r_state now (may be NULL). Sees also changes of the words given
 * to modules_watch_word.
 */
int modules_changed(const struct modules *m, const struct target_memory *tm, bool *changed, bool *consistent,
                    struct err *e) WARN_UNUSED;

/*
 * A library that is closed and opened again at the same place between two looks leaves the list as it was,
 * but its GOT entries are fresh. So give one patched GOT entry per module here: modules_changed also compares the word
 * at address with value.
 */
int modules_watch_word(struct modules *m, uint64_t address, uint64_t value, struct err *e) WARN_UNUSED;

/* The module whose segments hold address (whose executable segments, if exec), or NULL. */
struct elf_module *modules_find(const struct modules *m, uint64_t address, bool exec);
const struct elf_module *modules_main(const struct modules *m);
/* The module that has this id, or NULL; 0 is no module's. */
const struct elf_module *modules_with_id(const struct modules *m, uint32_t id);
const struct elf_module *modules_loader(const struct modules *m); /* NULL if not seen */

/* The same image in the same place: link map, bias, path, inode and build-id are equal. */
bool elf_module_same(const struct elf_module *a, const struct elf_module *b);

/*
 * Gives ids: a module that is elf_module_same as one of old (may be NULL) keeps its id, others get *next_id,
 * counted up. Beyond 65535, on aarch64 32767, the id is 0 (unknown module).
 */
void modules_number(struct modules *m, const struct modules *old, uint32_t *next_id);
