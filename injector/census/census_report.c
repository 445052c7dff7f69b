/* SPDX-License-Identifier: MIT */
#include "census/census_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/line_width.h"
#include "base/printable.h"
#include "base/size.h"

#define ROWS 16u
#define WHAT_COLUMNS 46u

/* What a region is, printable; of a path its last part. */
static void describe(const struct region *r, char *text, size_t size)
{
	const char *title = region_kind_title(r->kind), *slash = strrchr(r->name, '/');
	const char *name = slash && slash[1] ? slash + 1 : r->name;

	if (r->kind == REGION_ARENA)
		snprintf(text, size, "%s, in %" PRIu64 " heaps", title, r->mappings);
	else if (r->kind == REGION_STACK)
		snprintf(text, size, "%s of threads '%s', %" PRIu64, title, name, r->mappings);
	else
		snprintf(text, size, "%s%s%s", title, name[0] ? " " : "", name);
	printable_copy(text, text, size);
	text[line_fit(text, WHAT_COLUMNS)] = '\0';
}

static void put_row(uint64_t resident, uint64_t swapped, uint64_t all, const char *what)
{
	char size[SIZE_TEXT], swap[SIZE_TEXT] = "";

	if (swapped)
		size_format((double)swapped, swap);
	printf("%11s %5.1f %% %11s  %s\n", size_format((double)resident, size),
	       all ? 100 * (double)resident / (double)all : 0, swap, what);
}

static void put_head(const struct census *c)
{
	char name[64], resident[SIZE_TEXT], gap[SIZE_TEXT];
	const uint64_t missing = census_gap(c);

	printable_copy(c->target->comm, name, sizeof name);
	printf("%s (PID %d): %s resident, ", name, c->target->pid, size_format((double)c->resident, resident));
	if (missing * 200 <= c->resident)
		printf("all accounted for\n");
	else
		printf("VmRSS differs by %s\n", size_format((double)missing, gap));
	if (c->rss_before != c->rss_after)
		printf("it changes: VmRSS was %s before, ", size_format((double)c->rss_before, gap)),
			printf("%s after\n", size_format((double)c->rss_after, gap));
}

static void put_text(struct census *c)
{
	uint64_t resident = 0, swapped = 0;
	char what[512];

	region_table_join_arenas(&c->regions);
	put_head(c);
	printf("\n%11s %7s %11s  %s\n", "resident", "", "swapped", "what");
	size_t shown = c->regions.count <= ROWS ? c->regions.count : ROWS - 1;
	for (size_t i = 0; i < shown; i++) {
		const struct region *r = &c->regions.list[i];
		if (!r->resident && !r->swapped)
			break;
		describe(r, what, sizeof what);
		put_row(r->resident, r->swapped, c->resident, what);
	}
	for (size_t i = shown; i < c->regions.count; i++) {
		resident += c->regions.list[i].resident;
		swapped += c->regions.list[i].swapped;
	}
	if (resident || swapped) {
		snprintf(what, sizeof what, "%zu others (--json has them)", c->regions.count - shown);
		put_row(resident, swapped, c->resident, what);
	}
	if (c->stackless)
		printf("\nThe stacks of %zu of %zu threads are not known; they count as anonymous.\n", c->stackless,
		       c->threads);
}

static void put_region(struct json *j, const struct region *r)
{
	json_object_line(j, NULL);
	json_string(j, "kind", region_kind_name(r->kind));
	json_string(j, "name", r->name);
	if (r->address)
		json_hex(j, "address", r->address);
	json_unsigned(j, "mappings", r->mappings);
	json_unsigned(j, "reserved", r->reserved);
	json_unsigned(j, "resident", r->resident);
	json_unsigned(j, "swapped", r->swapped);
	json_object_end(j);
}

static void put_json(const struct census *c)
{
	struct json j = { .out = stdout };

	json_object(&j, NULL);
	json_unsigned(&j, "pid", (uint64_t)c->target->pid);
	json_string(&j, "command", c->target->comm);
	json_unsigned(&j, "vm_rss_before", c->rss_before);
	json_unsigned(&j, "vm_rss_after", c->rss_after);
	json_unsigned(&j, "resident", c->resident);
	json_unsigned(&j, "swapped", c->swapped);
	json_unsigned(&j, "threads", c->threads);
	json_unsigned(&j, "threads_without_stack", c->stackless);
	json_array(&j, "regions");
	for (size_t i = 0; i < c->regions.count; i++)
		put_region(&j, &c->regions.list[i]);
	json_array_end(&j);
	json_object_end(&j);
}

int census_report(struct census *c, bool as_json, struct err *e)
{
	if (as_json)
		put_json(c);
	else
		put_text(c);
	return fflush(stdout) || ferror(stdout) ? err_set(e, EIO, "cannot write the census to standard output") : 0;
}
