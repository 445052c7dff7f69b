/* SPDX-License-Identifier: MIT */
#include "walk/java_walk.h"

#include "arch/java_frame.h"

#define HOPS_MAX 1024u /* of a segmap: a block of 2 MB takes 65 */
/* Of the interpreter's frame, from the frame pointer on. */
#define SENDER (8 * JAVA_SENDER_SP)
#define METHOD (8 * JAVA_METHOD)
#define BYTECODE (8 * JAVA_BYTECODE)

/* Memory of HotSpot, or of the stack, that no C object of ours covers. */
#define READS __attribute__((no_sanitize("address", "thread", "undefined")))

READS static inline uint64_t word_at(uint64_t address)
{
	return *(const volatile uint64_t *)address;
}

READS static inline uint8_t byte_at(uint64_t address)
{
	return *(const volatile uint8_t *)address;
}

READS static inline uint32_t int_at(uint64_t address)
{
	return *(const volatile uint32_t *)address;
}

/* The start of the block that holds pc; 0: none does. */
static uint64_t block_find(const struct java_code_heap *heap, uint64_t pc)
{
	const uint64_t high = word_at(heap->high), segments = word_at(heap->segmap_high) - heap->segmap;
	uint64_t segment = (pc - heap->low) >> heap->shift;

	if (pc >= high || segment >= segments)
		return 0;
	for (uint32_t hop = 0; hop < HOPS_MAX; hop++) {
		uint8_t back = byte_at(heap->segmap + segment);

		if (back == 0) {
			uint64_t block = heap->low + (segment << heap->shift);
			return high - block >= JAVA_BLOB_BYTES ? block : 0;
		}
		if (back == JAVA_NO_SEGMENT || back > segment)
			return 0;
		segment -= back;
	}
	return 0;
}

static uint64_t block_of(const struct java_layout *l, uint64_t pc)
{
	const struct java_code_heap *heap = NULL;

	for (uint32_t i = 0; i < l->heap_count; i++)
		if (pc >= l->heaps[i].low && (!heap || l->heaps[i].low > heap->low))
			heap = &l->heaps[i];
	return heap ? block_find(heap, pc) : 0;
}

/* May the words from there on be read, so many bytes? */
static bool covers(uint64_t start, uint64_t end, uint64_t address, uint64_t bytes)
{
	return !(address & 7) && address >= start && address < end && bytes <= end - address;
}

/* A frame of the interpreter: its Method, if that can be one, and the bytecode. */
static uint64_t interpreted_frame(uint64_t pc, uint64_t start, uint64_t end, uint64_t fp)
{
	uint64_t method;

	if (!covers(start, end, fp + (uint64_t)BYTECODE, (uint64_t)(METHOD + 8 - BYTECODE)))
		return pc;
	method = word_at(fp + (uint64_t)METHOD);
	if (!method || (method & 7) || method >= JAVA_FRAME_END)
		return pc;
	method = JAVA_FRAME_AGED(method, __atomic_load_n(&payload.dump->java_age, __ATOMIC_RELAXED));
	return JAVA_FRAME(method, word_at(fp + (uint64_t)BYTECODE));
}

static bool step_interpreted(uint64_t pc, uint64_t start, uint64_t end, uint64_t fp, struct java_step *step)
{
	if (!covers(start, end, fp + (uint64_t)SENDER, 24))
		return false;
	step->sp = word_at(fp + (uint64_t)SENDER);
	if (JAVA_SENDER_MAY_BE_BELOW && step->sp <= fp)
		step->sp = fp + 16;
	step->frame = interpreted_frame(pc, start, end, fp);
	step->link = fp;
	return !(step->sp & 7) && step->sp > start && step->sp <= end;
}

/* Where deoptimised code was left: its caller's return address has become that of a handler. */
static uint64_t original_pc(const struct java_layout *l, uint64_t block, uint64_t pc, uint64_t start, uint64_t frame)
{
	for (int i = 0; i < 2; i++) {
		uint64_t at = block + l->handlers[i], kept;

		if (!l->handlers[i] || pc != (l->handler_base ? block + l->handler_base + int_at(at) : word_at(at)))
			continue;
		at = int_at(block + l->original);
		if ((at & 7) || at >= frame - 16)
			return pc;
		kept = word_at(start + at);
		return kept < JAVA_FRAME_END ? kept : pc;
	}
	return pc;
}

static bool step_compiled(uint64_t pc, uint64_t start, uint64_t end, struct java_step *step)
{
	const struct java_layout *l = &payload.java;
	uint64_t block = block_of(l, pc), frame;

	if (!block || !byte_at(block + l->block_used) || pc - l->barrier < l->barrier_end - l->barrier)
		return false;
	frame = 8ull * int_at(block + l->frame_words);
	if (frame < 16 || !covers(start, end, start + frame - 16, 16))
		return false;
	step->sp = start + frame;
	step->link = start + frame - 16;
	step->frame = JAVA_FRAME(original_pc(l, block, pc, start, frame), int_at(block + l->compile_id));
	return true;
}

bool java_walk_step(uint64_t pc, uint64_t start, uint64_t end, uint64_t fp, struct java_step *step)
{
	const struct java_layout *l = &payload.java;

	if (pc - l->interpreter < l->interpreter_end - l->interpreter)
		return step_interpreted(pc, start, end, fp, step);
	if (pc == l->call_stub_return) {
		*step = (struct java_step){ .sp = fp + 16, .frame = pc, .link = fp };
		return covers(start, end, fp, 16);
	}
	return step_compiled(pc, start, end, step);
}
