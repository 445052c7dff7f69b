/* SPDX-License-Identifier: MIT */
/* Java frames of a real JVM, against what it says of itself (jcmd Thread.print); and layouts that are wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "arch/java_frame.h"
#include "java/java_frame.h"
#include "java/java_proof.h"
#include "java/java_unloads.h"

#define LOOKS 8u
#define HIDDEN "JAVA_TOOL_OPTIONS=-XX:+UnlockDiagnosticVMOptions -XX:+ShowHiddenFrames"
#define DUMP_BYTES (4u << 20)
#define RESTING 8u /* threads of JavaStacks.java that rest in it, without the main one */

static struct victim victim;
static struct view view;

static int open_jvm(void **state)
{
	(void)state;
	if (access(JAVA, X_OK) || access(JCMD, X_OK)) /* also where it was compiled elsewhere */
		return 0;
	victim_start(&victim, JAVA, JAVA_STACKS, HIDDEN);
	view_open(&view, victim.pid, false);
	return 0;
}

static int close_jvm(void **state)
{
	(void)state;
	if (victim.pid == 0)
		return 0;
	view_close(&view);
	victim_end(&victim);
	return 0;
}

static void need_jvm(void)
{
	if (victim.pid)
		return;
	print_message("skipped: java and jcmd are not installed\n");
	skip();
}

/* ---- what the JVM says ---- */

static char *thread_print(void)
{
	char command[300], *text = malloc(DUMP_BYTES);

	snprintf(command, sizeof command, "%s %d Thread.print 2>/dev/null", JCMD, (int)victim.pid);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(text);
	text[fread(text, 1, DUMP_BYTES - 1, f)] = '\0';
	assert_int_equal(pclose(f), 0);
	return text;
}

/* The lines of a thread behind its head, which has its number in hex or, since JDK 21, in decimal. */
static const char *thread_at(const char *dump, int tid)
{
	char hex[40], decimal[40];

	snprintf(hex, sizeof hex, " nid=0x%x ", (unsigned)tid);
	snprintf(decimal, sizeof decimal, " nid=%d ", tid);
	const char *at = strstr(dump, hex);
	at = at ? at : strstr(dump, decimal);
	return at ? strchr(at, '\n') : NULL;
}

/* The next "\tat Class.method(module@version/File.java:1)" as "Class.method (File.java:1)"; NULL: no more. */
static const char *said_next(const char *at, char *text, size_t size)
{
	for (; at && at[1] != '\n' && at[1] != '"'; at = strchr(at + 1, '\n')) {
		if (strncmp(at + 1, "\tat ", 4) != 0)
			continue;
		const char *name = at + 5, *open = strchr(name, '('), *close = strchr(name, ')'), *place = open + 1;
		assert_true(open && close && open < close);
		const char *slash = memchr(place, '/', (size_t)(close - place));
		place = slash ? slash + 1 : place;
		snprintf(text, size, "%.*s (%.*s)", (int)(open - name), name, (int)(close - place), place);
		return strchr(at + 1, '\n');
	}
	return NULL;
}

static void shown_text(const struct shown_frame *f, char *text, size_t size)
{
	if (f->native)
		snprintf(text, size, "%s (Native Method)", f->function);
	else if (!f->file[0])
		snprintf(text, size, "%s (Unknown Source)", f->function);
	else if (f->line == JAVA_NO_LINE)
		snprintf(text, size, "%s (%s)", f->function, f->file);
	else
		snprintf(text, size, "%s (%s:%d)", f->function, f->file, (int)f->line);
}

static bool is_ours(const struct java_stack *s)
{
	for (uint32_t i = 0; i < s->place_count; i++)
		if (!strncmp(s->places[i].function, "JavaStacks.", 11))
			return true;
	return false;
}

static void compare(const struct java_stack *s, const char *dump)
{
	const char *at = thread_at(dump, s->thread.tid);
	char said[900], shown[900];

	assert_non_null(at);
	for (uint32_t i = 0; i < s->place_count; i++) {
		at = said_next(at, said, sizeof said);
		shown_text(&s->places[i], shown, sizeof shown);
		if (!at || strcmp(said, shown) != 0)
			fail_msg("frame %u: \"%s\", and the JVM says \"%s\"", i, shown, at ? said : "");
	}
	assert_null(said_next(at, said, sizeof said));
}

