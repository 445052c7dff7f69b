/* SPDX-License-Identifier: MIT */
#include "java/java_inside.h"

#include "arch/address_bits.h"
#include "arch/java_frame.h"

_Static_assert(JAVA_FRAME_END == 1ull << ADDRESS_BITS, "the addresses of programs can be recorded");

#define CACHE_BYTES_MAX (4ull << 30)

void java_inside_barrier(struct java_view *v, const struct java_code *code)
{
	v->barrier = code->address;
	v->barrier_end = code->end;
}

static int bounds_read(struct java_layout *l, struct java_view *v, struct err *e)
{
	uint64_t high;

	int rc = java_field_read(&v->memory, 0, &v->s.cache_low, &l->low, e);
	rc = rc ?: java_field_read(&v->memory, 0, &v->s.cache_high, &high, e);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < v->heap_count; i++)
		if (v->heaps[i].low < l->low || v->heaps[i].high > high)
			return err_set(e, EINVAL, "a code heap is not in the code cache");
	if (high - l->low > CACHE_BYTES_MAX || high > JAVA_FRAME_END)
		return err_set(e, EINVAL, "its code cache has no likely size");
	l->bytes = high - l->low;
	v->cache = l->low;
	v->cache_bytes = l->bytes;
	return 0;
}

/* Of a field behind the head of a block; -EINVAL: it does not lie where a walk may read it. */
static int head_offset(const struct java_view *v, const struct java_field *f, uint32_t bytes, uint32_t *offset,
                       struct err *e)
{
	const uint64_t at = v->s.bytes.block + f->at;

	if (f->bytes != bytes || at + bytes > JAVA_BLOB_BYTES)
		return err_set(e, EINVAL, "the head of its code is larger than known ones");
	*offset = (uint32_t)at;
	return 0;
}

/* What frames are recorded as. */
static int frames_layout(struct java_layout *l, const struct java_view *v, struct err *e)
{
	const struct java_structures *s = &v->s;
	const bool offsets = s->compiled_deopt.bytes == 4;

	l->handler_base = offsets ? s->bytes.block : 0;
	int rc = head_offset(v, &s->compiled_id, 4, &l->compile_id, e);
	rc = rc ?: head_offset(v, &s->compiled_original, 4, &l->original, e);
	rc = rc ?: head_offset(v, &s->compiled_deopt, offsets ? 4 : 8, &l->handlers[0], e);
	if (rc == 0 && s->compiled_deopt_mh.bytes)
		rc = head_offset(v, &s->compiled_deopt_mh, offsets ? 4 : 8, &l->handlers[1], e);
	return rc;
}

int java_inside_layout(struct java_layout *layout, struct java_view *v, struct err *e)
{
	const uint64_t used = v->s.block_used.at, words = v->s.bytes.block + v->s.blob_frame_words.at;
	struct java_layout l = { .heap_count = v->heap_count, .call_stub_return = v->call_stub_return };
	struct java_code code;

	int rc = bounds_read(&l, v, e);
	rc = rc ?: java_code_at(v, v->interpreter, &code, e);
	if (rc == 0 && (used >= v->s.bytes.block || words + 4 > JAVA_BLOB_BYTES || v->s.blob_frame_words.bytes != 4))
		rc = err_set(e, EINVAL, "the head of its code is larger than known ones");
	rc = rc ?: frames_layout(&l, v, e);
	if (rc == 0 && v->s.version >= JAVA_CONTINUATIONS_SINCE && !v->barrier)
		rc = err_set(e, EINVAL, "its code of continuations was not found");
	if (rc)
		return rc;
	l.block_used = (uint32_t)used;
	l.frame_words = (uint32_t)words;
	l.interpreter = code.start;
	l.interpreter_end = code.end;
	l.barrier = v->barrier;
	l.barrier_end = v->barrier_end;
	for (uint32_t i = 0; i < v->heap_count; i++)
		l.heaps[i] = (struct java_code_heap){ .low = v->heaps[i].low,
			                              .high = v->heaps[i].high_word,
			                              .segmap = v->heaps[i].segmap,
			                              .segmap_high = v->heaps[i].segmap_end_word,
			                              .shift = v->heaps[i].shift };
	*layout = l;
	return 0;
}
