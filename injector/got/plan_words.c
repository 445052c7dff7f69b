/* SPDX-License-Identifier: MIT */
#include "plan_words.h"

#include <stdlib.h>

#include "hook_names.h"

static uint32_t find_trampoline(const struct got_plan *plan, const struct entry_plan *word)
{
	for (uint32_t i = TRAMPOLINE_FIRST; i < plan->trampoline_count; i++)
		if (plan->trampolines[i].hook == word->hook && plan->trampolines[i].original == word->original)
			return i;
	return UINT32_MAX;
}

static int give_trampoline(struct got_plan *plan, struct entry_plan *word, uint32_t flags, struct err *e)
{
	const struct control_trampoline wanted = { .original = word->original, .hook = word->hook, .flags = flags };

	word->trampoline = find_trampoline(plan, word);
	if (word->trampoline != UINT32_MAX)
		return 0;
	if (plan->trampoline_count + TRAMPOLINE_FIRST >= TRAMPOLINE_MAX)
		return err_set(e, E2BIG, "the program uses more than %u different allocation functions",
		               TRAMPOLINE_MAX);
	struct control_trampoline *grown =
		realloc(plan->trampolines, (plan->trampoline_count + TRAMPOLINE_FIRST + 1) * sizeof *grown);
	if (!grown)
		return err_set(e, ENOMEM, "no memory for the plan");
	plan->trampolines = grown;
	while (plan->trampoline_count < TRAMPOLINE_FIRST)
		grown[plan->trampoline_count++] = wanted;
	word->trampoline = (uint32_t)plan->trampoline_count;
	grown[plan->trampoline_count++] = wanted;
	return 0;
}

/* Entries stay sorted by module, then address. */
static bool is_before(const struct entry_plan *a, const struct entry_plan *b)
{
	return a->module != b->module ? a->module < b->module : a->address < b->address;
}

int plan_words_add(struct got_plan *plan, const struct entry_plan *word, uint32_t trampoline_flags, struct err *e)
{
	struct entry_plan new = *word;
	size_t at = plan->entry_count;

	if (plan->entry_count >= SESSION_ENTRY_MAX)
		return err_set(e, E2BIG, "the program has more than %u GOT entries of allocation functions",
		               SESSION_ENTRY_MAX);
	struct entry_plan *grown = realloc(plan->entries, (plan->entry_count + 1) * sizeof *grown);
	if (!grown)
		return err_set(e, ENOMEM, "no memory for the plan");
	plan->entries = grown;
	int rc = give_trampoline(plan, &new, trampoline_flags, e);
	if (rc < 0)
		return rc;
	for (; at > 0 && is_before(&new, &grown[at - 1]); at--)
		grown[at] = grown[at - 1];
	grown[at] = new;
	plan->entry_count++;
	return 0;
}

size_t plan_words_leave(struct got_plan *plan, uint32_t module, uint32_t group)
{
	size_t kept = 0, count = plan->entry_count;

	for (size_t i = 0; i < count; i++)
		if (plan->entries[i].module != module || hook_group(plan->entries[i].hook) != group)
			plan->entries[kept++] = plan->entries[i];
	plan->entry_count = kept;
	return count - kept;
}