static void prove(struct java_proof *p)
{
	const struct java_runtime r = java_find(&view.modules);

	assert_int_equal(r.machine, JAVA_HOTSPOT);
	java_proof_make(p, &r, &view.maps, &view.tm, LOOKS);
	if (!p->proved)
		fail_msg("not proved: %s", p->why);
}

static void test_java_prove_shows_what_the_jvm_says(void **state)
{
	struct java_proof p;
	uint32_t ours = 0;

	(void)state;
	need_jvm();
	char *dump = thread_print();
	prove(&p);
	for (size_t i = 0; i < p.stack_count; i++)
		if (is_ours(&p.stacks[i])) {
			compare(&p.stacks[i], dump);
			ours++;
		}
	assert_int_equal(ours, RESTING + 1);
	assert_true(p.codes > 20 && p.points > p.codes);
	java_proof_done(&p);
	free(dump);
}

/* ---- layouts that are not the process's ---- */

static const struct {
	const char *name;
	size_t at; /* in struct java_structures */
} fields[] = {
#define X(member, names, required) { #member, offsetof(struct java_structures, member) },
	JAVA_FIELD_LIST(X)
#undef X
};
#define FIELDS (sizeof fields / sizeof fields[0])

/* Those that the walk and its names do not use here, or whose wrong value leads to less: to no file, to a file without
 * lines. */
static bool is_tolerant(const char *name)
{
	static const char *const list =
		" cache_high version_major version_text block_used blob_bytes compiled_deopt compiled_deopt_mh "
		"compiled_original compiled_id method_access thread_stack_base anchor_fp "
		"blob_data pool_file array_length pool_length threads_length thread_stack_bytes const_words "
		"const_flags counters loaders loader_next loader_classes class_loader class_next ";
	char word[60];

	snprintf(word, sizeof word, " %s ", name);
	return strstr(list, word) != NULL;
}

static bool proves(const struct java_structures *s)
{
	struct java_proof p;

	java_proof_make_with(&p, s, &view.maps, &view.tm, 1);
	bool proved = p.proved;
	assert_true(proved || p.why[0]);
	java_proof_done(&p);
	return proved;
}

static void test_java_prove_refuses_fields_in_another_place(void **state)
{
	static const int64_t distances[] = { -8, 8, -4096, 60000 };
	struct java_proof p;

	(void)state;
	need_jvm();
	prove(&p);
	for (size_t i = 0; i < FIELDS; i++)
		for (size_t d = 0; d < sizeof distances / sizeof distances[0]; d++) {
			struct java_structures s = p.view.s;
			struct java_field *f = (void *)((char *)&s + fields[i].at);
			if (f->bytes == 0)
				continue;
			f->at += (uint64_t)distances[d];
			if (proves(&s) && !is_tolerant(fields[i].name))
				fail_msg("proved with %s %d", fields[i].name, (int)distances[d]);
		}
	assert_true(proves(&p.view.s));
	java_proof_done(&p);
}

/* Whatever threads happen to rest in: nothing of the stacks has been looked at. */
static void test_java_prove_refuses_by_compiled_code_alone(void **state)
{
	static const int64_t distances[] = { -8, 8, -4096, 60000 };
	struct java_proof right, p;

	(void)state;
	need_jvm();
	prove(&right);
	for (size_t i = 0; i < FIELDS; i++)
		for (size_t d = 0; d < sizeof distances / sizeof distances[0]; d++) {
			struct java_structures s = right.view.s;
			struct java_field *f = (void *)((char *)&s + fields[i].at);
			if (f->bytes == 0 || is_tolerant(fields[i].name) ||
			    (strncmp(fields[i].name, "compiled_", 9) != 0 &&
			     strcmp(fields[i].name, "blob_frame_words") != 0))
				continue;
			f->at += (uint64_t)distances[d];
			java_proof_make_with(&p, &s, &view.maps, &view.tm, 1);
			if (p.proved || p.stack_count)
				fail_msg("%s %d: %s", fields[i].name, (int)distances[d], p.why);
			java_proof_done(&p);
		}
	java_proof_done(&right);
}

