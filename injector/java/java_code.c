/* SPDX-License-Identifier: MIT */
#include "java/java_code.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define HEAP_BYTES_MAX (8ull << 30)
#define HOPS_MAX 4096u        /* of the segmap, for one block */
#define FRAME_WORDS_MAX 65536 /* of compiled code */
#define SCOPE_BYTES 15u       /* three numbers of five bytes */
#define PCS_MAX (1u << 20)    /* of one method */
#define PC_BEFORE (-1)        /* PcDesc::lower_offset_limit */

/* ---- heaps ---- */

static int heap_read(struct java_view *v, uint64_t address, struct java_heap *heap, struct err *e)
{
	const struct java_structures *s = &v->s;
	const uint64_t memory = address + s->heap_memory.at, segmap = address + s->heap_segmap.at;
	uint64_t shift;

	int rc = java_field_read(&v->memory, memory, &s->space_low, &heap->low, e);
	rc = rc ?: java_field_read(&v->memory, memory, &s->space_high, &heap->high, e);
	rc = rc ?: java_field_read(&v->memory, segmap, &s->space_low, &heap->segmap, e);
	rc = rc ?: java_field_read(&v->memory, segmap, &s->space_high, &heap->segmap_end, e);
	rc = rc ?: java_field_read(&v->memory, address, &s->heap_shift, &shift, e);
	if (rc)
		return rc;
	heap->high_word = memory + s->space_high.at;
	heap->segmap_end_word = segmap + s->space_high.at;
	const struct mapping *m = maps_find(v->maps, heap->low);
	heap->shift = (uint32_t)shift;
	if (heap->low >= heap->high || heap->high - heap->low > HEAP_BYTES_MAX || shift < 4 || shift > 16 ||
	    heap->segmap >= heap->segmap_end || !m || !(m->prot & PROT_EXEC))
		return err_set(e, EINVAL, "there is no code heap at 0x%" PRIx64, address);
	return 0;
}

int java_heaps_refresh(struct java_view *v, struct err *e)
{
	for (uint32_t i = 0; i < v->heap_count; i++) {
		struct java_heap *heap = &v->heaps[i];
		uint64_t high, segmap_end;
		int rc = target_read_u64(&v->memory, heap->high_word, &high, e);

		rc = rc ?: target_read_u64(&v->memory, heap->segmap_end_word, &segmap_end, e);
		if (rc)
			return rc;
		if (high < heap->high || high - heap->low > HEAP_BYTES_MAX || segmap_end < heap->segmap_end)
			return err_set(e, EINVAL, "the code heap at 0x%" PRIx64 " has shrunk", heap->low);
		heap->high = high;
		heap->segmap_end = segmap_end;
	}
	return 0;
}

static int interpreter_read(struct java_view *v, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t queue;

	int rc = java_field_read(&v->memory, 0, &s->call_stub_return, &v->call_stub_return, e);
	rc = rc ?: java_field_read(&v->memory, 0, &s->interpreter, &queue, e);
	rc = rc ?: java_field_read(&v->memory, queue, &s->queue_buffer, &v->interpreter, e);
	if (rc == 0 && (!java_heap_of(v, v->interpreter) || !java_heap_of(v, v->call_stub_return)))
		rc = err_set(e, EINVAL, "its interpreter is not in its code heaps");
	return rc;
}

int java_heaps_read(struct java_view *v, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t list, count, data, heap;

	v->heap_count = 0;
	int rc = java_field_read(&v->memory, 0, &s->heaps, &list, e);
	rc = rc ?: java_field_read(&v->memory, list, &s->list_length, &count, e);
	rc = rc ?: java_field_read(&v->memory, list, &s->list_data, &data, e);
	if (rc == 0 && (count == 0 || count > JAVA_HEAPS_MAX))
		rc = err_set(e, EINVAL, "it has %" PRIu64 " code heaps", count);
	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		rc = target_read_u64(&v->memory, data + 8ull * i, &heap, e);
		rc = rc ?: heap_read(v, heap, &v->heaps[i], e);
		if (rc == 0)
			v->heap_count++;
	}
	return rc ?: interpreter_read(v, e);
}

const struct java_heap *java_heap_of(const struct java_view *v, uint64_t pc)
{
	for (uint32_t i = 0; i < v->heap_count; i++)
		if (pc >= v->heaps[i].low && pc < v->heaps[i].high)
			return &v->heaps[i];
	return NULL;
}

/* ---- blocks ---- */

