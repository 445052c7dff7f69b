/* SPDX-License-Identifier: MIT */
#include "elf/loader_locks.h"

#include <string.h>

#include "arch/thread_block.h"

#define GLOBAL_BYTES_MAX 16384u
#define NAMESPACES_MAX 64u /* glibc has 16 */
#define KIND_RECURSIVE 1   /* PTHREAD_MUTEX_RECURSIVE_NP */

/* glibc's pthread_mutex_t (sysdeps/nptl/bits/struct_mutex.h, and x86/nptl: two halves in place of spins). */
struct mutex {
	int32_t lock;
	uint32_t count;
	int32_t owner;
	uint32_t users;
	int32_t kind;
	int16_t spins, elision;
	uint64_t list[2];
	uint8_t rest[MUTEX_BYTES - 40];
};
_Static_assert(sizeof(struct mutex) == MUTEX_BYTES, "pthread_mutex_t");

struct locks {
	uint64_t namespaces;
	struct mutex load, write;
};

static bool is_mutex(const struct mutex *m)
{
	return m->kind == KIND_RECURSIVE && m->lock >= 0 && m->lock <= 2 && !m->spins && !m->elision && !m->list[0] &&
	       !m->list[1];
}

uint64_t loader_locks_find(const struct modules *m, const struct target_memory *memory)
{
	const struct elf_module *loader = modules_loader(m);
	unsigned char bytes[GLOBAL_BYTES_MAX];
	struct elf_symbol s;

	if (!loader || !elf_module_find(loader, "_rtld_global", NULL, &s) || s.function || s.bytes > sizeof bytes ||
	    target_read(memory, s.address, bytes, s.bytes, ERR_IGNORED) < 0)
		return 0;
	for (size_t at = 0; at + sizeof(struct locks) <= s.bytes; at += sizeof(uint64_t)) {
		struct locks found;
		memcpy(&found, bytes + at, sizeof found);
		if (found.namespaces && found.namespaces <= NAMESPACES_MAX && is_mutex(&found.load) &&
		    is_mutex(&found.write))
			return s.address + at + offsetof(struct locks, load);
	}
	return 0;
}

bool loader_locks_are_free(uint64_t locks, const struct target_memory *memory)
{
	struct mutex now[2];

	return target_read(memory, locks, now, sizeof now, ERR_IGNORED) == 0 && !now[0].lock && !now[0].owner &&
	       !now[1].lock && !now[1].owner;
}
