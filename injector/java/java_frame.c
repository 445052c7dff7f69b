/* SPDX-License-Identifier: MIT */
#include "java/java_frame.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch/java_frame.h"

bool java_frame_is_compiled(const struct java_view *v, uint64_t frame)
{
	return JAVA_FRAME_ADDRESS(frame) - v->cache < v->cache_bytes;
}

/* ---- compiled code ---- */

/* What tells one compiled method from another. */
struct identity {
	uint64_t address, id, method;
};

static int gone(uint64_t frame, struct err *e)
{
	return err_set(e, ENOENT, "the code of frame 0x%" PRIx64 " is gone", frame);
}

static bool is_compiled(const struct java_code *code)
{
	return code->kind == JAVA_CODE_COMPILED || code->kind == JAVA_CODE_NATIVE;
}

/*
 * Tables that compiled code has by malloc (debug information since JDK 23, Methods since 25): nmethod::purge frees
 * them, and has these fields lead to the end of the blob, some time before its block is free and its compile_id is
 * another's.
 */
static int check_tables(struct java_view *v, const struct java_code *code, uint64_t frame, struct err *e)
{
	const struct java_field *fields[] = { &v->s.compiled_immutable, &v->s.blob_mutable };
	int rc = 0;

	for (unsigned i = 0; i < 2 && rc == 0; i++) {
		uint64_t tables = 0;
		if (!fields[i]->bytes)
			continue;
		rc = java_field_read(&v->memory, code->address, fields[i], &tables, e);
		if (rc == 0 && tables >= code->address && tables <= code->end)
			rc = gone(frame, e);
	}
	return rc;
}

static int identify(struct java_view *v, uint64_t frame, struct java_code *code, struct identity *id, struct err *e)
{
	int rc = java_code_at(v, JAVA_FRAME_ADDRESS(frame), code, e);

	if (rc == -EINVAL)
		return gone(frame, e);
	if (rc || !is_compiled(code))
		return rc;
	*id = (struct identity){ .address = code->address };
	rc = java_field_read(&v->memory, code->address, &v->s.compiled_id, &id->id, e);
	rc = rc ?: java_field_read(&v->memory, code->address, &v->s.compiled_method, &id->method, e);
	if (rc == 0 && ((uint16_t)id->id != JAVA_FRAME_TAG(frame) || id->method == 0))
		rc = gone(frame, e);
	if (code->kind == JAVA_CODE_COMPILED)
		rc = rc ?: check_tables(v, code, frame, e);
	return rc;
}

/* The methods at its pc; the one that was compiled, if there is no debug information there. */
static int points_at(struct java_view *v, const struct java_code *code, const struct identity *id, uint64_t pc,
                     struct java_point *points, uint32_t *count, struct err *e)
{
	int rc = java_points_read(v, code, pc, points, count, e);

	if (rc == 0 && *count == 0)
		points[(*count)++] = (struct java_point){ .method = id->method, .bci = JAVA_NO_BCI };
	if (rc == 0 && points[*count - 1].method != id->method)
		rc = err_set(e, EINVAL, "the code at 0x%" PRIx64 " is not of its method", code->address);
	return rc;
}

static int call_read(struct java_view *v, const struct java_point *point, struct java_called *call, struct err *e)
{
	const bool nowhere = point->bci == JAVA_NO_BCI;
	struct java_method m;

	int rc = java_method_read(v, point->method, nowhere ? 0 : point->bci, &m, e);
	rc = rc ?: java_method_place(v, &m, nowhere ? 0 : point->bci, &call->place, e);
	call->method = point->method;
	if (nowhere)
		call->place.line = JAVA_NO_LINE;
	return rc;
}

static int compiled_read(struct java_view *v, uint64_t frame, struct java_called *list, uint32_t *count, struct err *e)
{
	struct java_point points[JAVA_INLINED_MAX];
	struct identity before, after;
	struct java_code code;

	int rc = identify(v, frame, &code, &before, e);
	if (rc)
		return rc;
	*count = 1;
	if (!is_compiled(&code)) { /* HotSpot's own, which stays */
		list[0] = (struct java_called){ .place.line = JAVA_NO_LINE };
		snprintf(list[0].place.function, sizeof list[0].place.function, "%s", code.name);
		return 0;
	}
	rc = points_at(v, &code, &before, JAVA_FRAME_ADDRESS(frame), points, count, e);
	for (uint32_t i = 0; rc == 0 && i < *count; i++)
		rc = call_read(v, &points[i], &list[i], e);
	rc = rc ?: identify(v, frame, &code, &after, e);
	if (rc == 0 && memcmp(&before, &after, sizeof before) != 0)
		rc = gone(frame, e);
	return rc;
}

/* ---- the interpreter ---- */

static int interpreted_read(struct java_view *v, uint64_t frame, struct java_called *call, struct err *e)
{
	struct java_method m, again;
	int32_t bci = 0;

	int rc = java_method_read(v, JAVA_FRAME_METHOD(frame), 0, &m, e);
	if (rc == 0 && !m.native)
		bci = (uint16_t)(JAVA_FRAME_TAG(frame) - (uint16_t)m.code);
	if (rc == 0 && !m.native && (uint32_t)bci >= m.code_bytes)
		return err_set(e, ENOENT, "the Method of frame 0x%" PRIx64 " is gone", frame);
	rc = rc ?: java_method_place(v, &m, bci, &call->place, e);
	rc = rc ?: java_method_read(v, m.address, 0, &again, e);
	if (rc == 0 && memcmp(&m, &again, sizeof m) != 0)
		rc = err_set(e, EINVAL, "the Method of frame 0x%" PRIx64 " has changed", frame);
	call->method = m.address;
	return rc;
}

int java_frame_read(struct java_view *v, uint64_t frame, struct java_called *list, uint32_t *count, struct err *e)
{
	*count = 1;
	if (!java_frame_is_compiled(v, frame))
		return interpreted_read(v, frame, list, e);
	int rc = java_heaps_refresh(v, e);
	return rc ?: compiled_read(v, frame, list, count, e);
}
