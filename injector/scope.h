/* SPDX-License-Identifier: MIT */
/* Looking up a symbol from outside as the target's loader would. */
#ifndef MEMATTACH_SCOPE_H
#define MEMATTACH_SCOPE_H

#include "modules.h"

/*
 * Finds the definition that a reference in module from (NULL: the main program) is bound to: in the global
 * scope of its namespace (the first module and all that it needs, with preloaded libraries in their place),
 * then in the module itself and what it needs, then in the other modules of the namespace, as RTLD_GLOBAL
 * cannot be seen from outside. A DT_SYMBOLIC module looks into itself first. Returns the defining module, or
 * NULL; also if it would take more work than the budget (may be NULL) allows, which then knows of it.
 */
const struct elf_module *scope_find(const struct modules *m, const struct elf_module *from, const char *name,
                                    const char *version, struct elf_symbol *symbol, struct budget *budget);

#endif
