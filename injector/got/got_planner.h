/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files that make the plan: got_plan.c collects, entry_resolve.c classifies, entry_routes.c decides,
 * allocator_notes.c tells.
 */
#pragma once

#include "arch/code_scan.h"
#include "got/got_plan.h"

/* A GOT entry whose value is understood. */
struct candidate {
	struct entry_plan plan;
	uint32_t definer;       /* module index, UINT32_MAX unknown */
	uint64_t definer_bytes; /* size of the definition's code, 0 unknown */
	bool patched;           /* holds a trampoline already */
	bool excluded;          /* not to be patched: the allocator itself calls through it */
};

/* A module on the way through the plan. */
struct module_work {
	struct module_file file;
	struct code_scan scan;
	bool opened, scanned, scan_failed;
};

struct planner {
	const struct modules *m;
	const struct libc *libc;
	const struct target_memory *tm;
	const struct maps *maps;
	const struct got_plan_options *options;
	struct candidate *candidates; /* by module, then address */
	size_t count;
	struct module_work *work; /* m->count entries */
	struct got_plan out;
	struct budget *budget;
	struct scope *scope;
};

/* got_plan.c */
int planner_refuse(struct planner *p, const struct entry_plan *entry, struct err *e, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int planner_note(struct planner *p, const struct plan_note *note, struct err *e) WARN_UNUSED;
struct module_file *planner_file(struct planner *p, uint32_t module);
void planner_close_file(struct planner *p, uint32_t module);
/* The scan of a module over its candidates, made at the first call; NULL if that failed. */
const struct code_scan *planner_scan(struct planner *p, uint32_t module);
/* The candidate at an address in a module, or NULL. */
struct candidate *planner_candidate(struct planner *p, uint32_t module, uint64_t address);

/* entry_resolve.c */
enum entry_verdict {
	VERDICT_GOOD,
	VERDICT_NOTHING, /* it stands for no listed function, by the program's own will */
	VERDICT_FOREIGN,
};
struct entry_question {
	uint32_t module;
	uint32_t symbol; /* number in the module's symbol table */
	uint32_t hook;
	uint64_t address; /* of the GOT entry */
	uint64_t value;
	uint32_t relocation; /* RELOCATION_* */
	uint32_t number;     /* of the relocation in its table */
};
struct entry_answer {
	uint64_t original;
	uint32_t definer;
	uint64_t definer_bytes;
	char reason[128]; /* if foreign */
};
enum entry_verdict planner_resolve_entry(const struct planner *p, const struct entry_question *q,
                                         struct entry_answer *a);

/* entry_routes.c: fills out.routes and marks candidates excluded. */
int planner_routes(struct planner *p, struct err *e) WARN_UNUSED;

/* allocator_notes.c: allocators that are linked in. */
int planner_allocator_notes(struct planner *p, struct err *e) WARN_UNUSED;
