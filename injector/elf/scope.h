/* SPDX-License-Identifier: MIT */
/* Looking up a symbol from outside as the target's loader would. */
#pragma once

#include "elf/modules.h"

struct scope;

/* For many look-ups among modules, which must stay as they are. What they take is charged to the budget (may be NULL).
 * NULL: no memory. */
struct scope *scope_new(const struct modules *m, struct budget *budget);
void scope_free(struct scope *s);

/*
 * Finds the definition that a reference in module from (NULL: the main program) is bound to: in the global
 * scope of its namespace (the first module and all that it needs, with preloaded libraries in their place),
 * then in the module itself and what it needs, then in the other modules of the namespace, as RTLD_GLOBAL
 * cannot be seen from outside. A DT_SYMBOLIC module looks into itself first. Returns the defining module, or
 * NULL; also if it would take more work than the budget allows, which then knows of it.
 */
const struct elf_module *scope_find(struct scope *s, const struct elf_module *from, const char *name,
                                    const char *version, struct elf_symbol *symbol);

/*
 * Is it the program, a library that the program needs, directly or not, or one that is preloaded (LD_PRELOAD): before
 * the first that is needed? The loader unloads none of these. False also if the answer would take more work than the
 * budget allows.
 */
bool scope_stays(struct scope *s, const struct elf_module *module);
