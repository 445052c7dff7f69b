/* SPDX-License-Identifier: MIT */
#include "touch/patches/patches.h"

#include "touch/patches/detours.h"
#include "touch/patches/still_moment.h"
#include "host/watchdog.h"
#include "touch/patches/word_patches.h"

#define RESTORE_NS 10000000000ull /* nobody is stopped meanwhile but for the moments of the attempts */

struct patching {
	bool code; /* jumps of session.hooks are to be written */
	struct word_patches words;
	struct code_patches_result *result; /* of a restore */
};

/* The hook of the function that ends code objects, NULL: it is not hooked. */
static const struct entry_hook *counted_hook(const struct session *s)
{
	for (size_t i = 0; i < s->hooks.count; i++)
		if (s->hooks.list[i].hook == HOOK_python_code)
			return &s->hooks.list[i];
	return NULL;
}

/* Its jump is there. */
static int tell_counted(const struct session *s, struct err *e)
{
	const uint64_t at = s->payload.block.counted_function_address;
	const struct entry_hook *hook = counted_hook(s);
	struct counted_function f = { 0 };
	int rc = 0;

	if (!hook)
		return 0;
	f.pointer = s->python.code_end.word;
	f.function = s->python.code_end.function;
	rc = target_read_u64(&s->memory, hook->plan.write_at, &f.code, e);
	rc = rc ?: target_write(&s->writer, CHANGE_PAYLOAD, at, &f, sizeof f, e);
	f.jump = hook->plan.write_at;
	return rc == 0 ? target_write(&s->writer, CHANGE_PAYLOAD, at + offsetof(struct counted_function, jump), &f.jump,
	                              sizeof f.jump, e)
	               : rc;
}

static int tell_uncounted(const struct session *s, struct err *e)
{
	const uint64_t none = 0;

	return target_write(&s->writer, CHANGE_PAYLOAD,
	                    s->payload.block.counted_function_address + offsetof(struct counted_function, jump), &none,
	                    sizeof none, e);
}

static int write_all(struct session *s, void *context, struct err *e)
{
	struct patching *p = context;

	int rc = p->code ? code_patches_write(s, e) : 0;
	if (rc == 0 && p->code)
		rc = tell_counted(s, e);
	return rc == 0 && p->words.count ? word_patches_write(s, &p->words, e) : rc;
}

static int write_listed(struct session *s, struct patching *p, uint64_t deadline_ns, struct err *e)
{
	if (!p->code && !p->words.count)
		return 0;
	int rc = watchdog_check(e);
	rc = rc
	             ?: still_moment(s, p->code ? STILL_FOR_CODE : STILL_FOR_WORDS, deadline_ns,
	                             &s->outcome.attach_longest_ns, write_all, p, e);
	if (rc == 0)
		word_patches_count(s, &p->words);
	return rc;
}

int patches_write_words(struct session *s, uint64_t deadline_ns, struct err *e)
{
	struct patching p = { 0 };

	int rc = word_patches_list(s, &p.words, e);
	if (rc < 0)
		return rc;
	rc = write_listed(s, &p, deadline_ns, e);
	if (rc < 0)
		word_patches_withdraw(s, &p.words);
	word_patches_free(&p.words);
	return rc;
}

int patches_write(struct session *s, uint64_t deadline_ns, struct err *e)
{
	struct patching p = { .code = s->hooks.count };

	int rc = word_patches_list(s, &p.words, e);
	rc = rc ?: write_listed(s, &p, deadline_ns, e);
	if (rc == 0)
		s->outcome.functions_hooked = (unsigned)s->hooks.count;
	if (rc == 0)
		s->outcome.python.patched = s->python.functions.word_count;
	word_patches_free(&p.words);
	return rc;
}

void patches_adopt(struct session *s, bool recorded)
{
	struct detour_area areas[SESSION_DETOUR_AREAS];
	struct changes *c = &s->changes;

	if (!c->sums[CHANGE_PAYLOAD][CHANGE_MADE])
		changes_made(c, CHANGE_PAYLOAD);
	if (recorded && !c->sums[CHANGE_RECORDING][CHANGE_MADE])
		changes_made(c, CHANGE_RECORDING);
	for (unsigned found = detours_list(s, areas); recorded && found > c->sums[CHANGE_DETOURS][CHANGE_MADE];)
		changes_made(c, CHANGE_DETOURS);
}

/* All trampolines lead to their originals, where there are some. */
static int calm_trampolines(struct session *s, struct err *e)
{
	const struct memattach_session *b = &s->payload.block;
	const uint64_t shared = b->trampolines_address + TRAMPOLINES_CODE_BYTES, none = 0;
	const uint64_t at = trampoline_data(b->trampolines_address, 0);
	const uint32_t count = b->trampoline_count < TRAMPOLINE_MAX ? b->trampoline_count : TRAMPOLINE_MAX;
	struct trampoline list[TRAMPOLINE_MAX];

	int rc = target_write(&s->writer, CHANGE_RECORDING, shared + TRAMPOLINES_NEAR_OWNER, &none, sizeof none, e);
	if (rc == 0 && count)
		rc = target_read(&s->memory, at, list, count * sizeof *list, e);
	for (uint32_t i = 0; i < count; i++)
		list[i].next = list[i].original;
	return rc == 0 && count ? target_write(&s->writer, CHANGE_RECORDING, at, list, count * sizeof *list, e) : rc;
}

/* As SESSION_INERT says. */
static int make_inert(struct session *s, struct err *e)
{
	const uint64_t state_at = s->payload.session + offsetof(struct memattach_session, state);
	const uint32_t off = 0, inert = SESSION_INERT;

	int rc = target_write(&s->writer, CHANGE_PAYLOAD, s->payload.block.switch_address, &off, sizeof off, e);
	rc = rc ?: calm_trampolines(s, e);
	return rc == 0 ? target_write(&s->writer, CHANGE_PAYLOAD, state_at, &inert, sizeof inert, e) : rc;
}

static int restore_all(struct session *s, void *context, struct err *e)
{
	struct patching *p = context;

	int rc = tell_uncounted(s, e);
	rc = rc ?: code_patches_restore(s, p->result, e);
	rc = rc ?: word_patches_restore(s, &p->words, e);
	return rc == 0 ? make_inert(s, e) : rc;
}

int patches_restore(struct session *s, struct code_patches_result *result, struct err *e)
{
	struct patching p = { .result = result };

	*result = (struct code_patches_result){ 0 };
	int rc = code_patches_adopt(s, e);
	rc = rc ?: word_patches_read(s, &p.words, e);
	rc = rc
	             ?: still_moment(s, STILL_FOR_END, clock_monotonic_ns() + RESTORE_NS, &s->outcome.detach_longest_ns,
	                             restore_all, &p, e);
	if (rc == 0)
		code_patches_count(s, result);
	word_patches_free(&p.words);
	return rc;
}