static void test_java_prove_refuses_structures_of_another_size(void **state)
{
	struct java_proof p;

	(void)state;
	need_jvm();
	prove(&p);
	uint32_t *const sizes[] = { &p.view.s.bytes.block, &p.view.s.bytes.const_method, &p.view.s.bytes.pool,
		                    &p.view.s.bytes.pc_desc };
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		*sizes[i] += 8;
		assert_false(proves(&p.view.s));
		*sizes[i] -= 8;
	}
	p.view.s.entry_wrapper++;
	assert_false(proves(&p.view.s));
	java_proof_done(&p);
}

/* ---- recorded frames ---- */

static uint64_t id_of(struct java_view *v, const struct java_code *code)
{
	uint64_t id = 0;
	struct err e;

	assert_int_equal(java_field_read(&v->memory, code->address, &v->s.compiled_id, &id, &e), 0);
	return id;
}

/* What the interpreter would have recorded of it. */
static uint64_t interpreted(struct java_view *v, const struct java_point *point)
{
	struct java_method m;
	struct err e;

	assert_int_equal(java_method_read(v, point->method, point->bci, &m, &e), 0);
	return JAVA_FRAME(m.address, m.code + (uint64_t)(point->bci < 0 ? 0 : point->bci));
}

/* Each call at a pc of compiled code, and the same bytecodes as the interpreter has them. */
static void check_frame(struct java_view *v, const struct java_code *code, uint64_t pc)
{
	static struct java_called list[JAVA_INLINED_MAX], alone[JAVA_INLINED_MAX];
	struct java_point points[JAVA_INLINED_MAX];
	uint32_t count, frames, one;
	struct err e;

	assert_int_equal(java_points_read(v, code, pc, points, &count, &e), 0);
	const uint64_t id = id_of(v, code);
	if (java_frame_read(v, JAVA_FRAME(pc, id), list, &frames, &e) == -ENOENT)
		return; /* it has just been thrown away */
	assert_int_equal(frames, count ? count : 1);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(java_frame_read(v, interpreted(v, &points[i]), alone, &one, &e), 0);
		assert_int_equal(one, 1);
		assert_string_equal(alone[0].place.function, list[i].place.function);
		assert_string_equal(alone[0].place.file, list[i].place.file);
		assert_int_equal(alone[0].place.line, list[i].place.line);
	}
	assert_int_equal(java_frame_read(v, JAVA_FRAME(pc, id + 1), list, &frames, &e), -ENOENT);
	assert_int_equal(java_frame_read(v, JAVA_FRAME(code->address, id), list, &frames, &e), -ENOENT);
}

static void test_java_frame_has_the_name_of_its_code_only(void **state)
{
	struct java_proof p;
	uint32_t codes = 0;
	struct err e;

	(void)state;
	need_jvm();
	prove(&p);
	struct java_view *v = &p.view;
	for (uint32_t i = 0; i < v->heap_count; i++) {
		struct java_code code;
		bool used;
		for (uint64_t at = v->heaps[i].low; java_code_next(v, &v->heaps[i], &at, &code, &used, &e) == 0;) {
			uint64_t pc;
			if (!used || code.kind != JAVA_CODE_COMPILED)
				continue;
			for (uint32_t n = 0; n < 20 && java_code_debug_pc(v, &code, n, &pc, &e) == 0; n++)
				check_frame(v, &code, pc);
			codes++;
		}
	}
	assert_true(codes > 20);
	java_proof_done(&p);
}

/* A Method that is none, and one whose bytecodes end before. */
static void test_java_frame_of_no_method_has_no_name(void **state)
{
	static struct java_called list[JAVA_INLINED_MAX];
	struct java_proof p;
	struct java_method m;
	uint32_t count;
	struct err e;

	(void)state;
	need_jvm();
	prove(&p);
	uint64_t method = 0;
	struct java_code code;
	bool used;
	for (uint64_t at = p.view.heaps[0].low; method == 0;) {
		assert_int_equal(java_code_next(&p.view, &p.view.heaps[0], &at, &code, &used, &e), 0);
		if (used && code.kind == JAVA_CODE_COMPILED)
			assert_int_equal(
				java_field_read(&p.view.memory, code.address, &p.view.s.compiled_method, &method, &e),
				0);
	}
	assert_int_equal(java_method_read(&p.view, method, 0, &m, &e), 0);
	assert_int_equal(java_frame_read(&p.view, JAVA_FRAME(method, m.code), list, &count, &e), 0);
	assert_int_equal(java_frame_read(&p.view, JAVA_FRAME(method, m.code + m.code_bytes), list, &count, &e),
	                 m.native ? 0 : -ENOENT);
	assert_int_equal(java_frame_read(&p.view, JAVA_FRAME(method, m.code - 1), list, &count, &e),
	                 m.native ? 0 : -ENOENT);
	for (int i = -3; i <= 3; i++)
		if (i)
			assert_true(java_frame_read(&p.view, JAVA_FRAME(method + (uint64_t)(8 * i), m.code), list,
			                            &count, &e) < 0);
	assert_true(java_frame_read(&p.view, JAVA_FRAME(8, 0), list, &count, &e) < 0);
	java_proof_done(&p);
}

