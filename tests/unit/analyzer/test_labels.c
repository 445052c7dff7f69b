/* SPDX-License-Identifier: MIT */
/* What blocks are and who holds them: each sample is in one class, the classes are the total, and what was not looked
 * at is said. */
#include "output/group_title.h"
#include "views.h"

#define KIB 1024u
#define BLOCKS 6u

/* Six blocks of 1 to 6 KiB, all sampled, and one that was freed. */
static void build(struct dump_builder *b)
{
	dump_builder_init(b, 1, 64, 8, 1);
	const uint32_t s = dump_builder_stack(b, frames_a, 2, 0);

	dump_builder_module(b, 1, 0, 0x400000, 0x500000, "/usr/bin/a", NULL, 0, 0);
	for (uint64_t i = 1; i <= BLOCKS; i++)
		sample(b, s, i * KIB, 1, 1, 0);
	sample(b, s, 100 * KIB, 1, 1, 2);
}

static void name_all(struct dump_builder *b)
{
	dump_builder_block_name(b, DUMP_BLOCK_TYPE, DUMP_TYPE_VTABLE, 1, "shop::Book");
	dump_builder_block_name(b, DUMP_BLOCK_TYPE, DUMP_TYPE_PYTHON, 2, "dict");
	dump_builder_block_name(b, DUMP_BLOCK_HOLDER, DUMP_TYPE_NONE, 1, "shop::orders (server)");
}

/* Types: 1, 2, 1, none, one that there is not, one of another address. Holders: all but one. */
static void label(struct dump_builder *b)
{
	static const uint32_t types[BLOCKS] = { 1, 2, 1, 0, 77, 2 };

	name_all(b);
	for (uint32_t i = 0; i < BLOCKS; i++)
		dump_builder_block(b, live_record(b, i)->address + (i == 5), types[i], i != 0);
}

static double bytes_of(const struct report *r, const char *name)
{
	char title[GROUP_TITLE_TEXT];

	for (size_t i = 0; i < r->groups.count; i++)
		if (!strcmp(group_title(r, &r->groups.list[i], title), name))
			return r->groups.list[i].inclusive[FIGURE_LIVE_BYTES].value;
	return 0;
}

static double sum_of(const struct report *r)
{
	double sum = 0;

	for (size_t i = 0; i < r->groups.count; i++)
		sum += r->groups.list[i].inclusive[FIGURE_LIVE_BYTES].value;
	return sum;
}

static void test_by_type_and_holder(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b);
	label(&b);
	dump_builder_block_look(&b, DUMP_BLOCK_HOLDERS, "");
	make(&r, &b, (struct report_options){ .by = BY_TYPE });
	assert_true(bytes_of(&r, "shop::Book (C++)") == 4 * KIB && bytes_of(&r, "dict (Python)") == 2 * KIB);
	assert_true(bytes_of(&r, "not looked at") == 15 * KIB && sum_of(&r) == 21 * KIB);
	assert_true(r.groups.list[0].inclusive[FIGURE_LIVE_BYTES].value >=
	            r.groups.list[1].inclusive[FIGURE_LIVE_BYTES].value);
	assert_says(text_of(&r), "what a block is at the end\n");
	assert_says(json_of(&r), "\"source\": \"vtable\"");
	assert_says(json_of(&r), "\"all_looked_at\": true");
	report_done(&r);
	make(&r, &b, (struct report_options){ .by = BY_HOLDER });
	assert_true(bytes_of(&r, "shop::orders (server)") == 14 * KIB && bytes_of(&r, "not looked at") == 7 * KIB);
	assert_says(text_of(&r), "who holds it at the end (one of several)\n");
	report_done(&r);
	/* At an earlier time there was another block. */
	make(&r, &b, (struct report_options){ .by = BY_TYPE, .at_ns = 1500000000 });
	assert_true(bytes_of(&r, "freed before the end") == 100 * KIB && sum_of(&r) == 121 * KIB);
	report_done(&r);
	dump_builder_done(&b);
}

