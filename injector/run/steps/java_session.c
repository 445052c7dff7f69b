/* SPDX-License-Identifier: MIT */
#include "run/steps/java_session.h"

#include <stdio.h>

#include "host/clocks.h"
#include "java/java_proof.h"
#include "process/live_thread.h"
#include "session/java_names.h"
#include "session/record.h"
#include "touch/patches/late_layout.h"

#define PROOF_NS 1000000000ull /* no further proof is begun after that */
#define AWAIT_NS 200000000ull  /* from one proof that fails to the next */
#define AWAIT_MAX_NS 30000000000ull

/* A process that is busy may change under each look: then another moment is tried. */
static void prove(struct java_proof *p, const struct session *s, const struct java_runtime *r)
{
	const uint64_t until_ns = clock_monotonic_ns() + PROOF_NS;

	java_proof_make(p, r, &s->view.maps, &s->memory, JAVA_LOOKS);
	while (!p->proved && !java_machine_refusal(r->machine) && clock_monotonic_ns() < until_ns) {
		java_proof_done(p);
		java_proof_make(p, r, &s->view.maps, &s->memory, JAVA_LOOKS);
	}
}

/* Each time a little later. */
static void await(struct session *s)
{
	uint64_t *wait_ns = &s->java_awaited.wait_ns;

	*wait_ns = *wait_ns < AWAIT_NS ? AWAIT_NS : *wait_ns + *wait_ns / 2;
	*wait_ns = *wait_ns < AWAIT_MAX_NS ? *wait_ns : AWAIT_MAX_NS;
	s->java_awaited.next_ns = clock_monotonic_ns() + *wait_ns;
}

void java_session_find(struct session *s)
{
	const struct java_runtime r = java_find(&s->view.modules);
	struct java_proof p;

	s->java = (struct java_layout){ 0 };
	s->java_awaited.modules = s->view.next_module_id;
	s->java_awaited.next_ns = 0;
	if (r.machine == JAVA_NONE)
		return;
	prove(&p, s, &r);
	s->java = p.layout;
	s->java_names = p.layout.bytes ? java_names_new(&p.view, &s->memory, s->options.max_bytes) : NULL;
	if (!s->java_names) /* its frames would be recorded, and none of them known */
		s->java.bytes = 0;
	if (s->options.verbose && p.proved)
		session_say(s, "stacks go through Java code of %s %s in %s", java_machine_name(r.machine),
		            p.view.s.release, elf_module_name(r.module));
	else if (s->options.verbose)
		session_say(s, "stacks may end at Java code of %s in %s: %s", java_machine_name(r.machine),
		            elf_module_name(r.module), p.why);
	if (!p.proved && !java_machine_refusal(r.machine))
		await(s);
	java_proof_done(&p);
}

/* False: there is none to be tried now. */
static bool is_awaited(struct session *s, struct java_runtime *r)
{
	const bool came = s->java_awaited.modules != s->view.next_module_id;

	if (s->java_names || (!came && (!s->java_awaited.next_ns || clock_monotonic_ns() < s->java_awaited.next_ns)))
		return false;
	*r = java_find(&s->view.modules);
	s->java_awaited.modules = s->view.next_module_id;
	s->java_awaited.next_ns = 0;
	return r->machine != JAVA_NONE && !java_machine_refusal(r->machine) && late_layout_is_same_program(s);
}

static void begin(struct session *s, const struct java_proof *p, const struct java_runtime *r)
{
	const double since = (double)(clock_monotonic_ns() - s->recording.started_ns) / 1e9;
	struct java_names *names = java_names_new(&p->view, &s->memory, s->options.max_bytes);
	char text[300];
	struct err e;

	if (!names)
		return;
	int rc = late_layout_java(s, &p->layout, p->view.s.version, &e);
	if (rc < 0 && late_layout_is_same_program(s))
		session_say(s, "memattach: Java frames are not recorded: %s", e.text);
	if (rc < 0) {
		java_names_free(names);
		return;
	}
	s->java = p->layout;
	s->java_names = names;
	snprintf(text, sizeof text, "Java frames of %s %s in %s are recorded from %.2f s after the attach on",
	         java_machine_name(r->machine), p->view.s.release, elf_module_name(r->module), since);
	session_say(s, "%s", text);
	if (dump_writer_note(&s->recording.dump, DUMP_NOTE_OTHER, text, &e) < 0)
		session_say(s, "memattach: %s", e.text);
}

void java_session_await(struct session *s)
{
	struct java_runtime r;
	struct java_proof p;
	struct maps maps;

	if (!is_awaited(s, &r) || live_thread_maps(&s->target, &maps, ERR_IGNORED) < 0)
		return;
	java_proof_make(&p, &r, &maps, &s->memory, 1);
	if (p.proved)
		begin(s, &p, &r);
	else
		await(s);
	java_proof_done(&p);
	maps_free(&maps);
}

static void note(struct session *s, const char *text)
{
	struct err e;

	if (record_unseen(s, DUMP_NOTE_OTHER, text, &e) < 0 && s->options.verbose)
		session_say(s, "memattach: %s", e.text);
}

static const char no_count[] =
	"names of Java methods that the interpreter runs: the JVM does not count the classes that it unloads "
	"(-XX:-UsePerfData), so none of them can be proved";

void java_session_name(struct session *s, bool last)
{
	struct java_names *n = s->java_names;

	if (!n)
		return;
	if (!n->polls && !n->counter)
		note(s, no_count);
	const bool before = n->no_room != 0;
	java_names_poll(n, &s->recording.dump, &s->memory, last);
	if (n->no_room && !before)
		note(s, "the names of some Java methods: there is no room for more of them");
	if (last && s->options.verbose)
		session_say(s, "Java: %u places in code were named, %u were gone before that", n->named, n->gone);
}

void java_session_end(struct session *s)
{
	if (s->java_names && java_names_ended(s->java_names, &s->recording.dump))
		note(s, "names of Java methods that the interpreter ran: memattach had not looked at them for a second "
		        "as the "
		        "JVM ended, and they may have been unloaded meanwhile");
}
