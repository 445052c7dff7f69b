/* SPDX-License-Identifier: MIT */
/* The reader on dumps that are whole, torn, cut, damaged and hostile. Under the sanitizers "no crash" means something.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "dump_builder.h"
#include "dump_reader.h"

struct tally {
	struct dump *dump;
	uint64_t live, live_bytes, history, stacks, frames, modules, threads, notes;
	double bytes;
	char text[256]; /* of the last note or path */
};

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

/* Reads all there is. The statements of the header are asked for too: none may crash. */
static struct tally read_all(struct dump *dump)
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

struct opened {
	int status;
	int fd;
	struct dump *dump;
	struct err error;
};

static struct opened open_cut(const struct dump_builder *b, size_t size)
{
	struct opened o = { .fd = dump_builder_fd(b, size) };

	assert_true(o.fd >= 0);
	o.status = dump_open_fd(o.fd, &o.dump, &o.error);
	if (o.status)
		assert_true(o.error.text[0] && !strchr(o.error.text, '\n'));
	return o;
}

static struct opened open_built(const struct dump_builder *b)
{
	return open_cut(b, b->size);
}

static void close_opened(struct opened *o)
{
	if (!o->status)
		dump_close(o->dump);
	close(o->fd);
}

static void test_whole_dump(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	struct tally t = read_all(o.dump);
	assert_int_equal(t.live, 20 + 5 + 1 + 1);
	assert_int_equal(t.live_bytes, 20 * 4096 + 5 * 100 + (8 << 20) + 64);
	assert_int_equal(t.history, 10);
	assert_int_equal(t.stacks, 3);
	assert_int_equal(t.frames, 5);
	assert_int_equal(t.modules, 2);
	assert_int_equal(t.threads, 1);
	assert_int_equal(t.notes, 1);
	assert_string_equal(t.text, "an allocator inside /usr/lib/libodd.so is not seen");
	assert_true(dump_complete(o.dump));
	assert_int_equal(dump_end(o.dump), DUMP_END_DETACHED);
	assert_string_equal(dump_header(o.dump)->command, "leaky");
	/* Counters are spread over the shards. */
	assert_int_equal(dump_counter(o.dump, DUMP_COUNTER_samples_taken), 37);
	assert_int_equal(dump_counter(o.dump, DUMP_COUNTER_samples_freed), 10);
	assert_int_equal(dump_counter(o.dump, DUMP_COUNTER_stacks_truncated), 6);
	assert_int_equal(dump_duration_ns(o.dump), 30000000000ull);
	assert_int_equal(dump_stamp_realtime_ns(o.dump, 1000000), dump_header(o.dump)->clock_start.realtime_ns);
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_several_regions_of_each_kind(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_init(&b, 1, 8, 8, 3);
	uint32_t s = dump_builder_stack(&b, (const uint64_t[]){ DUMP_FRAME(1, 0x1000) }, 1, 0);
	for (int i = 0; i < 8; i++)
		dump_builder_sample(&b, s, 100, 1, 1);
	for (int i = 0; i < 200; i++) /* three blocks of history */
		dump_builder_sample(&b, s, 10, 1, 0);
	/* Another level of the live table at the end of the file. */
	size_t at = b.size;
	b.bytes = realloc(b.bytes, at + DUMP_REGION_ALIGN);
	assert_non_null(b.bytes);
	memset(b.bytes + at, 0, DUMP_REGION_ALIGN);
	b.size += DUMP_REGION_ALIGN;
	struct dump_header *h = dump_builder_header(&b);
	h->regions[h->region_count++] = (struct dump_region){
		.kind = DUMP_REGION_LIVE, .serial = 1, .offset = at, .bytes = DUMP_REGION_ALIGN, .entries = 32
	};
	struct dump_live_record *records = dump_builder_at(&b, at + DUMP_LIVE_RECORDS_AT(32u));
	records[31] = (struct dump_live_record){ .address = 0x5000, .size = 7, .stack = s, .rate_bytes = 1 };
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	struct tally t = read_all(o.dump);
	assert_int_equal(t.live, 9);
	assert_int_equal(t.live_bytes, 807);
	assert_int_equal(t.history, 200);
	assert_true(t.bytes == 2800); /* rate 1: sums are exact */
	assert_true(dump_complete(o.dump));
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_busy_and_torn_keys(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_init(&b, 1, 64, 8, 0);
	uint32_t s = dump_builder_stack(&b, NULL, 0, 0);
	for (int i = 0; i < 10; i++)
		dump_builder_sample(&b, s, 100, 1, 1);
	struct dump_live_record *records = dump_builder_live(&b, 0);
	records[0].address = DUMP_KEY_BUSY; /* its writer died */
	records[1].address = DUMP_KEY_FREE; /* an old record stays behind */
	records[2].address |= DUMP_KEY_GIVEN_UP;
	records[3].size = UINT64_MAX;
	records[4].rate_bytes = 0;
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	struct tally t = read_all(o.dump);
	assert_int_equal(t.live, 5);
	assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_busy), 1);
	assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_live), 2);
	assert_false(dump_complete(o.dump));
	close_opened(&o);

	/* A busy key alone is what a dump of a running target always may have. */
	for (int i = 2; i < 5; i++)
		records[i].address = DUMP_KEY_FREE;
	o = open_built(&b);
	t = read_all(o.dump);
	assert_int_equal(t.live, 5);
	assert_true(dump_complete(o.dump));
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_states(void **state)
{
	static const struct {
		uint32_t state;
		int lease; /* seconds from now */
		enum dump_end end;
	} cases[] = {
		{ DUMP_STATE_RUNNING, 60, DUMP_END_RUNNING },    { DUMP_STATE_RUNNING, -60, DUMP_END_ABANDONED },
		{ DUMP_STATE_PREPARING, 60, DUMP_END_RUNNING },  { DUMP_STATE_ABANDONED, 60, DUMP_END_ABANDONED },
		{ DUMP_STATE_DETACHED, -60, DUMP_END_DETACHED }, { DUMP_STATE_EXITED, -60, DUMP_END_EXITED },
		{ DUMP_STATE_KILLED, -60, DUMP_END_KILLED },     { DUMP_STATE_EXECED, -60, DUMP_END_EXITED },
	};
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct dump_header *h = dump_builder_header(&b);
		h->state = cases[i].state;
		h->lease_realtime_ns = (uint64_t)(time(NULL) + cases[i].lease) * 1000000000u;
		struct opened o = open_built(&b);
		assert_int_equal(o.status, 0);
		assert_int_equal(dump_end(o.dump), cases[i].end);
		close_opened(&o);
	}
	dump_builder_done(&b);
}

