/* SPDX-License-Identifier: MIT */
#include "children/symbol_child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "children/analyzer_child.h"
#include "base/cleanup.h"
#include "dump/dump_symbols.h"
#include "process/memory_room.h"
#include "files/whole_io.h"
#include "sandbox/child.h"

/* ---- in the child ---- */

static _Noreturn void be_child(const struct symbol_sources *s, const struct dump_file *file, int result,
                               uint64_t max_bytes)
{
	const struct rights limits = { .data_bytes = SYMBOL_DATA_BYTES,
		                       .file_bytes = SYMBOL_RESULT_BYTES,
		                       .cpu_seconds = 2 * SYMBOL_END_SECONDS };
	static char files[PASSED_ON_FILES_TEXT];
	struct passed_on p = { .count = 0 };
	char rights[RIGHTS_TEXT], root[16], pid[16], start[24], seconds[16], bytes[24];
	char *arguments[] = { (char[]){ "memanalyze" },
		              (char[]){ SYMBOL_REQUEST_OPTION },
		              (char[]){ SYMBOL_REQUEST_VERSION },
		              rights,
		              root,
		              pid,
		              start,
		              seconds,
		              bytes,
		              files,
		              NULL };
	const int first[ANALYZER_CHILD_FIRST] = {
		[SYMBOL_REQUEST_DUMP] = passed_on_add(&p, dump_file_reopen(file, O_RDONLY)),
		[SYMBOL_REQUEST_RESULT] = passed_on_add(&p, result),
	};

	if (!first[SYMBOL_REQUEST_DUMP] || !first[SYMBOL_REQUEST_RESULT])
		analyzer_child_no_dump();
	snprintf(root, sizeof root, "%d", passed_on_add(&p, s->root));
	snprintf(pid, sizeof pid, "%d", s->inner_pid);
	snprintf(start, sizeof start, "%llu", (unsigned long long)s->started_realtime_ns);
	snprintf(seconds, sizeof seconds, "%u", SYMBOL_SECONDS);
	snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)max_bytes);
	passed_on_add_files(&p, s, files);
	analyzer_child_rights(s, limits, rights);
	analyzer_child_execute(&p, first, s, arguments, true, NULL);
}

/* ---- in memattach ---- */

static int make_result(struct err *e)
{
	AUTO_CLOSE int fd = memfd_create("memattach-symbols", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, SYMBOL_RESULT_BYTES) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return err_sys(e, "no memory for them");
	return cleanup_steal_fd(&fd);
}

static double part_done(void *context)
{
	const int *result = context;
	struct symbol_result r;

	if (!whole_io_pread(*result, &r, sizeof r, 0) || !r.total || r.done > r.total)
		return 0;
	return (double)r.done / (double)r.total;
}

static int await(pid_t child, int result, const struct patience *patience, struct err *e)
{
	const struct analyzer_child c = { .pid = child,
		                          .task = "looks for them",
		                          .seconds = SYMBOL_END_SECONDS,
		                          .done = part_done,
		                          .child_context = &result };
	int status;

	int rc = analyzer_child_await(&c, patience, &status, e);
	if (rc < 0 || status == 0)
		return rc;
	if (status == SYMBOL_REQUEST_UNKNOWN)
		return err_set(e, EPROTO, "the memanalyze beside memattach is of another version");
	return err_set(e, EPROTO, "memanalyze, which looks for them, ended with status %d", status);
}

const char *symbol_child_refused_map(enum symbol_map map)
{
	static const char *const texts[SYMBOL_MAP_COUNT] = {
		[SYMBOL_MAP_CLOSED] = "its user cannot open it",
		[SYMBOL_MAP_MOUNTED] = "something is mounted there",
		[SYMBOL_MAP_SPECIAL] = "it is no regular file",
		[SYMBOL_MAP_FOREIGN] = "it belongs neither to the user of the process nor to root",
		[SYMBOL_MAP_LARGE] = "it is larger than 64 MiB",
		[SYMBOL_MAP_OLD] = "it is older than the process",
	};

	return map < SYMBOL_MAP_COUNT ? texts[map] : NULL;
}

static int take_result(int result, uint64_t max_bytes, struct dump_symbols **symbols, struct err *e)
{
	struct dump_symbols head;

	if (!whole_io_pread(result, &head, sizeof head, SYMBOL_RESULT_AT) || head.bytes < sizeof head ||
	    head.bytes > max_bytes || head.bytes > DUMP_SYMBOLS_BYTES_MAX)
		return err_set(e, EPROTO, "what memanalyze has found makes no sense");
	AUTO_FREE struct dump_symbols *s = malloc(head.bytes);
	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	if (!whole_io_pread(result, s, head.bytes, SYMBOL_RESULT_AT) || s->bytes != head.bytes ||
	    !dump_symbols_are_sound(s, head.bytes))
		return err_set(e, EPROTO, "what memanalyze has found makes no sense");
	*symbols = cleanup_steal_pointer(&s);
	return 0;
}

int symbol_child_run(const struct symbol_sources *s, const struct dump_file *file, uint64_t max_bytes,
                     const struct patience *patience, struct symbol_answer *answer, struct err *e)
{
	struct symbol_result head = { 0 };

	AUTO_CLOSE int result = make_result(e);

	if (result < 0)
		return result;
	if (s->program < 0)
		return err_set(e, ENOENT, "there is no memanalyze beside memattach");
	int room = memory_room_check(ANALYZER_CHILD_ROOM_BYTES, e);
	if (room < 0)
		return room;
	pid_t child = child_start(SIGKILL);
	if (child == 0)
		be_child(s, file, result, max_bytes);
	if (child < 0)
		return err_sys(e, "no process can be made that looks for them");
	int rc = await(child, result, patience, e);
	if (whole_io_pread(result, &head, sizeof head, 0))
		answer->map = head.map;
	return rc < 0 ? rc : take_result(result, max_bytes, &answer->symbols, e);
}
