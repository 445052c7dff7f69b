/* SPDX-License-Identifier: MIT */
#include "run/steps/memory_usage.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/now.h"
#include "census/memory_look.h"
#include "host/clocks.h"
#include "sandbox/child.h"

#define LEAST_NS 1000000000u /* from one moment to the next */
#define REST_TIMES 50u
#define MOMENTS 2000u /* in so many parts of the time that has gone by there is one */
#define MOST_NS 5000000000u
#define FAILED_REST_NS 60000000000u
#define OWN_NAME "/memfd:memattach"

/* Shared with the child. */
struct usage_look {
	_Atomic bool done;
	uint64_t cpu_ns;
	struct memory_look look;
};

static uint64_t moments_apart(const struct session *s, uint64_t now_ns)
{
	const uint64_t apart = (now_ns - s->recording.started_ns) / MOMENTS;

	return apart > LEAST_NS ? apart : LEAST_NS;
}

static void record(struct memory_usage *u, struct session *s, struct dump_usage *usage)
{
	uint64_t *shared = &usage->parts[DUMP_MEMORY_SHARED];
	const uint64_t own = u->own_bytes < *shared ? u->own_bytes : *shared;

	*shared -= own;
	usage->rss -= own < usage->rss ? own : usage->rss;
	u->full = dump_writer_usage(&s->recording.dump, usage, ERR_IGNORED) < 0;
}

static void record_look(struct memory_usage *u, struct session *s)
{
	const struct memory_look *look = &u->look->look;
	struct dump_usage usage = { .flags = (uint32_t)look->look.flags | DUMP_USAGE_LOOK,
		                    .stamp = look->look.stamp,
		                    .rss = look->look.rss };

	u->own_bytes = 0;
	for (uint32_t i = 0; i < look->count; i++) {
		const struct memory_look_row *row = &look->rows[i];
		usage.parts[row->row.kind] += row->row.resident;
		usage.swapped += row->row.swapped;
		if (!strncmp(row->name, OWN_NAME, strlen(OWN_NAME)))
			u->own_bytes += row->row.resident;
	}
	record(u, s, &usage);
}

static void record_sums(struct memory_usage *u, struct session *s)
{
	struct memory_use use;
	struct dump_usage usage = { .stamp = clock_dump_stamp() };

	if (target_memory_use(&s->target, &use, ERR_IGNORED) < 0)
		return;
	usage.rss = use.resident;
	usage.parts[DUMP_MEMORY_ANONYMOUS] = use.anonymous;
	usage.parts[DUMP_MEMORY_FILES] = use.files;
	usage.parts[DUMP_MEMORY_SHARED] = use.shared;
	record(u, s, &usage);
}

static void look(struct usage_look *look, const struct session *s)
{
	struct memory_use use = { 0 };

	(void)!target_memory_use(&s->target, &use, ERR_IGNORED);
	const struct memory_look_wish wish = { .pages_ns = memory_look_pages_ns(use.resident) };
	const bool whole = memory_look_take(&look->look, &s->target, &wish, ERR_IGNORED) == 0 &&
	                   target_alive(&s->target) && target_same_program(&s->target);
	look->cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	atomic_store_explicit(&look->done, whole, memory_order_release);
}

static void begin(struct memory_usage *u, struct session *s, uint64_t now_ns)
{
	if (!u->look) {
		u->look = mmap(NULL, sizeof *u->look, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		u->look = u->look == MAP_FAILED ? NULL : u->look;
	}
	u->next_look_ns = now_ns + FAILED_REST_NS;
	if (!u->look)
		return;
	atomic_store_explicit(&u->look->done, false, memory_order_relaxed);
	u->give_up_ns = now_ns + MOST_NS;
	const pid_t child = child_start(SIGKILL);
	if (child == 0) {
		look(u->look, s);
		_exit(0);
	}
	u->child = child > 0 ? child : 0;
}

/* The look has come to its end, or has to. */
static void finish(struct memory_usage *u, struct session *s, uint64_t now_ns)
{
	const bool ended = child_ends_within(u->child, 0);

	if (!ended && now_ns < u->give_up_ns)
		return;
	child_end(u->child);
	u->child = 0;
	if (!atomic_load_explicit(&u->look->done, memory_order_acquire))
		return;
	const uint64_t rest = REST_TIMES * u->look->cpu_ns, apart = moments_apart(s, now_ns);
	u->next_look_ns = now_ns + (rest > apart ? rest : apart);
	u->next_ns = now_ns + apart;
	record_look(u, s);
}

void memory_usage_tick(struct memory_usage *u, struct session *s, uint64_t now_ns)
{
	if (u->full || s->options.share)
		return;
	if (u->child) {
		finish(u, s, now_ns);
	} else if (now_ns >= u->next_look_ns) {
		begin(u, s, now_ns);
	} else if (now_ns >= u->next_ns) {
		u->next_ns = now_ns + moments_apart(s, now_ns);
		record_sums(u, s);
	}
}

void memory_usage_end(struct memory_usage *u)
{
	if (u->child)
		child_end(u->child);
	if (u->look)
		munmap(u->look, sizeof *u->look);
	*u = (struct memory_usage){ 0 };
}