static void test_foreign_and_future_files(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct dump_header *h = dump_builder_header(&b);
	const struct dump_header saved = *h;

	h->magic[0] = 'X';
	struct opened o = open_built(&b);
	assert_int_equal(o.status, -EPROTO);
	close_opened(&o);
	*h = saved;
	h->version = DUMP_VERSION + 1;
	o = open_built(&b);
	assert_int_equal(o.status, -ENOTSUP);
	assert_non_null(strstr(o.error.text, "newer"));
	close_opened(&o);
	*h = saved;
	h->version = DUMP_VERSION - 1;
	o = open_built(&b);
	assert_int_equal(o.status, -ENOTSUP);
	assert_non_null(strstr(o.error.text, "older"));
	close_opened(&o);
	*h = saved;
	for (int bit = 1; bit < 64; bit++) {
		h->features |= 1ull << bit;
		o = open_built(&b);
		assert_int_equal(o.status, -ENOTSUP);
		assert_non_null(strstr(o.error.text, "unknown features"));
		close_opened(&o);
		*h = saved;
	}
	h->version = 0;
	o = open_built(&b);
	assert_int_equal(o.status, -EPROTO);
	close_opened(&o);
	dump_builder_done(&b);

	struct dump *dump;
	struct err e;
	assert_int_equal(dump_open("/nonexistent/dump", &dump, &e), -ENOENT);
	assert_int_equal(dump_open("/", &dump, &e), -EISDIR);
	assert_int_equal(dump_open("/dev/null", &dump, &e), -ESPIPE); /* is not opened */
	int pipe_fds[2];
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(dump_open_fd(pipe_fds[0], &dump, &e), -ESPIPE);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void test_every_cut(void **state)
{
	struct dump_builder b;
	uint64_t live = 0;

	(void)state;
	dump_builder_sampler(&b);
	/* A prime step hits every kind of boundary; all lengths around the start of each region. */
	for (size_t size = 0; size < b.size; size += size % DUMP_REGION_ALIGN < 80 ? 1 : 61) {
		struct opened o = open_cut(&b, size);
		if (size < offsetof(struct dump_header, regions)) {
			assert_int_equal(o.status, -EPROTO);
		} else {
			assert_int_equal(o.status, 0);
			struct tally t = read_all(o.dump);
			assert_false(dump_complete(o.dump));
			assert_true(t.live >= live); /* more of the file never shows less */
			live = t.live;
		}
		close_opened(&o);
	}
	assert_int_equal(live, 27);
	dump_builder_done(&b);
}

static void test_file_shrinks_while_open(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	assert_int_equal(ftruncate(o.fd, DUMP_HEADER_BYTES + 100), 0);
	struct tally t = read_all(o.dump);
	assert_int_equal(t.live + t.stacks + t.notes, 0);
	assert_true(dump_skipped(o.dump, DUMP_SKIP_short_file) > 0);
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_wild_regions(void **state)
{
	static const struct dump_region wild[] = {
		{ .kind = DUMP_REGION_LIVE, .offset = UINT64_MAX - 4095, .bytes = 8192, .entries = 8 },
		{ .kind = DUMP_REGION_LIVE, .offset = 1ull << 62, .bytes = 1ull << 62, .entries = 1ull << 56 },
		{ .kind = DUMP_REGION_LIVE, .offset = 0, .bytes = 4096, .entries = 8 },
		{ .kind = DUMP_REGION_LIVE, .offset = 16385, .bytes = 4096, .entries = 8 },
		{ .kind = DUMP_REGION_LIVE, .offset = 1 << 20, .bytes = 4096, .entries = 1ull << 60 },
		{ .kind = DUMP_REGION_LIVE, .offset = 1 << 20, .bytes = 4096, .entries = 24 },
		{ .kind = DUMP_REGION_STACK_INDEX, .offset = 1 << 20, .bytes = 4096, .entries = 4 },
		{ .kind = DUMP_REGION_HISTORY, .offset = 1 << 20, .bytes = 4096, .entries = 2 },
		{ .kind = DUMP_REGION_STACKS, .offset = 1 << 20, .bytes = 0 },
		{ .kind = 0, .offset = 1 << 20, .bytes = 4096 },
		{ .kind = DUMP_REGION_NOTES, .offset = DUMP_HEADER_BYTES, .bytes = 4096 }, /* over the first */
	};
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct dump_header *h = dump_builder_header(&b);
	uint32_t good = h->region_count;
	for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
		h->regions[good] = wild[i];
		h->region_count = good + 1;
		struct opened o = open_built(&b);
		assert_int_equal(o.status, 0);
		struct tally t = read_all(o.dump);
		assert_int_equal(t.live, 27);
		assert_int_equal(t.stacks, 3);
		assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_region), 1);
		close_opened(&o);
	}
	h->region_count = UINT32_MAX;
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	read_all(o.dump);
	assert_false(dump_complete(o.dump));
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_wild_stacks(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_init(&b, 65536, 8, 16, 0);
	uint32_t s = dump_builder_stack(&b, (const uint64_t[]){ 1, 2, 3 }, 3, 0);
	dump_builder_sample(&b, s, 100, 65536, 1);
	struct dump_stack *stack = dump_builder_at(&b, (uint64_t)s * DUMP_STACK_ALIGN);
	struct opened o = open_built(&b);
	struct dump_stack_copy copy;
	assert_int_equal(dump_read_stack(o.dump, s, &copy), 0);
	static const uint32_t references[] = { 0, 1, 2, UINT32_MAX, UINT32_MAX / 2, 1 << 20 };
	for (size_t i = 0; i < sizeof references / sizeof references[0]; i++)
		assert_int_equal(dump_read_stack(o.dump, references[i], &copy), -EPROTO);
	uint64_t arena = dump_builder_region(&b, DUMP_REGION_STACKS)->offset / DUMP_STACK_ALIGN;
	assert_int_equal(dump_read_stack(o.dump, (uint32_t)arena, &copy), -EPROTO); /* the head of the arena */
	assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_stack), 7);
	close_opened(&o);

	static const double sums[] = { -1, NAN, INFINITY, 1e300 };
	for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
		stack->variance_bytes = sums[i];
		o = open_built(&b);
		assert_int_equal(dump_read_stack(o.dump, s, &copy), 0);
		assert_true(copy.stack.variance_bytes == 0 && copy.stack.excess_bytes == 0 &&
		            copy.stack.taken_bytes == 0);
		assert_int_equal(copy.stack.frame_count, 3);
		assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_sums), 1);
		close_opened(&o);
	}
	stack->frame_count = DUMP_FRAMES_MAX + 1;
	o = open_built(&b);
	assert_int_equal(dump_read_stack(o.dump, s, &copy), -EPROTO);
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_wild_arenas(void **state)
{
	static const uint32_t kinds[] = { DUMP_REGION_MODULES, DUMP_REGION_THREADS, DUMP_REGION_NOTES,
		                          DUMP_REGION_RATES };
	static const uint32_t lengths[] = { 1, 5, 15, 4096, 65536, 65537, UINT32_MAX, UINT32_MAX - 15 };

	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
			struct dump_builder b;
			dump_builder_sampler(&b);
			struct dump_region *region = dump_builder_region(&b, kinds[k]);
			uint32_t *bytes = dump_builder_at(&b, region->offset + sizeof(struct dump_arena));
			struct dump_arena *arena = dump_builder_at(&b, region->offset);
			*bytes = lengths[i];
			arena->used = i % 2 ? UINT64_MAX : arena->used;
			struct opened o = open_built(&b);
			assert_int_equal(o.status, 0);
			read_all(o.dump);
			close_opened(&o);
			dump_builder_done(&b);
		}
	}
}

