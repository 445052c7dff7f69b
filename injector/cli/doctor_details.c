/* SPDX-License-Identifier: MIT */
#include "cli/doctor_details.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "touch/remote/cave.h"
#include "cli/doctor_fact.h"
#include "got/listed_hook.h"
#include "host/say.h"
#include "base/size.h"

#define INDENT "  "

static __attribute__((format(printf, 1, 2))) void line(const char *format, ...)
{
	va_list ap;

	fputs(INDENT, stdout);
	va_start(ap, format);
	say_line(stdout, sizeof INDENT - 1, format, ap);
	va_end(ap);
}

static const char *role_of(const struct elf_module *m)
{
	return m->is_main ? " (the program)" : m->is_loader ? " (the loader)" : m->is_vdso ? " (the vdso)" : "";
}

static void tell_modules(const struct session *s)
{
	doctor_fact_heading("modules: id, link-map namespace, address, load bias, code, symbols, padding");
	for (size_t i = 0; i < s->view.modules.count; i++) {
		const struct elf_module *m = &s->view.modules.list[i];
		struct cave cave = { 0 };

		cave_of_module(&cave, m, &s->memory, &s->view.maps);
		line("%3u %u %012" PRIx64 "-%012" PRIx64 " %012" PRIx64 " %012" PRIx64 "-%012" PRIx64 " %6zu %4" PRIu64
		     " %s%s",
		     m->id, m->namespace_id, m->start, m->end, m->bias, m->exec_start, m->exec_end, m->symbol_count,
		     cave.bytes, m->path, role_of(m));
	}
}

static void tell_functions(const struct session *s)
{
	const struct libc *l = &s->view.libc;

	doctor_fact_heading("functions that memattach calls");
	line("%-20s %012" PRIx64 " in %s", "dlopen", l->dlopen, elf_module_name(l->module));
	line("%-20s %012" PRIx64, "dlclose", l->dlclose);
	line("%-20s %012" PRIx64, "dlerror", l->dlerror);
	line("%-20s %012" PRIx64, "__errno_location", l->errno_location);
	if (l->usable_size)
		line("%-20s %012" PRIx64 " in %s", "malloc_usable_size", l->usable_size, elf_module_name(l->allocator));
}

static void tell_originals(const struct session *s)
{
	doctor_fact_heading("originals: function, address, module, GOT entries that lead there, what is done");
	for (size_t i = 0; i < s->view.plan.route_count; i++) {
		const struct entry_route *r = &s->view.plan.routes[i];
		const char *definer = r->definer < s->view.modules.count
		                              ? elf_module_name(&s->view.modules.list[r->definer])
		                              : "unknown";

		bool at_entry = entry_hooks_cover(&s->hooks, r->original), hooked = r->hooked || at_entry;
		line("%-20s %012" PRIx64 " %-24s %5u %s%s", listed_hook_symbol(r->hook), r->original, definer,
		     r->entries,
		     at_entry ? "hooked at its entry"
		     : hooked ? "hooked"
		              : "not hooked: it calls ",
		     hooked ? "" : listed_hook_symbol(r->via));
	}
}

static const char *relocation_name(uint32_t type)
{
	return type == RELOCATION_JUMP_SLOT ? "JUMP_SLOT" : type == RELOCATION_GLOB_DAT ? "GLOB_DAT" : "64";
}

static void tell_entries(const struct session *s)
{
	doctor_fact_heading("GOT entries: address, relocation, function, value, original, trampoline, page, module");
	for (size_t i = 0; i < s->view.plan.entry_count; i++) {
		const struct entry_plan *p = &s->view.plan.entries[i];

		line("%012" PRIx64 " %-9s %-20s %012" PRIx64 " %012" PRIx64 " %3u %s %s%s", p->address,
		     relocation_name(p->relocation), listed_hook_symbol(p->hook), p->value, p->original, p->trampoline,
		     p->page_protection & PROT_WRITE ? "rw" : "r-", elf_module_name(&s->view.modules.list[p->module]),
		     p->escapes ? ", may be copied" : "");
	}
}

static void tell_python_words(const struct session *s)
{
	const struct session_python_functions *f = &s->python.functions;

	if (!f->word_count)
		return;
	doctor_fact_heading("words of CPython: address, value, other address of the same function");
	for (unsigned i = 0; i < f->word_count; i++)
		line("%012" PRIx64 " %012" PRIx64 " %012" PRIx64, f->words[i].address, f->words[i].value,
		     f->words[i].alias);
}

