/* SPDX-License-Identifier: MIT */
#include "run/steps/java_session.h"

#include "host/clocks.h"
#include "java/java_proof.h"

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
	if (s->options.verbose && p.proved)
		session_say(s, "stacks go through Java code of %s %s in %s", java_machine_name(r.machine),
		            p.view.s.release, elf_module_name(r.module));
	else if (s->options.verbose)
		session_say(s, "stacks may end at Java code of %s in %s: %s", java_machine_name(r.machine),
		            elf_module_name(r.module), p.why);
	java_proof_done(&p);
}
