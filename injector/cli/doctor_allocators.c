/* SPDX-License-Identifier: MIT */
#include "cli/doctor_allocators.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "cli/doctor_fact.h"
#include "session/patched_words.h"
#include "run/steps/plan.h"

#define REFUSALS_TOLD 4u

void doctor_allocators_find(struct doctor_allocators *d, struct session *s)
{
	*d = (struct doctor_allocators){ 0 };
	d->result = plan_look(s, &d->found, &d->stored, &d->error);
}

void doctor_allocators_done(struct doctor_allocators *d)
{
	if (d->result == 0)
		allocators_free(&d->found);
}

static const struct elf_module *module_of(const struct session *s, const struct allocator *a)
{
	return &s->view.modules.list[a->module];
}

static bool is_called_inside(const struct allocator *a)
{
	return a->direct_calls || a->address_taken;
}

static void tell_callers(const struct allocator *a)
{
	if (a->got_entries)
		doctor_fact("", "  called through %u GOT entr%s of %u module%s", a->got_entries,
		            a->got_entries == 1 ? "y" : "ies", a->got_modules, plural(a->got_modules));
	if (a->direct_calls)
		doctor_fact("", "  called directly by its own module at %u place%s", a->direct_calls,
		            plural(a->direct_calls));
	if (a->address_taken)
		doctor_fact("", "  its own module takes addresses of its functions at %u place%s", a->address_taken,
		            plural(a->address_taken));
	if (!a->got_entries && !is_called_inside(a))
		doctor_fact("", "  no call of it was found");
}

static bool is_hooked(const struct doctor_allocators *d, const struct session *s, const struct allocator *a)
{
	return entry_hooks_cover(&s->hooks, d->found.functions[a->first].address);
}

static void tell_view(const struct doctor_allocators *d, const struct session *s, const struct allocator *a)
{
	if (is_hooked(d, s, a))
		doctor_fact("", "  its functions would be hooked at their entries: all calls are seen");
	else if (a->got_entries && is_called_inside(a))
		doctor_fact("",
		            "  GOT entries see the calls through them, not the direct ones; entry hooks would see all");
	else if (a->got_entries)
		doctor_fact("",
		            "  GOT entries see these calls; entry hooks would also see those through other pointers");
	else if (is_called_inside(a))
		doctor_fact("", "  GOT entries see nothing of it; entry hooks would see all calls");
}

static void tell_entries(const struct allocators *found, const struct allocator *a)
{
	size_t all, several = 0, keeping = 0, told = 0;
	size_t good = allocator_hookable(found, a, &all);

	for (size_t i = a->first; i < a->first + a->count; i++) {
		const struct allocator_function *fn = &found->functions[i];
		several += fn->layer != LAYER_WRAPPER && !fn->entry_refusal[0] && fn->entry.kind == ENTRY_SEVERAL;
		keeping += fn->layer != LAYER_WRAPPER && !fn->entry_refusal[0] && !fn->uses_all;
	}
	doctor_fact(
		"",
		"  entry hooks are possible for %zu of %zu functions, for %zu of them only while no thread is in the "
		"entry",
		good, all, several);
	if (keeping)
		doctor_fact(
			"",
			"  %zu of them would keep all registers, which costs a little: callers of such a function may "
			"rely on "
			"them",
			keeping);
	for (size_t i = a->first; i < a->first + a->count; i++) {
		const struct allocator_function *fn = &found->functions[i];
		if (fn->layer != LAYER_WRAPPER && fn->entry_refusal[0] && told++ < REFUSALS_TOLD)
			doctor_fact("", "    not for %s: %s", fn->name, fn->entry_refusal);
	}
}

/* No function was found in the program itself, and it is called by no name that would tell of one. */
static void tell_program(const struct allocators *found, const struct session *s)
{
	const struct elf_module *program = modules_main(&s->view.modules);
	bool has_entries = false;

	for (size_t i = 0; program && i < s->view.plan.entry_count; i++)
		has_entries |= &s->view.modules.list[s->view.plan.entries[i].module] == program;
	for (size_t i = 0; i < found->count; i++)
		if (module_of(s, &found->list[i]) == program)
			return;
	if (!program || found->program_has_names)
		return;
	if (found->program_text)
		doctor_fact("", "%s has messages of %s in it, but no symbols that tell where its functions are",
		            elf_module_name(program), found->program_text->name);
	else if (!has_entries)
		doctor_fact("", "%s is stripped and calls no allocation function through a GOT entry",
		            elf_module_name(program));
	else
		return;
	doctor_fact("", "  an allocator of its own cannot be found without debug symbols of the program");
}

