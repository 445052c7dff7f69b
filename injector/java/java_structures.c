/* SPDX-License-Identifier: MIT */
#include "java/java_structures.h"

#include <stdio.h>
#include <string.h>

#include "arch/java_frame.h"

#define OFFSET_MAX 65536u      /* of a field in its structure */
#define STRUCTURE_MAX 4096u    /* bytes of one of the structures whose size is needed */
#define UNSIGNED5_WITHOUT_0 20 /* the first version */

/* How many bytes values of a type of C++ have; those that are not named here are addresses. */
static uint32_t bytes_of(const char *type)
{
	static const struct {
		uint32_t bytes;
		const char *types;
	} known[] = {
		{ 1, "bool u1 char CompLevel CodeBlobKind " },
		{ 2, "u2 uint16_t int16_t short " },
		{ 4,
		  "int jint uint uint32_t int32_t u4 juint AccessFlags pid_t JavaThreadState OSThread::thread_id_t " },
	};
	const char *const plain = !strncmp(type, "volatile ", 9) ? type + 9
	                          : !strncmp(type, "const ", 6)  ? type + 6
	                                                         : type;
	const size_t n = strlen(plain);

	if (!strcmp(plain, "unsigned int"))
		return 4;
	if (!strcmp(plain, "unsigned short"))
		return 2;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		for (const char *p = known[i].types; *p; p += strcspn(p, " ") + 1)
			if (n == strcspn(p, " ") && !strncmp(p, plain, n))
				return known[i].bytes;
	return 8;
}

/* By the first of the names that the tables have. */
static int field_find(struct java_field *f, const struct java_tables *t, const char *names, bool required,
                      struct err *e)
{
	char name[sizeof((struct java_entry *)0)->name];

	*f = (struct java_field){ 0 };
	for (const char *p = names; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		snprintf(name, sizeof name, "%.*s", (int)n, p);
		const struct java_entry *entry = java_table_find(&t->fields, name);
		if (entry && (entry->is_static || entry->value < OFFSET_MAX)) {
			*f = (struct java_field){ entry->value, bytes_of(entry->type) };
			return 0;
		}
		p += n;
	}
	return required ? err_set(e, ENOEXEC, "its tables do not have %s", names) : 0;
}

static int size_find(uint32_t *bytes, const struct java_tables *t, const char *type, struct err *e)
{
	const struct java_entry *entry = java_table_find(&t->types, type);

	if (!entry || !entry->value || entry->value > STRUCTURE_MAX)
		return err_set(e, ENOEXEC, "its tables do not have the size of %s", type);
	*bytes = (uint32_t)entry->value;
	return 0;
}

static int32_t constant(const struct java_tables *t, const char *name, const char *other, int32_t otherwise)
{
	const struct java_entry *entry = java_table_find(&t->constants, name);

	if (!entry && other)
		entry = java_table_find(&t->constants, other);
	return entry ? (int32_t)entry->value : otherwise;
}

static int from_tables(struct java_structures *s, const struct java_tables *t, struct err *e)
{
	int rc = 0;

#define X(member, names, required)                                                                                     \
	if (rc == 0)                                                                                                   \
		rc = field_find(&s->member, t, names, required, e);
	JAVA_FIELD_LIST(X)
#undef X
#define X(member, type)                                                                                                \
	if (rc == 0)                                                                                                   \
		rc = size_find(&s->bytes.member, t, type, e);
	JAVA_SIZE_LIST(X)
#undef X
	if (rc == 0 && !(s->threads.bytes ? s->threads_length.bytes && s->threads_data.bytes
	                                  : s->first_thread.bytes && s->thread_next.bytes))
		rc = err_set(e, ENOEXEC, "its tables do not say where its threads are");
	s->entry_wrapper = constant(t, "frame::entry_frame_call_wrapper_offset", NULL, JAVA_ENTRY_WRAPPER);
	s->has_lines = (uint32_t)constant(t, "ConstMethod::_has_linenumber_table",
	                                  "ConstMethodFlags::_misc_has_linenumber_table", 1);
	return rc;
}

static int version_read(struct java_structures *s, const struct target_memory *tm, struct err *e)
{
	uint64_t major, text;

	int rc = java_field_read(tm, 0, &s->version_major, &major, e);
	rc = rc ?: java_field_read(tm, 0, &s->version_text, &text, e);
	rc = rc ?: target_read_string(tm, text, s->release, sizeof s->release, e);
	if (rc == 0 && (major < JAVA_OLDEST || major > JAVA_NEWEST))
		rc = err_set(e, ENOEXEC, "the structures of this version (%s) are not known", s->release);
	if (rc)
		return rc;
	s->version = (uint32_t)major;
	s->unused_bytes = major >= UNSIGNED5_WITHOUT_0;
	return 0;
}

int java_structures_read(struct java_structures *s, const struct elf_module *libjvm, const struct target_memory *tm,
                         struct err *e)
{
	struct java_tables t;

	*s = (struct java_structures){ 0 };
	int rc = java_tables_read(&t, libjvm, tm, e);
	if (rc)
		return rc;
	rc = from_tables(s, &t, e);
	java_tables_free(&t);
	return rc ?: version_read(s, tm, e);
}

int java_field_read(const struct target_memory *tm, uint64_t address, const struct java_field *f, uint64_t *value,
                    struct err *e)
{
	uint64_t word = 0;

	int rc = f->bytes ? target_read(tm, address + f->at, &word, f->bytes, e) : 0;
	if (rc == 0)
		*value = word;
	return rc;
}
