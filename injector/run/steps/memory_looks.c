/* SPDX-License-Identifier: MIT */
#include "run/steps/memory_looks.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "census/census.h"
#include "census/memory_look.h"
#include "host/clocks.h"
#include "host/say.h"
#include "host/watchdog.h"
#include "recording/live/live_labels.h"
#include "recording/live/live_residency.h"
#include "sandbox/child.h"
#include "session/status_line.h"

#define MOST_NS 5000000000ull
#define HOLDERS_NS 600000000000ull /* following pointers has a budget of CPU time of its own (census_lost.h) */

/* Shared with the child. */
struct taking {
	bool done;
	struct err error;
	struct memory_look look;
};

/* What is done about the blocks that are live at the end. */
struct marking {
	const struct session *session;
	struct block_labels *labels; /* NULL: there is no memory for them */
};

static void mark_blocks(void *context, const struct quick_scan *scan, const struct census_heap *heap,
                        struct census_memory *memory)
{
	const struct marking *m = context;
	const uint64_t ns = m->session->options.holders ? LIVE_LABELS_ASKED_NS : LIVE_LABELS_NS;

	live_residency_mark(&m->session->recording.dump, scan, memory->files.maps);
	if (m->labels && block_labels_find_types(m->labels, heap, memory, ns, ERR_IGNORED) < 0)
		m->labels->cut = true;
}

/* How long the child is waited for. */
struct waiting {
	uint64_t until_ns;
	unsigned asked;       /* to end, so often already */
	const char *given_up; /* why, or NULL */
};

static struct waiting waiting_for(uint64_t ns, bool end)
{
	return (struct waiting){ .until_ns = clock_monotonic_ns() + ns, .asked = end ? watchdog_asked() : 0 };
}

static bool goes_on(void *context)
{
	struct waiting *p = context;

	if (watchdog_asked() > p->asked)
		p->given_up = "interrupted";
	else if (clock_monotonic_ns() >= p->until_ns)
		p->given_up = "it took too long";
	return !p->given_up;
}

/* What was read is of this program? Its number may be another's by now. */
static bool is_still_there(const struct target *t, struct err *e)
{
	if (target_alive(t) && target_same_program(t))
		return true;
	(void)err_set(e, ESRCH, "it has ended, or executed another program, meanwhile");
	return false;
}

/* The memory of the dump is shared with the child. */
static void take_aside(struct session *s, struct taking *taking, struct block_labels *labels, bool end)
{
	struct marking marking = { s, labels };
	struct memory_use use = { 0 };

	(void)!target_memory_use(&s->target, &use, ERR_IGNORED);
	const struct memory_look_wish wish = { .pages_ns = memory_look_pages_ns(use.resident),
		                               .pages = end ? mark_blocks : NULL,
		                               .context = &marking };

	struct waiting waiting = waiting_for(MOST_NS, end);

	taking->error = (struct err){ .code = ESRCH, .text = "the process that looks was ended" };
	const pid_t child = child_start(SIGKILL);
	if (child == 0) {
		taking->done = memory_look_take(&taking->look, &s->target, &wish, &taking->error) == 0 &&
		               is_still_there(&s->target, &taking->error);
		_exit(0);
	}
	if (child < 0)
		(void)err_sys(&taking->error, "no process can be made to look");
	else
		child_await(child, goes_on, &waiting, NULL);
	if (!taking->done && waiting.given_up)
		(void)err_set(&taking->error, EINTR, "%s", waiting.given_up);
}

static int record(struct dump_writer *w, const struct memory_look *look, uint16_t moment, struct err *e)
{
	struct dump_look whole = look->look;
	int rc = 0;

	for (uint32_t i = 0; i < look->count && rc == 0; i++) {
		struct dump_memory row = look->rows[i].row;
		row.moment = moment;
		rc = dump_writer_memory(w, &row, look->rows[i].name, e);
	}
	whole.moment = moment;
	return rc == 0 ? dump_writer_look(w, &whole, look->text, e) : rc;
}

static void show_progress(uint64_t blocks)
{
	char line[64];

	snprintf(line, sizeof line, "following pointers: %" PRIu64 " blocks", blocks);
	say_status(line);
}

static void find_holders(const struct session *s, struct block_labels *labels)
{
	const struct census_wish wish = { .blocks = labels,
		                          .progress = status_line_wanted(s) ? show_progress : NULL,
		                          .budget_ns = s->options.budget_ns };
	struct census census;
	struct err e = { 0 };

	const int rc = census_take(&census, &s->target, &wish, &e);
	if (rc == 0 && is_still_there(&s->target, &e) && labels->holders_known)
		return;
	labels->holders_known = false;
	snprintf(labels->why, sizeof labels->why, "%.159s", census.lost.why[0] ? census.lost.why : e.text);
}

/* Who holds the blocks, by a process of its own as well. */
static void find_holders_aside(struct session *s, struct block_labels *labels)
{
	struct waiting waiting = waiting_for(HOLDERS_NS, true);

	if (!s->options.holders)
		return;
	const pid_t child = child_start(SIGKILL);
	if (child == 0) {
		find_holders(s, labels);
		_exit(0);
	}
	if (child < 0)
		snprintf(labels->why, sizeof labels->why, "no process can be made to look: %s", strerror(errno));
	else
		child_await(child, goes_on, &waiting, NULL);
	if (status_line_wanted(s))
		say_status(NULL);
	if (!labels->holders_known && !labels->why[0])
		snprintf(labels->why, sizeof labels->why, "%s",
		         waiting.given_up ? waiting.given_up : "the process that looks was ended");
}

static void record_labels(struct session *s, struct block_labels *labels)
{
	struct err e;

	find_holders_aside(s, labels);
	if (live_labels_record(labels, &s->recording.dump, &e) < 0 && s->options.verbose)
		session_say(s, "memattach: what its blocks are cannot be recorded: %s", e.text);
}

void memory_looks_take(struct session *s, enum dump_memory_moment moment)
{
	const struct dump_look failed = { .moment = (uint16_t)moment, .flags = DUMP_LOOK_FAILED };
	struct err e;

	struct taking *taking = mmap(NULL, sizeof *taking, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (taking == MAP_FAILED)
		return;
	struct block_labels *labels = moment == DUMP_MEMORY_END ? block_labels_new() : NULL;
	if (labels)
		live_labels_collect(labels, &s->recording.dump);
	take_aside(s, taking, labels, moment == DUMP_MEMORY_END);
	int rc = taking->done ? record(&s->recording.dump, &taking->look, (uint16_t)moment, &e)
	                      : dump_writer_look(&s->recording.dump, &failed, taking->error.text, &e);
	if (rc < 0 && s->options.verbose)
		session_say(s, "memattach: what its memory is cannot be recorded: %s", e.text);
	else if (!taking->done && s->options.verbose)
		session_say(s, "memattach: what its memory is cannot be looked at: %s", taking->error.text);
	if (taking->done && labels)
		record_labels(s, labels);
	block_labels_free(labels);
	munmap(taking, sizeof *taking);
}
