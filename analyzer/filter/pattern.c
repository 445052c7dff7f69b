/* SPDX-License-Identifier: MIT */
#include "filter/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A byte of a name may cost a state of an automaton, which takes up to some KiB. */
#define COMPILED_BYTES (64u << 10)

static bool has_back_reference(const char *text)
{
	for (const char *s = text; (s = strchr(s, '\\')); s += s[1] ? 2 : 1)
		if (s[1] >= '1' && s[1] <= '9')
			return true;
	return false;
}

static int compile(regex_t *compiled, const char *text, struct err *e)
{
	int r = regcomp(compiled, text, REG_EXTENDED | REG_NOSUB);
	char reason[200];

	if (!r)
		return 0;
	regerror(r, compiled, reason, sizeof reason);
	return err_set(e, r == REG_ESPACE ? ENOMEM : EINVAL, "%s", reason);
}

int pattern_init(struct pattern *p, const char *text, struct err *e)
{
	regex_t alone;

	*p = (struct pattern){ 0 };
	if (!text)
		return 0;
	if (!text[0])
		return err_set(e, EINVAL, "it is empty");
	if (has_back_reference(text))
		return err_set(e, EINVAL, "back-references are not supported");
	int r = compile(&alone, text, e); /* by itself: a(b)c( must not become sound by what is put around it */
	if (r)
		return r;
	regfree(&alone);
	if (asprintf(&p->text, "^.*(%s)", text) < 0) {
		p->text = NULL;
		return err_set(e, ENOMEM, "out of memory");
	}
	r = compile(&p->compiled, p->text, e);
	if (r) {
		free(p->text);
		p->text = NULL;
	}
	return r;
}

static void compile_again(struct pattern *p)
{
	regfree(&p->compiled);
	p->looked_at = 0;
	p->failed = compile(&p->compiled, p->text, ERR_IGNORED) != 0;
}

bool pattern_matches(struct pattern *p, const char *name)
{
	if (!p->text || p->failed || !name)
		return false;
	size_t length = strnlen(name, PATTERN_NAME_MAX);
	regmatch_t part = { .rm_so = 0, .rm_eo = (regoff_t)length };
	if (p->looked_at > COMPILED_BYTES)
		compile_again(p);
	if (p->failed)
		return false;
	p->looked_at += length;
	int r = regexec(&p->compiled, name, 1, &part, REG_STARTEND);
	if (r == REG_ESPACE) {
		regfree(&p->compiled);
		p->failed = true;
	}
	return !r;
}

void pattern_done(struct pattern *p)
{
	if (p->text && !p->failed)
		regfree(&p->compiled);
	free(p->text);
	*p = (struct pattern){ 0 };
}
