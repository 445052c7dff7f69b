/* SPDX-License-Identifier: MIT */
#include "input/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

const char *label_source_name(enum dump_type_source source)
{
	static const char *const names[DUMP_TYPE_SOURCES] = { [DUMP_TYPE_NONE] = "",
		                                              [DUMP_TYPE_VTABLE] = "vtable",
		                                              [DUMP_TYPE_PYTHON] = "python",
		                                              [DUMP_TYPE_CONTENT] = "content" };

	return source < DUMP_TYPE_SOURCES ? names[source] : "";
}

static int add_label(struct labels_of *of, const char *text, enum dump_type_source source)
{
	if (!grow_list(of->list, of->count))
		return -ENOMEM;
	of->list[of->count] = (struct label){ .text = strdup(text), .source = source };
	return of->list[of->count].text ? (of->count++, 0) : -ENOMEM;
}

/* Ids come in their order. */
static int on_name(void *arg, const struct dump_block_name *name)
{
	struct labels *l = arg;
	struct labels_of *of = &l->of[name->kind == DUMP_BLOCK_HOLDER ? LABEL_HOLDER : LABEL_TYPE];

	if (name->id != of->count - LABELS_BEFORE + 1 || name->id > DUMP_BLOCK_NAMES_MAX)
		return 0;
	return add_label(of, name->text, (enum dump_type_source)name->source);
}

static int on_list(void *arg, const struct dump_block_list *list)
{
	struct labels *l = arg;

	for (uint32_t i = 0; i < list->count; i++) {
		const uint32_t *known = map_find(&l->block_of, list->blocks[i].address);
		if (known || l->count == UINT32_MAX)
			continue;
		if (!grow_list(l->blocks, l->count) ||
		    map_put(&l->block_of, list->blocks[i].address, (uint32_t)l->count))
			return -ENOMEM;
		l->blocks[l->count++] = list->blocks[i];
	}
	return 0;
}

static int on_look(void *arg, const struct dump_block_look *look)
{
	struct labels *l = arg;

	l->look.known = true;
	l->look.cut = look->flags & DUMP_BLOCK_TYPES_CUT;
	l->look.holders = look->flags & DUMP_BLOCK_HOLDERS;
	snprintf(l->look.why, sizeof l->look.why, "%s", look->text);
	return 0;
}

/* Without the record that comes last they are not whole, and nothing is believed. */
int labels_read(struct labels *l, struct dump *dump)
{
	const struct dump_block_visitor visitor = { on_name, on_list, on_look, l };
	int s = 0;

	*l = (struct labels){ 0 };
	for (int kind = 0; !s && kind < LABEL_KINDS; kind++) {
		s = add_label(&l->of[kind], "not looked at", DUMP_TYPE_NONE);
		s = s ? s : add_label(&l->of[kind], "freed before the end", DUMP_TYPE_NONE);
	}
	s = s ? s : dump_each_block(dump, &visitor);
	if (!l->look.known) {
		map_done(&l->block_of);
		l->block_of = (struct map){ 0 };
	}
	return s;
}

void labels_clear(struct labels *l)
{
	for (int kind = 0; kind < LABEL_KINDS; kind++)
		for (size_t i = 0; i < l->of[kind].count; i++)
			l->of[kind].list[i].sum = (struct class_sum){ 0 };
}

struct class_sum *labels_sum(const struct labels *l, enum label_kind kind, uint64_t address, bool freed)
{
	const struct labels_of *of = &l->of[kind];
	const uint32_t *known = freed ? NULL : map_find(&l->block_of, address);
	const struct dump_block *block = known ? &l->blocks[*known] : NULL;
	const uint32_t id = !block ? 0 : kind == LABEL_HOLDER ? block->holder : block->type;

	return &of->list[freed ? 1 : id && id <= of->count - LABELS_BEFORE ? id + LABELS_BEFORE - 1 : 0].sum;
}

void labels_done(struct labels *l)
{
	for (int kind = 0; kind < LABEL_KINDS; kind++) {
		for (size_t i = 0; i < l->of[kind].count; i++)
			free(l->of[kind].list[i].text);
		free(l->of[kind].list);
	}
	free(l->blocks);
	map_done(&l->block_of);
	*l = (struct labels){ 0 };
}