static void test_java_unloads_are_counted(void **state)
{
	struct java_proof p;
	uint64_t at, count;
	struct err e;

	(void)state;
	need_jvm();
	prove(&p);
	assert_int_equal(java_unloads_find(&p.view, &at, &e), 0);
	assert_int_equal(target_read_u64(&p.view.memory, at, &count, &e), 0);
	assert_int_equal(count, 0);
	p.view.s.counters.bytes = 0;
	assert_int_equal(java_unloads_find(&p.view, &at, &e), -ENOENT);
	p.view.s.counters = p.view.s.version_text; /* leads to bytes of another kind */
	assert_int_equal(java_unloads_find(&p.view, &at, &e), -ENOENT);
	java_proof_done(&p);
}

/* ---- other machines ---- */

static enum java_machine machine_of(const char *const *paths, size_t count)
{
	struct elf_module list[4];
	struct modules modules = { .list = list, .count = count };

	memset(list, 0, sizeof list);
	for (size_t i = 0; i < count; i++)
		list[i].path = (char *)(uintptr_t)paths[i];
	return java_find(&modules).machine;
}

#define MACHINE_OF(...) machine_of((const char *const[]){ __VA_ARGS__ }, sizeof((const char *[]){ __VA_ARGS__ }) / 8)

static void test_java_find_names_other_machines(void **state)
{
	(void)state;
	assert_int_equal(MACHINE_OF("/usr/bin/java", "/usr/lib/libjli.so"), JAVA_NONE);
	assert_int_equal(MACHINE_OF("/opt/ibm/lib/default/libjvm.so", "/opt/ibm/lib/default/libj9vm29.so"),
	                 JAVA_OPENJ9);
	assert_int_equal(MACHINE_OF("/opt/zing/zing-jdk17/lib/server/libjvm.so"), JAVA_ZING);
	assert_int_equal(MACHINE_OF("/opt/x/libjvm.so"), JAVA_UNKNOWN);
	assert_int_equal(MACHINE_OF("/opt/graal/libjvm.so", "/opt/graal/libjvmcicompiler.so"), JAVA_GRAALVM);
}

static void test_java_prove_refuses_other_machines_by_name(void **state)
{
	(void)state;
	for (enum java_machine m = JAVA_GRAALVM; m <= JAVA_UNKNOWN; m++) {
		const struct java_runtime r = { .machine = m };
		struct java_proof p;

		java_proof_make(&p, &r, &view.maps, &view.tm, 1);
		assert_false(p.proved);
		assert_string_equal(p.why, java_machine_refusal(m));
		assert_true(java_machine_name(m)[0]);
		java_proof_done(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_java_prove_shows_what_the_jvm_says),
		cmocka_unit_test(test_java_prove_refuses_fields_in_another_place),
		cmocka_unit_test(test_java_prove_refuses_by_compiled_code_alone),
		cmocka_unit_test(test_java_prove_refuses_structures_of_another_size),
		cmocka_unit_test(test_java_frame_has_the_name_of_its_code_only),
		cmocka_unit_test(test_java_frame_of_no_method_has_no_name),
		cmocka_unit_test(test_java_unloads_are_counted),
		cmocka_unit_test(test_java_find_names_other_machines),
		cmocka_unit_test(test_java_prove_refuses_other_machines_by_name),
	};

	return cmocka_run_group_tests(tests, open_jvm, close_jvm);
}