static int on_change(void *arg, const struct dump_rate_change *change)
{
	uint64_t *sum = arg;

	*sum += change->new_bytes - change->old_bytes;
	return 0;
}

static void test_changes_of_the_rate(void **state)
{
	struct dump_builder b;
	uint64_t sum = 0;

	(void)state;
	dump_builder_init(&b, 1000, 8, 16, 0);
	for (uint64_t rate = 1000; rate < 16000; rate *= 2)
		dump_builder_rate(&b, &(struct dump_rate_change){
					      .reason = DUMP_RATE_COSTLY, .old_bytes = rate, .new_bytes = 2 * rate });
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	assert_int_equal(dump_each_rate(o.dump, on_change, &sum), 0);
	assert_int_equal(sum, 15000);
	assert_true(dump_complete(o.dump));
	close_opened(&o);
	/* One that cannot be is left out and said. */
	dump_builder_rate(&b, &(struct dump_rate_change){ .old_bytes = 0, .new_bytes = 1ull << 40 });
	sum = 0;
	o = open_built(&b);
	assert_int_equal(dump_each_rate(o.dump, on_change, &sum), 0);
	assert_int_equal(sum, 15000);
	assert_int_equal(dump_skipped(o.dump, DUMP_SKIP_rate), 1);
	close_opened(&o);
	dump_builder_done(&b);
}

