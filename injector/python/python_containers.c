/* SPDX-License-Identifier: MIT */
#include "python/python_containers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define HEAD_MAX 64u
#define KEY_CHARS 15u /* of a key that is looked for */

/* The entries of a dict, in use or given up. */
struct entries {
	const struct python_dict_entry *layout;
	uint64_t start;
	uint64_t count;
};

static int bad_keys(uint64_t keys, struct err *e)
{
	return err_set(e, EINVAL, "the keys of a dict at 0x%" PRIx64 " are as no keys are, or too many", keys);
}

static const struct python_dict_entry *entry_of(const struct python_release *r, uint32_t kind)
{
	for (size_t i = 0; i < sizeof r->dict_entries / sizeof r->dict_entries[0]; i++)
		if (r->dict_entries[i].bytes && r->dict_entries[i].kind == kind)
			return &r->dict_entries[i];
	return NULL;
}

/* Of the index, which has a signed number for each slot that is as wide as it must be; 0: there is none like that. */
static uint64_t index_bytes(const struct python_release *r, const uint8_t *head)
{
	uint64_t slots;

	if (r->keys_slots == PYTHON_ABSENT)
		return head[r->keys_index_log2] < 16 ? 1ull << head[r->keys_index_log2] : 0;
	memcpy(&slots, head + r->keys_slots, sizeof slots);
	return !slots || slots > PYTHON_DICT_SLOTS_MAX || slots & (slots - 1) ? 0 : slots <= 0xff ? slots : 2 * slots;
}

static int allocator_entries_find(struct python_view *v, uint64_t dict, struct entries *found, struct err *e)
{
	const struct python_release *r = v->release;
	uint8_t head[HEAD_MAX];
	uint64_t keys = 0, values = 0;
	const struct target_piece words[] = { { dict + r->dict_keys, 8, &keys },
		                              { dict + r->dict_values, 8, &values } };

	int rc = python_object_check(v, dict, PYTHON_DICT, e);
	rc = rc ?: target_read_batch(&v->memory, words, 2, e);
	if (rc == 0 && values)
		rc = err_set(e, EINVAL, "the dict at 0x%" PRIx64 " has its values elsewhere", dict);
	rc = rc ?: target_read(&v->memory, keys, head, r->keys_index, e);
	if (rc)
		return rc;
	uint64_t bytes = index_bytes(r, head);
	found->layout = entry_of(r, r->keys_kind != PYTHON_ABSENT ? head[r->keys_kind] : 0);
	found->start = keys + r->keys_index + bytes;
	memcpy(&found->count, head + r->keys_entry_count, sizeof found->count);
	return bytes && found->layout && found->count <= PYTHON_DICT_SLOTS_MAX ? 0 : bad_keys(keys, e);
}

static int search(struct python_view *v, const struct entries *at, const char *key, uint64_t *value, struct err *e)
{
	char text[4 * KEY_CHARS + 4];
	const uint64_t bytes = at->count * at->layout->bytes;

	int rc = budget_fits(v->memory.budget, bytes, e);
	if (rc)
		return rc;
	AUTO_FREE uint8_t *entries = malloc(bytes + 1);
	if (!entries)
		return err_set(e, ENOMEM, "no memory for a dict");
	rc = target_read(&v->memory, at->start, entries, bytes, e);
	for (uint64_t i = 0; i < at->count && rc == 0; i++) {
		const uint8_t *entry = entries + i * at->layout->bytes;
		uint64_t name;

		memcpy(&name, entry + at->layout->key, sizeof name);
		memcpy(value, entry + at->layout->value, sizeof *value);
		if (!name || !*value)
			continue;
		rc = python_string_whole(v, name, text, KEY_CHARS, e);
		if (rc == 0 && strcmp(text, key) == 0)
			return 0;
		/* Another type of key, a longer one, or one that has gone. */
		rc = python_is_of_objects(rc) ? 0 : rc;
	}
	*value = 0;
	return rc;
}

int python_dict_find(struct python_view *v, uint64_t dict, const char *key, uint64_t *value, struct err *e)
{
	struct entries at;

	int rc = allocator_entries_find(v, dict, &at, e);
	return rc ?: search(v, &at, key, value, e);
}

int python_list_read(struct python_view *v, uint64_t list, uint64_t *items, uint32_t max, uint32_t *count,
                     struct err *e)
{
	const struct python_release *r = v->release;
	uint64_t all = 0, at = 0;
	const struct target_piece words[] = { { list + r->list_count, 8, &all }, { list + r->list_items, 8, &at } };

	int rc = python_object_check(v, list, PYTHON_LIST, e);
	rc = rc ?: target_read_batch(&v->memory, words, 2, e);
	if (rc)
		return rc;
	*count = all < max ? (uint32_t)all : max;
	return target_read(&v->memory, at, items, *count * sizeof *items, e);
}