static void test_what_was_not_looked_at_is_said(void **state)
{
	static const struct {
		bool labels, look;
		uint16_t flags;
		enum group_by by;
		const char *why, *says;
	} dumps[] = {
		{ false, false, 0, BY_TYPE, "", "Nobody has looked at the blocks: " },
		{ false, false, 0, BY_HOLDER, "", "Nobody has looked at the blocks: " },
		{ true, false, 0, BY_TYPE, "", "Nobody has looked at the blocks: " }, /* it is not whole */
		{ true, true, DUMP_BLOCK_TYPES_CUT, BY_TYPE, "", "There was no time to look at all blocks." },
		{ true, true, 0, BY_HOLDER, "", "Nobody has looked for who holds them: memattach --holders " },
		{ true, true, 0, BY_HOLDER, "it took too long\033[1m",
		  "Who holds them is not known: it took too long" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++) {
		struct dump_builder b;
		struct report r;
		build(&b);
		if (dumps[i].labels)
			label(&b);
		if (dumps[i].look)
			dump_builder_block_look(&b, dumps[i].flags, dumps[i].why);
		make(&r, &b, (struct report_options){ .by = dumps[i].by });
		assert_true(sum_of(&r) == 21 * KIB && (dumps[i].look || bytes_of(&r, "not looked at") == 21 * KIB));
		char *text = text_of(&r);
		assert_non_null(strstr(text, dumps[i].says));
		assert_null(strchr(text, '\033'));
		free(text);
		assert_says(json_of(&r), "\"all_looked_at\": false");
		report_done(&r);
		dump_builder_done(&b);
	}
}

static void make_two(struct report *r, struct dump_builder b[2], struct report_options options)
{
	struct err e;

	options.confidence = 0.95;
	assert_int_equal(report_init(r, &options, &e), 0);
	for (int i = 0; i < 2; i++) {
		struct dump *dump = open_built(&b[i]);
		assert_int_equal(report_add(r, dump, "x.dump", &e), 0);
		dump_close(dump);
	}
	assert_int_equal(report_finish(r, &e), 0);
}

/* Of two processes the same names are one; where one of them was not looked at that is said. */
static void test_of_several_sessions(void **state)
{
	struct dump_builder b[2];
	struct report r;

	(void)state;
	for (int i = 0; i < 2; i++) {
		build(&b[i]);
		dump_builder_header(&b[i])->pid = 100 + i;
		dump_builder_header(&b[i])->session_id = 7 + (uint64_t)i;
	}
	label(&b[0]);
	dump_builder_block_look(&b[0], 0, "");
	make_two(&r, b, (struct report_options){ .by = BY_TYPE });
	assert_true(bytes_of(&r, "shop::Book (C++)") == 4 * KIB && bytes_of(&r, "not looked at") == 36 * KIB);
	assert_says(text_of(&r), "Nobody has looked at the blocks: ");
	report_done(&r);
	for (int i = 0; i < 2; i++)
		dump_builder_done(&b[i]);
}

/* Ids that do not follow each other, lists of impossible lengths, texts without an end, the same block twice. */
static void test_hostile_labels(void **state)
{
	struct dump_builder b;
	struct report r;

	(void)state;
	build(&b);
	const uint64_t address = live_record(&b, 0)->address;
	dump_builder_block_name(&b, DUMP_BLOCK_TYPE, 999, 3, "never");
	dump_builder_block_name(&b, DUMP_BLOCK_TYPE, 999, 1, "first");
	dump_builder_block_name(&b, DUMP_BLOCK_TYPE, 0, 1, "again");
	dump_builder_block(&b, address, 1, UINT32_MAX);
	dump_builder_block(&b, address, 2, 1);
	dump_builder_block_look(&b, UINT16_MAX, "");
	const struct dump_region *region = dump_builder_region(&b, DUMP_REGION_BLOCKS);
	struct dump_block_name *third = dump_builder_at(&b, region->offset + sizeof(struct dump_arena) +
	                                                            2 * (sizeof(struct dump_block_name) + 16));
	assert_string_equal(third->text, "again");
	memset(third->text, 'x', 16); /* as long as its record */
	make(&r, &b, (struct report_options){ .by = BY_TYPE });
	assert_true(bytes_of(&r, "first") == KIB && sum_of(&r) == 21 * KIB);
	report_done(&r);
	struct dump_block_list *list = (struct dump_block_list *)(void *)(third + 2);
	assert_int_equal(list->kind, DUMP_BLOCK_LIST);
	for (int i = 0; i < 3; i++) {
		list->count = i == 0 ? 0 : i == 1 ? 2 : UINT32_MAX;
		make(&r, &b, (struct report_options){ .by = BY_HOLDER });
		assert_true(bytes_of(&r, "not looked at") == 21 * KIB && !report_complete(&r));
		report_done(&r);
	}
	dump_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_type_and_holder),
		cmocka_unit_test(test_what_was_not_looked_at_is_said),
		cmocka_unit_test(test_of_several_sessions),
		cmocka_unit_test(test_hostile_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
