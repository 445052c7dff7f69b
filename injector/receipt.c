/* SPDX-License-Identifier: MIT */
#include "receipt.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "follow.h"
#include "payload_symbols.h"

struct comparison {
	struct session *s;
};

static bool is_ours(const struct session *s, const char *name)
{
	return strstr(name, PAYLOAD_MEMFD_NAME) || strstr(name, TABLES_MEMFD_NAME) ||
	       (s->dump.path[0] && strcmp(name, s->dump.path) == 0);
}

/*
 * The program maps and unmaps by itself; what memattach can have caused are mappings of its files, mappings at its addresses, and changed
 * protections of memory that was there before.
 */
static void compare_mapping(void *context, const struct maps_change *change)
{
	struct session *s = ((struct comparison *)context)->s;
	const struct mapping *after = change->after, *before = change->before;
	char text[300];

	bool file = after && is_ours(s, after->path);
	bool protection = before && after && before->prot != after->prot && before->inode == after->inode &&
			  modules_find(&s->modules, change->start, false);
	if (file || protection)
		session_add_residue(s, "mapping %s", maps_change_format(change, text, sizeof text));
}

static void compare_descriptors(struct session *s, const struct snapshot *after)
{
	for (size_t i = 0; i < after->descriptor_count; i++)
		if (is_ours(s, after->descriptors[i].target))
			session_add_residue(s, "descriptor %d: %s", after->descriptors[i].number, after->descriptors[i].target);
}

static void compare_signals(struct session *s, const struct snapshot *after)
{
	/* A trap that memattach might have reset is one that the program had before. */
	uint64_t lost = (s->before.ignored & ~after->ignored & ~after->caught) | (s->before.caught & ~after->caught);

	if (lost)
		session_say(s, "memattach: the program changed dispositions of signals during the session (mask %llx)",
			    (unsigned long long)lost);
	for (size_t i = 0; i < after->thread_count; i++)
		if (after->threads[i].blocked == ~0ull >> 1 || after->threads[i].blocked == ~0ull)
			session_add_residue(s, "thread %d has all signals blocked", after->threads[i].tid);
}

int receipt_verify(struct session *s, struct err *e)
{
	struct comparison comparison = { s };
	struct snapshot after;

	int rc = snapshot_take(&after, &s->target, e);
	if (rc < 0)
		return rc;
	if (s->have_before) {
		maps_diff(&s->before.maps, &after.maps, compare_mapping, &comparison);
		compare_signals(s, &after);
	} else {
		for (size_t i = 0; i < after.maps.count; i++)
			if (is_ours(s, after.maps.list[i].path))
				session_add_residue(s, "mapping %llx-%llx %s", (unsigned long long)after.maps.list[i].start,
						    (unsigned long long)after.maps.list[i].end, after.maps.list[i].path);
	}
	compare_descriptors(s, &after);
	snapshot_free(&after);
	return 0;
}

static void put_string(FILE *f, const char *text, size_t length)
{
	fputc('"', f);
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

int receipt_write(const struct session *s, struct err *e)
{
	if (!s->options.receipt)
		return 0;
	FILE *f = fopen(s->options.receipt, "we");
	if (!f)
		return err_sys(e, "cannot write the receipt %s", s->options.receipt);
	fprintf(f, "{\"pid\":%d,\"stopped_ms\":{\"attach\":%.3f,\"detach\":%.3f},", s->target.pid,
		(double)s->attach_longest_ns / 1e6, (double)s->detach_longest_ns / 1e6);
	fprintf(f, "\"slots\":{\"patched\":%u,\"restored\":%u,\"foreign\":%u,\"gone\":%u},", s->slots_patched, s->slots_restored,
		s->slots_foreign, s->slots_gone);
	fprintf(f, "\"clean\":%s,\"residue\":[", s->residue ? "false" : "true");
	for (const char *line = s->residue; line && *line;) {
		size_t length = strcspn(line, "\n");
		if (line != s->residue)
			fputc(',', f);
		put_string(f, line, length);
		line += length + (line[length] == '\n');
	}
	fprintf(f, "]}\n");
	if (fclose(f) != 0)
		return err_sys(e, "cannot write the receipt %s", s->options.receipt);
	return 0;
}
