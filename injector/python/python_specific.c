/* SPDX-License-Identifier: MIT */
#include "python/python_specific.h"

#include <inttypes.h>
#include <string.h>

#include "elf/module_file.h"
#include "arch/thread_block.h"

#define LIBPTHREAD "libpthread"
#define OFFSET_MAX 0x10000u /* of a control block */

/* nptl_db's description of a member: its bits, how many there are, its offset. */
struct member {
	uint32_t bits, count, offset;
};

enum wanted {
	SPECIFIC,
	TID,
	LEAVING,
	KEY_VALUE,
	KEY_BYTES, /* one word */
	KEY_TABLE, /* the table itself */
	TABLE,
	ENTRY_SEQUENCE,
	ENTRY_BYTES, /* one word */
	BLOCK_BYTES, /* one word */
	LIST,
	LIST_NEXT,
	LIST_PREVIOUS,
	NEEDED,
	LINK_NUMBER = NEEDED, /* these may be missing */
	LINK_DISTANCE,
	WANTED
};

static const char *const names[WANTED] = {
	[SPECIFIC] = "_thread_db_pthread_specific",
	[TID] = "_thread_db_pthread_tid",
	[LEAVING] = "_thread_db_pthread_cancelhandling",
	[KEY_VALUE] = "_thread_db_pthread_key_data_data",
	[KEY_BYTES] = "_thread_db_sizeof_pthread_key_data",
	[KEY_TABLE] = "__pthread_keys",
	[TABLE] = "_thread_db___pthread_keys",
	[ENTRY_SEQUENCE] = "_thread_db_pthread_key_struct_seq",
	[ENTRY_BYTES] = "_thread_db_sizeof_pthread_key_struct",
	[BLOCK_BYTES] = "_thread_db_sizeof_pthread",
	[LIST] = "_thread_db_pthread_list",
	[LIST_NEXT] = "_thread_db_list_t_next",
	[LIST_PREVIOUS] = "_thread_db_list_t_prev",
	[LINK_NUMBER] = "_thread_db_link_map_l_tls_modid",
	[LINK_DISTANCE] = "_thread_db_link_map_l_tls_offset",
};

static bool on_symbol(void *context, const char *name, uint64_t address, uint64_t bytes, unsigned type)
{
	uint64_t *places = context;

	(void)bytes;
	for (unsigned i = 0; i < WANTED && type == STT_OBJECT; i++)
		if (!strcmp(name, names[i]))
			places[i] = address;
	return true;
}

static bool find_all(uint64_t *places, const struct modules *modules, const struct maps *maps,
                     const struct target_memory *tm)
{
	for (size_t i = 0; i < modules->count; i++) {
		const struct elf_module *m = &modules->list[i];
		struct elf_symbol s;
		struct module_file f;

		if (m->namespace_id)
			continue;
		for (unsigned k = 0; k < WANTED; k++)
			if (!places[k] && elf_module_find(m, names[k], "GLIBC_PRIVATE", &s))
				places[k] = s.address;
		if (strncmp(elf_module_name(m), LIBPTHREAD, strlen(LIBPTHREAD)) != 0 || places[SPECIFIC])
			continue;
		module_file_open(&f, m, tm, maps);
		(void)module_file_symbols(&f, on_symbol, places);
		module_file_close(&f);
	}
	for (unsigned k = 0; k < NEEDED; k++)
		if (!places[k])
			return false;
	return true;
}

/* Of a word in the link map, 0: it is not told. */
static uint32_t link_word(const struct target_memory *tm, uint64_t place)
{
	struct member word;

	if (!place || target_read(tm, place, &word, sizeof word, ERR_IGNORED) < 0)
		return 0;
	return word.bits == 64 && word.count == 1 && word.offset <= OFFSET_MAX ? word.offset : 0;
}

/* Code inside of the process is going to read it. */
static bool is_table(const struct modules *modules, uint64_t address)
{
	const struct elf_module *m = modules_find(modules, address, false);

	return m && address % sizeof address == 0 && elf_module_holds(m, address, PYTHON_KEYS * PYTHON_KEY_ENTRY, PF_W);
}

