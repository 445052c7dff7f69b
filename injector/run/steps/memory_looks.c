/* SPDX-License-Identifier: MIT */
#include "run/steps/memory_looks.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "census/memory_look.h"
#include "recording/live_residency.h"
#include "sandbox/child.h"

#define MOST_MS 5000

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

/* The memory of the dump is shared with the child. */
static void take_aside(struct session *s, struct taking *taking, bool end)
{
	const struct memory_look_wish wish = { .pages_ns = MEMORY_LOOK_PAGES_NS,
		                               .pages = end ? mark_blocks : NULL,
		                               .context = s };

	taking->error = (struct err){ .code = ETIMEDOUT, .text = "it took too long" };
	const pid_t child = child_start(SIGKILL);
	if (child == 0) {
		taking->done = memory_look_take(&taking->look, &s->target, &wish, &taking->error) == 0;
		_exit(0);
	}
	if (child < 0)
		(void)err_sys(&taking->error, "no process can be made to look");
	else if (child_ends_within(child, MOST_MS))
		waitpid(child, NULL, 0);
	else
		child_end(child);
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

void session_look_at_memory(struct session *s, enum dump_memory_moment moment)
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