static int kind_find(const struct java_view *v, struct java_code *code, const char *name, struct err *e)
{
	const bool interpreter = !strcmp(name, "Interpreter");

	if (interpreter != (v->interpreter >= code->address && v->interpreter < code->end) || !name[0])
		return err_set(e, EINVAL, "the code at 0x%" PRIx64 " does not have its name", code->address);
	if (interpreter)
		code->kind = JAVA_CODE_INTERPRETER;
	else if (!strcmp(name, "nmethod"))
		code->kind = JAVA_CODE_COMPILED;
	else if (!strcmp(name, "native nmethod"))
		code->kind = JAVA_CODE_NATIVE;
	else
		code->kind = strstr(name, "ontinuation") ? JAVA_CODE_BARRIER : JAVA_CODE_STUB;
	for (; *name; name++)
		if (*name < ' ' || *name > '~')
			return err_set(e, EINVAL, "the code at 0x%" PRIx64 " has no likely name", code->address);
	return 0;
}

/* What the block at that address holds; code->address and end are set. */
static int describe(struct java_view *v, struct java_code *code, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t bytes, start, words, name;

	int rc = java_field_read(&v->memory, code->address, &s->blob_bytes, &bytes, e);
	rc = rc ?: java_field_read(&v->memory, code->address, &s->blob_code, &start, e);
	rc = rc ?: java_field_read(&v->memory, code->address, &s->blob_frame_words, &words, e);
	rc = rc ?: java_field_read(&v->memory, code->address, &s->blob_name, &name, e);
	rc = rc ?: target_read_string(&v->memory, name, code->name, sizeof code->name, e);
	if (rc == -ENAMETOOLONG) {
		code->name[sizeof code->name - 1] = '\0';
		rc = 0;
	}
	if (rc)
		return rc;
	code->start = s->blob_code.bytes == 4 ? code->address + start : start;
	code->frame_bytes = 8 * words;
	if (bytes > code->end - code->address || code->start < code->address || code->start > code->end ||
	    words > FRAME_WORDS_MAX)
		return err_set(e, EINVAL, "there is no code at 0x%" PRIx64, code->address);
	return kind_find(v, code, code->name, e);
}

static int block_read(struct java_view *v, const struct java_heap *heap, uint64_t block, struct java_code *code,
                      bool *used, struct err *e)
{
	uint64_t segments, is_used;

	int rc = java_field_read(&v->memory, block, &v->s.block_length, &segments, e);
	rc = rc ?: java_field_read(&v->memory, block, &v->s.block_used, &is_used, e);
	if (rc)
		return rc;
	if (segments == 0 || segments > (heap->high - block) >> heap->shift)
		return err_set(e, EINVAL, "there is no block of code at 0x%" PRIx64, block);
	*code = (struct java_code){ .address = block + v->s.bytes.block, .end = block + (segments << heap->shift) };
	*used = is_used != 0;
	return is_used ? describe(v, code, e) : 0;
}

int java_code_next(struct java_view *v, const struct java_heap *heap, uint64_t *at, struct java_code *code, bool *used,
                   struct err *e)
{
	uint64_t segments;

	if (*at >= heap->high)
		return -ENOENT;
	int rc = java_field_read(&v->memory, *at, &v->s.block_length, &segments, e);
	if (rc == 0 && segments == 0)
		return -ENOENT; /* behind the last one nothing has been written */
	code->end = 0;
	rc = rc ?: block_read(v, heap, *at, code, used, e);
	if (code->end)
		*at = code->end;
	return rc;
}

/* The block that a segment is of. */
static int block_of(struct java_view *v, const struct java_heap *heap, uint64_t segment, uint64_t *block, struct err *e)
{
	for (uint32_t hop = 0; hop < HOPS_MAX; hop++) {
		uint8_t back;

		if (segment >= heap->segmap_end - heap->segmap)
			break;
		int rc = target_read(&v->memory, heap->segmap + segment, &back, 1, e);
		if (rc)
			return rc;
		if (back == 0) {
			*block = heap->low + (segment << heap->shift);
			return 0;
		}
		if (back == JAVA_NO_SEGMENT || back > segment)
			break;
		segment -= back;
	}
	return err_set(e, EINVAL, "segment %" PRIu64 " of a code heap leads to no block", segment);
}