/* What a later memattach adds is passed over, and is no damage. */
static void test_region_of_a_later_kind(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct dump_header *h = dump_builder_header(&b);
	for (uint32_t i = 0; i < h->region_count; i++)
		if (h->regions[i].kind == DUMP_REGION_RATES)
			h->regions[i].kind = 77;
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	struct tally t = read_all(o.dump);
	assert_int_equal(t.live, 27);
	assert_true(dump_complete(o.dump));
	close_opened(&o);
	dump_builder_done(&b);
}

static void test_clock_that_stands_half_written(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	struct dump_header *h = dump_builder_header(&b);
	h->lease_sequence = 3;
	struct opened o = open_built(&b);
	assert_int_equal(o.status, 0);
	read_all(o.dump);
	close_opened(&o);
	h->clock_latest = (struct dump_clock){ 5, 5, 5 };
	o = open_built(&b);
	assert_int_equal(dump_duration_ns(o.dump), 0);
	assert_int_equal(dump_stamp_realtime_ns(o.dump, 77), 0);
	close_opened(&o);
	dump_builder_done(&b);
}

/* Every bit of the header that is in use, one at a time, on the same file. */
static void test_bit_flips_of_the_header(void **state)
{
	struct dump_builder b;

	(void)state;
	dump_builder_sampler(&b);
	int fd = dump_builder_fd(&b, b.size);
	size_t end = offsetof(struct dump_header, regions) +
	             (dump_builder_header(&b)->region_count + 1) * sizeof(struct dump_region);
	for (size_t i = 0; i < end; i++) {
		for (int bit = 0; bit < 8; bit += 1 + (i > offsetof(struct dump_header, counters) && i % 7)) {
			unsigned char flipped = b.bytes[i] ^ (unsigned char)(1u << bit);
			struct dump *dump;
			struct err e;
			assert_int_equal(pwrite(fd, &flipped, 1, (off_t)i), 1);
			int r = dump_open_fd(fd, &dump, &e);
			assert_true(!r || r == -EPROTO || r == -ENOTSUP);
			if (!r) {
				read_all(dump);
				dump_close(dump);
			}
		}
		assert_int_equal(pwrite(fd, &b.bytes[i], 1, (off_t)i), 1);
	}
	close(fd);
	dump_builder_done(&b);
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	return *x ^= *x << 17;
}

static void test_random_damage(void **state)
{
	uint64_t x = 88172645463325252ull;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct dump_builder b;
		dump_builder_sampler(&b);
		for (int i = 0; i < 1 + round / 4; i++)
			b.bytes[16 + next_random(&x) % (b.size - 16)] ^= (unsigned char)(1u << (next_random(&x) % 8));
		struct opened o = open_built(&b);
		if (!o.status)
			read_all(o.dump);
		close_opened(&o);
		dump_builder_done(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_dump),
		cmocka_unit_test(test_several_regions_of_each_kind),
		cmocka_unit_test(test_changes_of_the_rate),
		cmocka_unit_test(test_region_of_a_later_kind),
		cmocka_unit_test(test_busy_and_torn_keys),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_foreign_and_future_files),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_file_shrinks_while_open),
		cmocka_unit_test(test_wild_regions),
		cmocka_unit_test(test_wild_stacks),
		cmocka_unit_test(test_wild_arenas),
		cmocka_unit_test(test_clock_that_stands_half_written),
		cmocka_unit_test(test_bit_flips_of_the_header),
		cmocka_unit_test(test_random_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
