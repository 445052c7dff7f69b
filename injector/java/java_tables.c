/* SPDX-License-Identifier: MIT */
#include "java/java_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define ENTRIES_MAX 20000u /* JDK 17 has 800 fields, 1,100 types */
#define STRIDE_MAX 256u

/* Where an entry of one of the arrays has its parts. */
struct shape {
	uint64_t array, stride;
	uint64_t name, owner, type, is_static, value, address; /* offsets; UINT64_MAX: an entry has none */
};

struct source {
	const struct elf_module *module;
	const struct target_memory *memory;
};

/* The word that libjvm exports under that name. */
static int exported_word(const struct source *s, const char *prefix, const char *name, uint64_t *word, struct err *e)
{
	char symbol[80];
	struct elf_symbol found;

	snprintf(symbol, sizeof symbol, "gHotSpotVM%s%s", prefix, name);
	if (!elf_module_find(s->module, symbol, NULL, &found))
		return err_set(e, ENOEXEC, "it does not export %s", symbol);
	return target_read_u64(s->memory, found.address, word, e);
}

static int part(const struct source *s, const char *prefix, const char *name, uint64_t stride, uint64_t *offset,
                struct err *e)
{
	int rc = exported_word(s, prefix, name, offset, e);

	if (rc == 0 && *offset > stride - 8)
		rc = err_set(e, EINVAL, "gHotSpotVM%s%s is outside of an entry", prefix, name);
	return rc;
}

static int shape_read(struct shape *shape, const struct source *s, const char *array, const char *prefix, struct err *e)
{
	int rc = exported_word(s, array, "", &shape->array, e);

	shape->name = shape->owner = shape->type = shape->is_static = shape->value = shape->address = UINT64_MAX;
	rc = rc ?: exported_word(s, prefix, "ArrayStride", &shape->stride, e);
	if (rc == 0 && (shape->stride < 16 || shape->stride > STRIDE_MAX))
		rc = err_set(e, EINVAL, "entries of gHotSpotVM%s have no likely size", array);
	return rc;
}

static uint64_t word_at(const uint8_t *entry, uint64_t offset)
{
	uint64_t word;

	memcpy(&word, entry + offset, sizeof word);
	return word;
}

static bool text_at(const struct source *s, uint64_t address, char *text, size_t size)
{
	return address && target_read_string(s->memory, address, text, size, ERR_IGNORED) == 0;
}

/* "Type::field", "Type". False: no name of a length that is looked for. */
static bool name_of(const struct source *s, const struct shape *shape, const uint8_t *bytes, struct java_entry *entry)
{
	char owner[sizeof entry->name], name[sizeof entry->name];
	bool has_owner = shape->owner != UINT64_MAX;

	if (!text_at(s, word_at(bytes, shape->name), name, sizeof name))
		return false;
	if (has_owner && !text_at(s, word_at(bytes, shape->owner), owner, sizeof owner))
		return false;
	int n = has_owner ? snprintf(entry->name, sizeof entry->name, "%s::%s", owner, name)
	                  : snprintf(entry->name, sizeof entry->name, "%s", name);
	return n > 0 && (size_t)n < sizeof entry->name;
}

static void entry_from(const struct source *s, const struct shape *shape, const uint8_t *bytes,
                       struct java_entry *entry)
{
	if (shape->is_static != UINT64_MAX)
		entry->is_static = (uint32_t)word_at(bytes, shape->is_static);
	entry->value = word_at(bytes, entry->is_static ? shape->address : shape->value);
	if (shape->type == UINT64_MAX || !text_at(s, word_at(bytes, shape->type), entry->type, sizeof entry->type))
		entry->type[0] = '\0';
}

/* Up to the entry whose first text is NULL. */
static int table_read(struct java_table *t, const struct source *s, const struct shape *shape, struct err *e)
{
	const uint64_t first = shape->owner != UINT64_MAX ? shape->owner : shape->name;
	uint8_t bytes[STRIDE_MAX];

	for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
		struct java_entry entry = { 0 };
		int rc = target_read(s->memory, shape->array + i * shape->stride, bytes, shape->stride, e);
		if (rc || !word_at(bytes, first))
			return rc ?: budget_check(s->memory->budget, e);
		if (!name_of(s, shape, bytes, &entry))
			continue;
		entry_from(s, shape, bytes, &entry);
		rc = budget_take(s->memory->budget, sizeof entry, e);
		if (rc == 0 && !grow_list(t->list, t->count))
			rc = err_set(e, ENOMEM, "no memory for the tables of libjvm");
		if (rc)
			return rc;
		t->list[t->count++] = entry;
	}
	return err_set(e, EINVAL, "its tables have more than %u entries", ENTRIES_MAX);
}

static int fields_read(struct java_table *t, const struct source *s, struct err *e)
{
	struct shape shape;

	int rc = shape_read(&shape, s, "Structs", "StructEntry", e);
	rc = rc ?: part(s, "StructEntry", "TypeNameOffset", shape.stride, &shape.owner, e);
	rc = rc ?: part(s, "StructEntry", "FieldNameOffset", shape.stride, &shape.name, e);
	rc = rc ?: part(s, "StructEntry", "TypeStringOffset", shape.stride, &shape.type, e);
	rc = rc ?: part(s, "StructEntry", "IsStaticOffset", shape.stride, &shape.is_static, e);
	rc = rc ?: part(s, "StructEntry", "OffsetOffset", shape.stride, &shape.value, e);
	rc = rc ?: part(s, "StructEntry", "AddressOffset", shape.stride, &shape.address, e);
	return rc ?: table_read(t, s, &shape, e);
}

static int values_read(struct java_table *t, const struct source *s, const char *array, const char *prefix,
                       const char *name, const char *value, struct err *e)
{
	struct shape shape;

	int rc = shape_read(&shape, s, array, prefix, e);
	rc = rc ?: part(s, prefix, name, shape.stride, &shape.name, e);
	rc = rc ?: part(s, prefix, value, shape.stride, &shape.value, e);
	return rc ?: table_read(t, s, &shape, e);
}

int java_tables_read(struct java_tables *t, const struct elf_module *m, const struct target_memory *tm, struct err *e)
{
	const struct source s = { m, tm };

	*t = (struct java_tables){ 0 };
	int rc = fields_read(&t->fields, &s, e);
	rc = rc ?: values_read(&t->types, &s, "Types", "TypeEntry", "TypeNameOffset", "SizeOffset", e);
	rc = rc ?: values_read(&t->constants, &s, "IntConstants", "IntConstantEntry", "NameOffset", "ValueOffset", e);
	for (size_t i = 0; i < t->constants.count; i++)
		t->constants.list[i].value &= UINT32_MAX;
	if (rc)
		java_tables_free(t);
	return rc;
}

void java_tables_free(struct java_tables *t)
{
	free(t->fields.list);
	free(t->types.list);
	free(t->constants.list);
	*t = (struct java_tables){ 0 };
}

const struct java_entry *java_table_find(const struct java_table *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->list[i].name, name))
			return &t->list[i];
	return NULL;
}
