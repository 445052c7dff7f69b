/* SPDX-License-Identifier: MIT */
/*
 * The plan: which words of the target are to be patched, with which trampolines.
 *
 * A GOT entry is a word that the loader filled with the address of a listed function: by RELOCATION_JUMP_SLOT, GLOB_DAT
 * or RELOCATION_WORD. What it holds now is classified before it is trusted:
 *
 *   - a definition, the address of a dynamic symbol of that name: that is the original;
 *   - a lazy stub, the module's own PLT entry that pushes this relocation's number: resolved as the loader will;
 *   - a canonical stub, the PLT stub that stands for &function in a non-PIE program: what the program's own GOT entry
 *     leads to;
 *   - an ifunc's choice, in the module that defines the function as an ifunc: the value itself;
 *   - null, a weak reference to nothing: passed over;
 *   - in a word of writable data another function, of the module's own, or one that another module exports which calls
 *     listed functions. The program has put it there: passed over, what that calls is seen by GOT entries;
 *   - anything else, another tool's hook, or half-relocated: refused, named.
 *
 * A function that throws exceptions (operator new, but for its nothrow forms) is refused where the payload is not
 * loaded by dlopen (libc_loads_payload) and no quiet one is known (control.h): no unwinder could walk through its hook.
 * That concerns operator new of the program's own, and of few allocators; that of libstdc++ and libc++ calls malloc,
 * which is hooked.
 *
 * A GOT entry whose value the program may copy (code_scan.h) is never patched: its allocator is hooked at
 * the entries of its functions if that is possible (entry_hooks.h), and what is left of such entries is refused.
 *
 * Whether a function is hooked or left alone because it passes on to another listed function through a GOT entry of its
 * own module (operator new → malloc) is decided here, once for each definition: see struct entry_route.
 */
#pragma once

#include "control.h"
#include "dump/note_form.h"
#include "got/listed_hook.h"
#include "got/plan_notes.h"
#include "elf/libc.h"

#define GROUP_BIT(group) (1u << (group))

struct entry_plan {
	uint64_t address;
	uint64_t value;           /* what it holds now: struct got_entry.old_value */
	uint64_t original;        /* the function that it stands for */
	uint32_t hook;            /* enum hook_id */
	uint32_t module;          /* index in modules.list */
	uint32_t trampoline;      /* index in trampolines */
	bool escapes;             /* the program may copy its value */
	uint32_t page_protection; /* PROT_*, as in maps now */
	uint32_t relocation;      /* RELOCATION_* */
};

/* One definition that GOT entries lead to. */
struct entry_route {
	uint32_t hook;
	uint64_t original;
	uint32_t definer; /* module index, UINT32_MAX unknown */
	uint32_t entries; /* how many GOT entries lead to it */
	bool hooked;  /* false: it calls via (below) through a GOT entry of its module, and that is counted instead */
	uint32_t via; /* enum hook_id, if not hooked */
};

#define ENTRY_REFUSAL_WHY 160u

struct entry_refusal {
	uint32_t module;
	uint32_t hook;
	uint64_t address;
	uint64_t value;
	char text[NOTE_FORM_TEXT]; /* "libfoo.so: malloc not patched: holds 0x…, a hook of another tool in libbar.so" */
};

struct got_plan {
	struct entry_plan *entries; /* to patch, sorted by module, then address; each address once */
	size_t entry_count;
	struct control_trampoline *trampolines;
	size_t trampoline_count; /* <= TRAMPOLINE_MAX */
	struct entry_route *routes;
	size_t route_count;
	struct entry_refusal *refusals;
	size_t refusal_count;
	struct plan_note *notes; /* allocators that are not seen, and the like */
	size_t note_count;
	uint64_t text_bytes; /* code that was scanned */
};

struct got_plan_options {
	uint32_t groups; /* GROUP_BIT(GROUP_MALLOC) | … */
	/* When planning again for later modules: the trampolines in force keep their index; may be NULL, 0. */
	const struct control_trampoline *trampolines;
	size_t trampoline_count;
	/*
	 * GOT entries that hold a trampoline already, in any order; may be NULL, 0. They are not planned again, but
	 * routes follow them.
	 */
	const struct got_entry *patched;
	size_t patched_count;
	bool skip_notes; /* no search of .symtab for allocators that are linked in */
};

/*
 * Makes the plan. maps gives the page protections. Modules that cannot be read are noted, never an error. got_plan_free
 * afterwards. -E2BIG: more than TRAMPOLINE_MAX different functions or SESSION_ENTRY_MAX GOT entries; beyond the budget
 * (budget.h).
 */
int got_plan_make(struct got_plan *plans, const struct modules *m, const struct libc *libc,
                  const struct target_memory *memory, const struct maps *maps, const struct got_plan_options *options,
                  struct err *e) WARN_UNUSED;
/* Drops the entries of functions that throw whose trampolines have no quiet function, and names them. */
int got_plan_refuse_throwing(struct got_plan *plans, const struct modules *m, struct err *e) WARN_UNUSED;
/* And those whose value may be copied: of the rest none gives an address of ours away. */
int got_plan_refuse_escaping(struct got_plan *plans, const struct modules *m, struct err *e) WARN_UNUSED;
/* Takes the entries of a group in a module out of the plan. */
void got_plan_leave(struct got_plan *plan, uint32_t module, uint32_t group);
void got_plan_free(struct got_plan *plans);