void doctor_allocators_tell(const struct doctor_allocators *d, const struct session *s)
{
	const struct allocators *found = &d->found;

	if (d->result) {
		doctor_fact("allocators", "not searched: %s", d->error.text);
		return;
	}
	for (size_t i = 0; i < found->count; i++) {
		const struct allocator *a = &found->list[i];
		doctor_fact(i ? "" : "allocators", "%s%s%s in %s%s%s", a->name, a->version[0] ? " " : "", a->version,
		            module_of(s, a)->is_main ? "the program " : "", elf_module_name(module_of(s, a)),
		            a->in_force ? ", the one in force" : "");
		tell_callers(a);
		tell_view(d, s, a);
		if (a->got_entries || is_called_inside(a))
			tell_entries(found, a);
	}
	if (!found->count)
		doctor_fact("allocators", "none was found");
	tell_program(found, s);
}

void doctor_allocators_tell_hooks(const struct doctor_allocators *d, const struct session *s)
{
	char python[PATCHED_WORDS_TEXT];
	size_t entries = s->view.plan.entry_count;

	if (d->result)
		return;
	patched_words_of_python(python, ", and ", s->python.functions.word_count);
	if (s->hooks.count)
		doctor_fact("hooks", "%zu functions of %s at their entries, and %zu GOT entries%s", s->hooks.count,
		            s->hooks.text, entries, python);
	else
		doctor_fact("hooks", "%zu GOT entries%s; no code is changed", entries, python);
	if (d->stored.function)
		doctor_fact("", "the program has stored a pointer to an allocation function, at 0x%llx",
		            (unsigned long long)d->stored.at);
}

void doctor_allocators_details(const struct doctor_allocators *d, const struct session *s)
{
	static const char *const layers[] = { "unknown", "lowest", "wrapper", "mixed" };

	doctor_fact_heading(
		"allocation functions: address, size, name, layer, GOT entries, direct calls, addresses taken, entry "
		"hook");
	for (size_t i = 0; d->result == 0 && i < d->found.function_count; i++) {
		const struct allocator_function *fn = &d->found.functions[i];
		char hook[96];

		if (fn->entry_refusal[0])
			snprintf(hook, sizeof hook, "none: %s", fn->entry_refusal);
		else
			snprintf(hook, sizeof hook, "%s jump for %u instruction%s of %u bytes at +%u%s",
			         fn->entry.island ? "short" : "long", fn->entry.displaced_count,
			         plural(fn->entry.displaced_count), fn->entry.displaced_bytes,
			         (unsigned)(fn->entry.write_at - fn->address),
			         fn->entry.crosses_line   ? ", crosses a cache line"
			         : fn->entry.crosses_word ? ", crosses a word"
			                                  : "");
		doctor_fact("", "%012" PRIx64 " %5" PRIu64 " %-35s %-7s %3u %5u %3u %s, %s", fn->address, fn->bytes,
		            fn->name, layers[fn->layer], fn->got_entries, fn->direct_calls, fn->address_taken, hook,
		            elf_module_name(&s->view.modules.list[fn->module]));
	}
}

/* The plan has a line of its own for modules that contain an allocator which no GOT entry leads to. */
static bool is_noted(const struct session *s, const struct elf_module *m)
{
	for (size_t i = 0; i < s->view.plan.note_count; i++)
		if (s->view.plan.notes[i].kind == NOTE_CONTAINS &&
		    &s->view.modules.list[s->view.plan.notes[i].module] == m)
			return true;
	return false;
}

bool doctor_allocators_tell_uncovered(const struct doctor_allocators *d, const struct session *s)
{
	const struct known_allocator *text = d->result ? NULL : d->found.program_text;
	bool any = text != NULL || d->result != 0;

	if (d->result)
		doctor_fact("not covered", "calls of allocators by their own modules: these were not searched");
	if (text)
		doctor_fact("not covered", "what %s allocates by %s, if it does: its functions are not known",
		            elf_module_name(modules_main(&s->view.modules)), text->name);
	for (size_t i = 0; d->result == 0 && i < d->found.count; i++) {
		const struct allocator *a = &d->found.list[i];
		if (!is_called_inside(a) || is_hooked(d, s, a) || is_noted(s, module_of(s, a)))
			continue;
		any = true;
		if (a->direct_calls)
			doctor_fact("not covered", "calls of %s by %s itself, at %u place%s", a->name,
			            elf_module_name(module_of(s, a)), a->direct_calls, plural(a->direct_calls));
		else
			doctor_fact("not covered", "calls of %s through pointers that %s takes itself, at %u place%s",
			            a->name, elf_module_name(module_of(s, a)), a->address_taken,
			            plural(a->address_taken));
	}
	return any;
}
