/* SPDX-License-Identifier: MIT */
#include "run/steps/memory_looks.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "census/memory_look.h"
#include "host/clocks.h"
#include "host/watchdog.h"
#include "recording/live_residency.h"
#include "sandbox/child.h"

#define MOST_NS 5000000000ull

/* Shared with the child. */
struct taking {
	bool done;
	struct err error;
	struct memory_look look;
};

static void mark_blocks(void *context, const struct quick_scan *scan, const struct maps *maps)
{
	const struct session *s = context;

	live_residency_mark(&s->recording.dump, scan, maps);
}

/* How long the child is waited for. */
struct waiting {
	uint64_t until_ns;
	unsigned asked;       /* to end, so often already */
	const char *given_up; /* why, or NULL */
};

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
static void take_aside(struct session *s, struct taking *taking, bool end)
{
	struct memory_use use = { 0 };

	(void)!target_memory_use(&s->target, &use, ERR_IGNORED);
	const struct memory_look_wish wish = { .pages_ns = memory_look_pages_ns(use.resident),
		                               .pages = end ? mark_blocks : NULL,
		                               .context = s };

	struct waiting waiting = { .until_ns = clock_monotonic_ns() + MOST_NS, .asked = end ? watchdog_asked() : 0 };

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

void memory_looks_take(struct session *s, enum dump_memory_moment moment)
{
	const struct dump_look failed = { .moment = (uint16_t)moment, .flags = DUMP_LOOK_FAILED };
	struct err e;

	struct taking *taking = mmap(NULL, sizeof *taking, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (taking == MAP_FAILED)
		return;
	take_aside(s, taking, moment == DUMP_MEMORY_END);
	int rc = taking->done ? record(&s->recording.dump, &taking->look, (uint16_t)moment, &e)
	                      : dump_writer_look(&s->recording.dump, &failed, taking->error.text, &e);
	if (rc < 0 && s->options.verbose)
		session_say(s, "memattach: what its memory is cannot be recorded: %s", e.text);
	else if (!taking->done && s->options.verbose)
		session_say(s, "memattach: what its memory is cannot be looked at: %s", taking->error.text);
	munmap(taking, sizeof *taking);
}