int java_code_at(struct java_view *v, uint64_t pc, struct java_code *code, struct err *e)
{
	const struct java_heap *heap = java_heap_of(v, pc);
	uint64_t block;
	bool used = false;

	if (!heap)
		return err_set(e, ENOENT, "0x%" PRIx64 " is not in a code heap", pc);
	int rc = block_of(v, heap, (pc - heap->low) >> heap->shift, &block, e);
	rc = rc ?: block_read(v, heap, block, code, &used, e);
	if (rc == 0 && (!used || pc < code->start || pc >= code->end))
		rc = err_set(e, EINVAL, "there is no code at 0x%" PRIx64, pc);
	return rc;
}

/* ---- debug information ---- */

/* Two forms of one field: an address, or an offset from base. */
static int address_read(struct java_view *v, uint64_t object, const struct java_field *f, uint64_t base,
                        uint64_t *address, struct err *e)
{
	int rc = java_field_read(&v->memory, object, f, address, e);

	if (rc == 0 && f->bytes == 4)
		*address += base;
	return rc;
}

int java_code_handler(struct java_view *v, const struct java_code *code, uint64_t *handler, struct err *e)
{
	return address_read(v, code->address, &v->s.compiled_deopt, code->address, handler, e);
}

int java_code_original_pc(struct java_view *v, const struct java_code *code, uint64_t sp, uint64_t *pc, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t handler = 0, other = 0, offset, original;

	int rc = java_code_handler(v, code, &handler, e);
	if (rc == 0 && s->compiled_deopt_mh.bytes)
		rc = address_read(v, code->address, &s->compiled_deopt_mh, code->address, &other, e);
	if (rc || (*pc != handler && *pc != other))
		return rc;
	rc = java_field_read(&v->memory, code->address, &s->compiled_original, &offset, e);
	if (rc == 0 && offset + 8 > code->frame_bytes)
		rc = err_set(e, EINVAL, "the code at 0x%" PRIx64 " keeps its pc outside of its frame", code->address);
	rc = rc ?: target_read_u64(&v->memory, sp + offset, &original, e);
	if (rc == 0 && (original < code->start || original >= code->end))
		rc = err_set(e, EINVAL, "the code at 0x%" PRIx64 " was left at no place of its own", code->address);
	if (rc == 0)
		*pc = original;
	return rc;
}

/* The tables of compiled code. */
struct debug {
	uint64_t pcs; /* entries: offset of the pc (int32), offset of its scope (int32) */
	uint32_t count;
	uint64_t scopes;
	uint64_t methods; /* addresses of Methods */
};

static int methods_find(struct java_view *v, const struct java_code *code, uint64_t *methods, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t base = code->address, more = 0;
	int rc = 0;

	if (s->blob_mutable.bytes && s->blob_relocation.bytes) {
		rc = java_field_read(&v->memory, code->address, &s->blob_mutable, &base, e);
		rc = rc ?: java_field_read(&v->memory, code->address, &s->blob_relocation, &more, e);
	} else {
		if (s->compiled_immutable.bytes)
			rc = java_field_read(&v->memory, code->address, &s->blob_data, &base, e);
		base += s->compiled_immutable.bytes ? code->address : 0;
		rc = rc ?: java_field_read(&v->memory, code->address, &s->compiled_metadata, &more, e);
	}
	*methods = base + more;
	return rc;
}

/* Offsets of a pc and of its scope. */
static int pc_read(struct java_view *v, const struct debug *d, uint32_t n, int32_t pair[2], struct err *e)
{
	return target_read(&v->memory, d->pcs + (uint64_t)n * v->s.bytes.pc_desc, pair, 8, e);
}

/* A table of pcs is between one that no code has, and one behind the code: else it was given back, and something else
 * is there now. */
static int check_sentinels(struct java_view *v, const struct java_code *code, const struct debug *d, struct err *e)
{
	const uint64_t most = code->end - code->address + 1;
	int32_t first[2] = { 0 }, last[2] = { 0 };

	int rc = pc_read(v, d, 0, first, e);
	rc = rc ?: pc_read(v, d, d->count - 1, last, e);
	if (rc == 0 && (first[0] != PC_BEFORE || last[0] <= 0 || (uint64_t)last[0] > most))
		rc = err_set(e, EINVAL, "the code at 0x%" PRIx64 " has lost its table of pcs", code->address);
	return rc;
}