int python_specific_find(struct python_specific *s, const struct modules *modules, const struct maps *maps,
                         const struct target_memory *tm, struct err *e)
{
	uint64_t places[WANTED] = { 0 };
	struct member specific, tid, leaving, value, table, sequence, list, next, previous;
	uint32_t key_bytes, entry_bytes, block_bytes;

	if (!find_all(places, modules, maps, tm)) {
		int rc = budget_check(tm->budget, e);
		return rc ?: err_set(e, ENOSYS, "its C library does not tell where a thread's own values are");
	}
	const struct target_piece pieces[] = {
		{ places[SPECIFIC], sizeof specific, &specific },
		{ places[TID], sizeof tid, &tid },
		{ places[LEAVING], sizeof leaving, &leaving },
		{ places[KEY_VALUE], sizeof value, &value },
		{ places[KEY_BYTES], sizeof key_bytes, &key_bytes },
		{ places[TABLE], sizeof table, &table },
		{ places[ENTRY_SEQUENCE], sizeof sequence, &sequence },
		{ places[ENTRY_BYTES], sizeof entry_bytes, &entry_bytes },
		{ places[BLOCK_BYTES], sizeof block_bytes, &block_bytes },
		{ places[LIST], sizeof list, &list },
		{ places[LIST_NEXT], sizeof next, &next },
		{ places[LIST_PREVIOUS], sizeof previous, &previous },
	};
	int rc = target_read_batch(tm, pieces, sizeof pieces / sizeof pieces[0], e);
	if (rc)
		return rc;
	if (specific.bits != PYTHON_KEYS / PYTHON_BLOCK_KEYS * 64 || specific.count != 1 ||
	    specific.offset > OFFSET_MAX || tid.bits != 32 || tid.offset > OFFSET_MAX || leaving.bits != 32 ||
	    leaving.count != 1 || leaving.offset > OFFSET_MAX || value.offset != PYTHON_KEY_VALUE ||
	    key_bytes != PYTHON_KEY_BYTES || table.bits != PYTHON_KEY_ENTRY * 8 || table.count != PYTHON_KEYS ||
	    entry_bytes != PYTHON_KEY_ENTRY || sequence.bits != 64 || sequence.offset != 0 || block_bytes % 16 ||
	    block_bytes > OFFSET_MAX || list.offset > OFFSET_MAX || next.offset != 0 || previous.offset > OFFSET_MAX ||
	    !is_table(modules, places[KEY_TABLE]))
		return err_set(e, ENOSYS, "its C library keeps a thread's own values in a way that is not known");
	*s = (struct python_specific){ .block_below = THREAD_BLOCK_SELF ? 0 : block_bytes,
		                       .offset = specific.offset,
		                       .tid_offset = tid.offset,
		                       .leaving_offset = leaving.offset,
		                       .list_offset = list.offset,
		                       .list_previous = previous.offset,
		                       .link_number = link_word(tm, places[LINK_NUMBER]),
		                       .link_distance = link_word(tm, places[LINK_DISTANCE]),
		                       .key_table = places[KEY_TABLE] };
	return 0;
}

/* It names itself, or it is a node of the list of all. */
bool python_specific_is_thread(const struct python_view *v, const struct python_specific *s, uint64_t thread)
{
	const uint64_t node = THREAD_BLOCK_SELF ? thread : thread + s->list_offset;
	uint64_t word, back = 0;

	if (target_read_u64(&v->memory, node, &word, ERR_IGNORED))
		return false;
	if (THREAD_BLOCK_SELF)
		return word == thread;
	return target_read_u64(&v->memory, word + s->list_previous, &back, ERR_IGNORED) == 0 && back == node;
}

int python_specific_value(const struct python_view *v, const struct python_specific *s, uint64_t thread,
                          uint64_t *state, struct err *e)
{
	struct {
		int32_t exists;
		uint32_t number;
	} key;
	struct {
		uint64_t sequence;
		uint64_t value;
	} own = { 0 };
	uint64_t block, sequence;

	_Static_assert(sizeof own == PYTHON_KEY_BYTES && sizeof own.sequence == PYTHON_KEY_VALUE, "as glibc keeps it");
	int rc = target_read(&v->memory, v->runtime + v->release->runtime_key, &key, sizeof key, e);
	if (rc == 0 && (key.exists != 1 || key.number >= PYTHON_KEYS))
		rc = err_set(e, EINVAL, "it has no key for a thread's own state");
	if (rc == 0 && !python_specific_is_thread(v, s, thread))
		rc = err_set(e, EINVAL, "0x%" PRIx64 " is no thread's control block", thread);
	rc = rc ?: target_read_u64(&v->memory, thread + s->offset + key.number / PYTHON_BLOCK_KEYS * 8ull, &block, e);
	rc = rc ?: target_read_u64(&v->memory, s->key_table + (uint64_t)key.number * PYTHON_KEY_ENTRY, &sequence, e);
	if (rc == 0 && block)
		rc = target_read(&v->memory, block + (uint64_t)(key.number % PYTHON_BLOCK_KEYS) * PYTHON_KEY_BYTES,
		                 &own, sizeof own, e);
	if (rc == 0)
		*state = own.sequence == sequence ? own.value : 0;
	return rc;
}

int32_t python_specific_tid(const struct python_view *v, const struct python_specific *s, uint64_t thread)
{
	int32_t tid;

	return target_read(&v->memory, thread + s->tid_offset, &tid, sizeof tid, ERR_IGNORED) ? 0 : tid;
}
