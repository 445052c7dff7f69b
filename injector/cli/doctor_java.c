/* SPDX-License-Identifier: MIT */
#include "cli/doctor_java.h"

#include <inttypes.h>

#include "base/plural.h"
#include "cli/doctor_fact.h"
#include "java/java_proof.h"
#include "java/java_unloads.h"

static void tell_proof(const struct java_proof *p)
{
	if (!p->proved) {
		doctor_fact("", "  Java frames cannot be read: %s", p->why);
		return;
	}
	doctor_fact("",
	            "  Java frames can be read: %" PRIu64 " frame%s of %u thread%s, and %" PRIu64
	            " place%s in %u compiled method%s, were as expected",
	            p->frames, plural(p->frames), p->walked, plural(p->walked), p->points, plural(p->points), p->codes,
	            plural(p->codes));
	if (p->running)
		doctor_fact("", "  %u more thread%s: they run Java code now, or have none", p->running,
		            plural(p->running));
	if (p->moved)
		doctor_fact("", "  %u more thread%s changed under each look", p->moved, plural(p->moved));
}

static void tell_frame(const struct shown_frame *f)
{
	if (f->native)
		doctor_fact("", "    %s (native)", f->function);
	else if (!f->file[0])
		doctor_fact("", "    %s", f->function);
	else if (f->line == JAVA_NO_LINE)
		doctor_fact("", "    %s (%s)", f->function, f->file);
	else
		doctor_fact("", "    %s (%s:%d)", f->function, f->file, f->line);
}

static void tell_stack(const struct java_stack *s)
{
	if (s->moved)
		doctor_fact("", "  thread %d: it changed under each look", s->thread.tid);
	else if (s->running)
		doctor_fact("", "  thread %d: it runs Java code now, or has none", s->thread.tid);
	else
		doctor_fact("", "  thread %d, %u frame%s%s", s->thread.tid, s->frames, plural(s->frames),
		            s->end.truncated ? " and more"
		            : s->end.on_heap ? ", their callers are on the Java heap"
		                             : "");
	for (uint32_t i = 0; i < s->place_count; i++)
		tell_frame(&s->places[i]);
	if (s->frames > s->place_count)
		doctor_fact("", "    and %u more", s->frames - s->place_count);
}

/* Which of the frames of a session would have names. */
static void tell_names(struct java_proof *p, const struct session *s)
{
	struct budget budget;
	uint64_t counter;
	struct err e;

	budget_start(&budget, JAVA_PROOF_BYTES, JAVA_PROOF_WORK);
	p->view.memory = target_memory_charged(&s->memory, &budget);
	if (java_unloads_find(&p->view, &counter, &e) == -ENOENT)
		doctor_fact("", "  methods that the interpreter runs will have no names: %s", e.text);
	p->view.memory.budget = NULL;
}

void doctor_java(const struct session *s)
{
	const struct java_runtime r = java_find(&s->view.modules);
	struct java_proof p;

	if (r.machine == JAVA_NONE)
		return;
	java_proof_make(&p, &r, &s->view.maps, &s->memory, JAVA_LOOKS);
	doctor_fact("java", "%s%s%s in %s", java_machine_name(r.machine), p.view.s.release[0] ? " " : "",
	            p.view.s.release, elf_module_name(r.module));
	tell_proof(&p);
	if (p.proved)
		tell_names(&p, s);
	for (size_t i = 0; i < p.stack_count && s->options.verbose && p.proved; i++)
		tell_stack(&p.stacks[i]);
	java_proof_done(&p);
}