static int debug_find(struct java_view *v, const struct java_code *code, struct debug *d, struct err *e)
{
	const struct java_structures *s = &v->s;
	uint64_t base = code->address;
	int32_t ends[2];
	int rc = 0;

	if (s->compiled_immutable.bytes)
		rc = java_field_read(&v->memory, code->address, &s->compiled_immutable, &base, e);
	rc = rc ?: target_read(&v->memory, code->address + s->compiled_pcs.at, ends, sizeof ends, e);
	rc = rc ?: address_read(v, code->address, &s->compiled_scopes, base, &d->scopes, e);
	rc = rc ?: methods_find(v, code, &d->methods, e);
	if (rc)
		return rc;
	if (ends[0] < 0 || ends[1] < ends[0] || (uint32_t)(ends[1] - ends[0]) / s->bytes.pc_desc > PCS_MAX)
		return err_set(e, EINVAL, "the code at 0x%" PRIx64 " has no likely table of pcs", code->address);
	d->pcs = base + (uint32_t)ends[0];
	d->count = (uint32_t)(ends[1] - ends[0]) / s->bytes.pc_desc;
	return d->count ? check_sentinels(v, code, d, e) : 0;
}

/* *scope 0: the pc has none. Binary search, by pcs that rise. */
static int scope_find(struct java_view *v, const struct debug *d, uint64_t offset, uint32_t *scope, struct err *e)
{
	uint32_t low = 0, high = d->count;
	int32_t pair[2] = { 0 };

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int rc = pc_read(v, d, middle, pair, e);
		if (rc)
			return rc;
		if (pair[0] < (int64_t)offset)
			low = middle + 1;
		else
			high = middle;
	}
	*scope = 0;
	int rc = low < d->count ? pc_read(v, d, low, pair, e) : 0;
	if (rc == 0 && low < d->count && pair[0] == (int64_t)offset && pair[1] > 0)
		*scope = (uint32_t)pair[1];
	return rc;
}

bool java_code_number(const struct java_view *v, const uint8_t **at, const uint8_t *end, uint32_t *value)
{
	uint32_t sum = 0;

	for (unsigned shift = 0; shift <= 24; shift += 6) {
		if (*at == end || **at < v->s.unused_bytes)
			return false;
		uint8_t byte = *(*at)++;
		sum += (uint32_t)(byte - v->s.unused_bytes) << shift;
		if (byte < 192)
			break;
	}
	*value = sum;
	return true;
}

/* *scope goes on to the caller's. */
static int point_read(struct java_view *v, const struct debug *d, uint32_t *scope, struct java_point *point,
                      struct err *e)
{
	uint8_t bytes[SCOPE_BYTES];
	const uint8_t *at = bytes;
	uint32_t caller, method, bytecode;

	int rc = target_read(&v->memory, d->scopes + *scope, bytes, sizeof bytes, e);
	if (rc)
		return rc;
	if (!java_code_number(v, &at, bytes + sizeof bytes, &caller) ||
	    !java_code_number(v, &at, bytes + sizeof bytes, &method) ||
	    !java_code_number(v, &at, bytes + sizeof bytes, &bytecode) || method == 0 || caller >= *scope)
		return err_set(e, EINVAL, "no scope is at 0x%" PRIx64, d->scopes + *scope);
	*scope = caller;
	point->bci = (int32_t)(bytecode - 1);
	return target_read_u64(&v->memory, d->methods + 8ull * (method - 1), &point->method, e);
}

int java_points_read(struct java_view *v, const struct java_code *code, uint64_t pc, struct java_point *list,
                     uint32_t *count, struct err *e)
{
	struct debug d;
	uint32_t scope = 0;

	int rc = debug_find(v, code, &d, e);
	*count = 0;
	rc = rc ?: scope_find(v, &d, pc - code->start, &scope, e);
	while (rc == 0 && scope) {
		if (*count == JAVA_INLINED_MAX)
			return err_set(e, EINVAL, "more than %u methods are inlined", JAVA_INLINED_MAX);
		rc = point_read(v, &d, &scope, &list[(*count)++], e);
	}
	return rc;
}

int java_code_debug_pc(struct java_view *v, const struct java_code *code, uint32_t n, uint64_t *pc, struct err *e)
{
	struct debug d;
	int32_t pair[2];

	int rc = debug_find(v, code, &d, e);
	if (rc == 0 && n + 2 >= d.count) /* the first and the last one are sentinels */
		return -ENOENT;
	rc = rc ?: pc_read(v, &d, n + 1, pair, e);
	if (rc == 0 && (pair[0] < 0 || (uint64_t)pair[0] > code->end - code->start))
		rc = err_set(e, EINVAL, "the code at 0x%" PRIx64 " has debug information outside of it", code->address);
	if (rc == 0)
		*pc = code->start + (uint32_t)pair[0];
	return rc;
}
