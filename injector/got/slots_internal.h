/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files that make the plan: slots.c collects, slot_resolve.c classifies, slot_routes.c decides,
 * slot_notes.c tells.
 */
#ifndef MEMATTACH_SLOTS_INTERNAL_H
#define MEMATTACH_SLOTS_INTERNAL_H

#include "code_scan.h"
#include "slots.h"

/* A slot whose value is understood. */
struct candidate {
	struct slot_plan plan;
	uint32_t definer;       /* module index, UINT32_MAX unknown */
	uint64_t definer_bytes; /* size of the definition's code, 0 unknown */
	bool patched;           /* holds a gate already */
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
	const struct slots_options *options;
	struct candidate *candidates; /* by module, then address */
	size_t count;
	struct module_work *work; /* m->count entries */
	struct slot_plans out;
	struct budget *budget;
	struct scope *scope;
	unsigned notes; /* lines in out.notes */
};

/* slots.c */
int plan_refuse(struct planner *p, uint32_t module, uint32_t hook, uint64_t address, uint64_t value, struct err *e,
                const char *format, ...) __attribute__((format(printf, 7, 8)));
int plan_note(struct planner *p, struct err *e, const char *format, ...) __attribute__((format(printf, 3, 4)));
struct module_file *plan_file(struct planner *p, uint32_t module);
void plan_close_file(struct planner *p, uint32_t module);
/* The scan of a module over its candidates, made at the first call; NULL if that failed. */
const struct code_scan *plan_scan(struct planner *p, uint32_t module);
/* The candidate at an address in a module, or NULL. */
struct candidate *plan_candidate(struct planner *p, uint32_t module, uint64_t address);

/* slot_resolve.c */
enum slot_verdict {
	VERDICT_GOOD,
	VERDICT_NOTHING, /* it stands for no listed function, by the program's own will */
	VERDICT_FOREIGN,
};
struct slot_question {
	uint32_t module;
	uint32_t symbol; /* number in the module's symbol table */
	uint32_t hook;
	uint64_t address; /* of the slot */
	uint64_t value;
	uint32_t relocation; /* R_X86_64_* */
	uint32_t number;     /* of the relocation in its table */
};
struct slot_answer {
	uint64_t original;
	uint32_t definer;
	uint64_t definer_bytes;
	char reason[128]; /* if foreign */
};
enum slot_verdict slot_resolve(const struct planner *p, const struct slot_question *q, struct slot_answer *a);

/* slot_routes.c: fills out.routes and marks candidates excluded. */
int plan_routes(struct planner *p, struct err *e) WARN_UNUSED;

/* slot_notes.c: allocators that are linked in. */
int plan_allocator_notes(struct planner *p, struct err *e) WARN_UNUSED;

#endif
