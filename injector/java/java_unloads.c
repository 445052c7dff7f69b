/* SPDX-License-Identifier: MIT */
#include "java/java_unloads.h"

#include <string.h>

#define COUNTER "java.cls.unloadedClasses"
#define LITTLE_ENDIAN_DATA 1u
#define TYPE_LONG 'J'
#define ENTRIES_MAX 4096u
#define ENTRY_BYTES_MAX (64u << 10)

/* As the first bytes of the data are, and of each entry (PerfDataPrologue, PerfDataEntry of HotSpot): stable, since
 * jps and jstat of other versions read them. */
struct prologue {
	uint8_t magic[4];
	uint8_t byte_order, major, minor, accessible;
	int32_t used, overflow;
	int64_t modified;
	int32_t entry_offset, entry_count;
};

struct entry {
	int32_t bytes, name_offset, vector_length;
	uint8_t type, flags, units, variability;
	int32_t data_offset;
};

static const uint8_t magic[4] = { 0xca, 0xfe, 0xc0, 0xc0 };

static int none(const char *why, struct err *e)
{
	return err_set(e, ENOENT, "it does not count the classes that it unloads: %s", why);
}

/* 1: it is the counter. */
static int look_at(struct java_view *v, uint64_t at, const struct entry *entry, struct err *e)
{
	char name[sizeof COUNTER];

	if (entry->name_offset < (int32_t)sizeof *entry || entry->name_offset >= entry->bytes ||
	    entry->data_offset < (int32_t)sizeof *entry || entry->data_offset > entry->bytes - 8)
		return none("its performance data make no sense", e);
	int rc = target_read_string(&v->memory, at + (uint32_t)entry->name_offset, name, sizeof name, e);
	if (rc == -ENAMETOOLONG || (rc == 0 && strcmp(name, COUNTER) != 0))
		return 0;
	if (rc == 0 && (entry->type != TYPE_LONG || entry->vector_length))
		rc = none("its performance data make no sense", e);
	return rc ?: 1;
}

int java_unloads_find(struct java_view *v, uint64_t *address, struct err *e)
{
	struct prologue p;
	uint64_t start = 0;

	int rc = v->s.counters.bytes ? java_field_read(&v->memory, 0, &v->s.counters, &start, e) : 0;
	if (rc == 0 && start == 0)
		return none("it has no performance data (-XX:-UsePerfData)", e);
	rc = rc ?: target_read(&v->memory, start, &p, sizeof p, e);
	if (rc)
		return rc;
	if (memcmp(p.magic, magic, sizeof magic) != 0 || p.byte_order != LITTLE_ENDIAN_DATA || p.major != 2 ||
	    p.entry_offset < 0)
		return none("its performance data are of another kind", e);
	uint64_t at = start + (uint32_t)p.entry_offset;
	for (int32_t i = 0; i < p.entry_count && i < (int32_t)ENTRIES_MAX; i++) {
		struct entry entry;
		rc = target_read(&v->memory, at, &entry, sizeof entry, e);
		if (rc == 0 && (entry.bytes < (int32_t)sizeof entry || entry.bytes > (int32_t)ENTRY_BYTES_MAX))
			return none("its performance data make no sense", e);
		rc = rc ?: look_at(v, at, &entry, e);
		if (rc == 1)
			*address = at + (uint32_t)entry.data_offset;
		if (rc)
			return rc == 1 ? 0 : rc;
		at += (uint32_t)entry.bytes;
	}
	return none("its performance data do not have " COUNTER, e);
}
