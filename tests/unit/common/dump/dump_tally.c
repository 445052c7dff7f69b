/* SPDX-License-Identifier: MIT */
/* See dump_tally.h. */
#include "dump_tally.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int on_live(void *arg, const struct dump_live_record *record)
{
	struct tally *t = arg;

	t->live++;
	t->live_bytes += record->size;
	return 0;
}

static int on_history(void *arg, const struct dump_history_record *record)
{
	struct tally *t = arg;

	assert_true(record->rate_bytes > 0);
	t->history++;
	return 0;
}

static int on_stack(void *arg, uint32_t reference)
{
	struct tally *t = arg;
	struct dump_stack_copy copy;

	if (dump_read_stack(t->dump, reference, &copy))
		return 0;
	assert_true(copy.stack.frame_count <= DUMP_FRAMES_MAX);
	assert_true(isfinite(copy.stack.excess_bytes) && copy.stack.excess_bytes >= 0);
	t->stacks++;
	t->frames += copy.stack.frame_count;
	t->bytes += (double)copy.stack.taken_bytes + copy.stack.excess_bytes;
	return 0;
}

static int on_module(void *arg, const struct dump_module *module)
{
	struct tally *t = arg;

	t->modules++;
	snprintf(t->text, sizeof t->text, "%s", module->path);
	return 0;
}

static int on_thread(void *arg, const struct dump_thread *thread)
{
	struct tally *t = arg;

	assert_non_null(memchr(thread->name, 0, sizeof thread->name));
	t->threads++;
	return 0;
}

static int on_note(void *arg, uint32_t kind, const char *text)
{
	struct tally *t = arg;

	(void)kind;
	t->notes++;
	snprintf(t->text, sizeof t->text, "%s", text);
	return 0;
}

struct tally read_all(struct dump *dump)
{
	struct tally t = { .dump = dump };

	assert_int_equal(dump_each_live(dump, on_live, &t), 0);
	assert_int_equal(dump_each_history(dump, on_history, &t), 0);
	assert_int_equal(dump_each_stack(dump, on_stack, &t), 0);
	assert_int_equal(dump_each_module(dump, on_module, &t), 0);
	assert_int_equal(dump_each_thread(dump, on_thread, &t), 0);
	assert_int_equal(dump_each_note(dump, on_note, &t), 0);
	for (int i = 0; i < DUMP_COUNTER_COUNT; i++)
		dump_counter(dump, (enum dump_counter)i);
	assert_int_equal(dump_find_latest(dump), 0);
	dump_duration_ns(dump);
	dump_stamp_realtime_ns(dump, 2000000);
	dump_stamp_realtime_ns(dump, UINT64_MAX);
	assert_non_null(dump_end_name(dump_end(dump)));
	return t;
}

struct opened open_cut(const struct dump_builder *b, size_t size)
{
	struct opened o = { .fd = dump_builder_fd(b, size) };

	assert_true(o.fd >= 0);
	o.status = dump_open_fd(o.fd, &o.dump, &o.error);
	if (o.status)
		assert_true(o.error.text[0] && !strchr(o.error.text, '\n'));
	return o;
}

struct opened open_built(const struct dump_builder *b)
{
	return open_cut(b, b->size);
}

void close_opened(struct opened *o)
{
	if (!o->status)
		dump_close(o->dump);
	close(o->fd);
}