/* How many an attach would make, as far as is known before it. */
static size_t changes_planned(const struct session *s, enum change_kind kind)
{
	size_t islands = 0;

	for (size_t i = 0; i < s->hooks.count; i++)
		islands += s->hooks.list[i].plan.island != 0;
	switch (kind) {
	case CHANGE_GOT_ENTRY: return s->view.plan.entry_count;
	case CHANGE_JUMP: return s->hooks.count;
	case CHANGE_ISLAND: return islands;
	case CHANGE_PYTHON_WORD: return s->python.functions.word_count;
	case CHANGE_CODE_PAGES:
	case CHANGE_DETOURS: return s->hooks.count != 0;
	case CHANGE_LINK_NAME: return libc_loads_payload(&s->view.libc);
	case CHANGE_HOLD_CODE:
	case CHANGE_HOLD_LEAD: return 0; /* of a program that is running */
	default: return 1;
	}
}

static void tell_changes(const struct session *s)
{
	doctor_fact_heading("changes of an attach: how many, when they are undone, and how if memattach is dead");
	for (unsigned kind = 0; kind < CHANGE_KINDS; kind++) {
		const size_t count = changes_planned(s, kind);
		if (count)
			line("%5zu %s: %s; dead: %s", count, change_what(kind), change_undone(kind), change_dead(kind));
	}
}

static const char *const kinds[] = { "none",   "sp",          "fp",        "*sp",       "*sp+8",     "*fp",      "end",
	                             "signal", "unsupported", "sp (pair)", "fp (pair)", "sp (link)", "fp (link)" };
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

/* The rows of a module that the index in force has, not to be freed. */
static struct unwind_rows rows_of(const struct session *s, uint32_t id)
{
	const struct unwind_index *index =
		(const void *)(s->recording.tables.bytes + s->recording.tables.header->index_offset);
	const struct unwind_module *m = (const void *)(index + 1);
	struct unwind_rows rows = { 0 };

	for (uint32_t i = 0; i < index->module_count && s->recording.tables.generation && id; i++) {
		if (m[i].id != id || !m[i].row_count)
			continue;
		rows.pc = (void *)(s->recording.tables.bytes + m[i].rows_offset);
		rows.rule = rows.pc + m[i].row_count;
		rows.count = m[i].row_count;
	}
	return rows;
}

/* "96.0 %: sp 90.1, fp 5.9": of code_bytes, what has a rule, and which register the rule starts from. */
static void coverage_text(char *text, size_t size, const struct unwind_rows *rows, uint64_t code_bytes)
{
	uint64_t bytes[16], ruled = 0;

	unwind_rows_census(rows, (uint32_t)code_bytes, bytes);
	for (unsigned k = 1; k < KIND_COUNT; k++)
		ruled += bytes[k] * (k != UNWIND_UNSUPPORTED);
	int n = snprintf(text, size, "%5.1f %% has a rule", 100 * (double)ruled / (double)code_bytes);
	for (unsigned k = 1; k < KIND_COUNT && n > 0 && (size_t)n < size; k++)
		if (bytes[k])
			n += snprintf(text + n, size - (size_t)n, ", %s %.1f", kinds[k],
			              100 * (double)bytes[k] / (double)code_bytes);
}

static void tell_unwinding(const struct session *s)
{
	doctor_fact_heading(
		"unwind tables: module, rows, size of the code, how much of it has a rule, and by which register");
	for (size_t i = 0; i < s->view.modules.count; i++) {
		const struct elf_module *m = &s->view.modules.list[i];
		uint64_t code_bytes = m->exec_end - m->exec_start;
		struct unwind_rows rows = rows_of(s, m->id);
		char text[200] = "", bytes[SIZE_TEXT];

		if (!code_bytes)
			continue;
		if (rows.count)
			coverage_text(text, sizeof text, &rows, code_bytes);
		line("%-32s %8u %8s %s%s", elf_module_name(m), rows.count, size_format((double)code_bytes, bytes), text,
		     rows.count ? "" : s->view.coverage[i].text);
	}
}

void doctor_details(const struct session *s)
{
	tell_modules(s);
	tell_functions(s);
	tell_originals(s);
	tell_entries(s);
	tell_python_words(s);
	tell_changes(s);
	tell_unwinding(s);
	puts("");
}
