/* SPDX-License-Identifier: MIT */
/* Code objects that need not be read again, see known_code.h. */
#include "python/known_code.h"

#include "hook_call.h"

struct known_code known_codes[KNOWN_CODE_SETS][KNOWN_CODE_WAYS] PAYLOAD_PAGES;

/* (atomic) Calls of the function of PyCode_Type.tp_dealloc and 1, for hooks.S; never set back. */
struct code_deallocations {
	uint64_t count;
	uint64_t apart_[15];
} code_deallocations HIDDEN __attribute__((aligned(128))) = { .count = 1 };

struct counted_function counted_function __attribute__((aligned(64)));

/* All (atomic). */
static struct {
	uint64_t last; /* generation that the last sample has found, */
	uint32_t calm; /* and how many before it, up to KNOWN_CODE_CALM; both may be behind */
} watched;

_Static_assert(KNOWN_CODE_WAYS * sizeof(struct known_code) == 64, "a set fills a cache line");

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

void known_code_end(void)
{
	store(&counted_function.jump, 0);
}

/* Is the jump there, and does the pointer still lead to it? Code begins at any byte. */
static bool is_counted(uint64_t jump)
{
	typedef uint64_t code_bytes __attribute__((aligned(1), may_alias));

	return *(const volatile code_bytes *)jump == load(&counted_function.code) &&
	       load((const uint64_t *)load(&counted_function.pointer)) == load(&counted_function.function);
}

uint64_t known_code_generation(void)
{
	uint64_t jump = __atomic_load_n(&counted_function.jump, __ATOMIC_ACQUIRE), now;
	uint32_t calm = __atomic_load_n(&watched.calm, __ATOMIC_RELAXED);

	if (!jump)
		return 0;
	if (!is_counted(jump)) {
		known_code_end();
		return 0;
	}
	now = load(&code_deallocations.count);
	if (load(&watched.last) != now) {
		store(&watched.last, now);
		__atomic_store_n(&watched.calm, 0, __ATOMIC_RELAXED);
		return 0;
	}
	if (calm < KNOWN_CODE_CALM) {
		__atomic_store_n(&watched.calm, calm + 1, __ATOMIC_RELAXED);
		return 0;
	}
	return now;
}

static struct known_code *set_of(uint64_t address)
{
	return known_codes[address * HASH_MULTIPLIER >> 32 & (KNOWN_CODE_SETS - 1)];
}

bool known_code_find(uint64_t generation, uint64_t address, uint64_t *hash)
{
	const struct known_code *set = set_of(address);

	for (uint32_t i = 0; i < KNOWN_CODE_WAYS; i++) {
		*hash = load(&set[i].hash);
		if (*hash && (load(&set[i].address) ^ *hash) == address &&
		    (load(&set[i].generation) ^ *hash) == generation)
			return true;
	}
	return false;
}

/* Over what is out of date, or else over either. */
static struct known_code *way_of(struct known_code *set, uint64_t generation, uint64_t hash)
{
	for (uint32_t i = 0; i < KNOWN_CODE_WAYS; i++)
		if ((load(&set[i].generation) ^ load(&set[i].hash)) != generation)
			return &set[i];
	return &set[hash % KNOWN_CODE_WAYS];
}

void known_code_keep(uint64_t generation, uint64_t address, uint64_t hash)
{
	struct known_code *entry = way_of(set_of(address), generation, hash);

	store(&entry->hash, hash);
	store(&entry->address, address ^ hash);
	store(&entry->generation, generation ^ hash);
}
