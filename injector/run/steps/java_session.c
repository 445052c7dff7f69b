/* SPDX-License-Identifier: MIT */
#include "run/steps/java_session.h"

#include "host/clocks.h"
#include "java/java_proof.h"
#include "session/java_names.h"

#define PROOF_NS 1000000000ull /* no further proof is begun after that */

/* A process that is busy may change under each look: then another moment is tried. */
static void prove(struct java_proof *p, const struct session *s, const struct java_runtime *r)
{
	const uint64_t until_ns = monotonic_ns() + PROOF_NS;

	java_prove(p, r, &s->view.maps, &s->memory, JAVA_LOOKS);
	while (!p->proved && !java_machine_refusal(r->machine) && monotonic_ns() < until_ns) {
		java_proof_done(p);
		java_prove(p, r, &s->view.maps, &s->memory, JAVA_LOOKS);
	}
}

void session_find_java(struct session *s)
{
	const struct java_runtime r = java_find(&s->view.modules);
	struct java_proof p;

	s->java = (struct java_layout){ 0 };
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
	java_proof_done(&p);
}

static void note(struct session *s, const char *text)
{
	struct err e;

	session_say(s, "not seen: %s", text);
	if (dump_writer_note(&s->recording.dump, DUMP_NOTE_OTHER, text, &e) < 0 && s->options.verbose)
		session_say(s, "memattach: %s", e.text);
}

static const char no_count[] =
	"names of Java methods that the interpreter runs: the JVM does not count the classes that it unloads "
	"(-XX:-UsePerfData), so none of them can be proved";

void session_name_java(struct session *s, bool last)
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
