/* SPDX-License-Identifier: MIT */
/*
 * What the frames of a target are named by, opened in time: at the end of a session the target may be gone, and the
 * files of its container with it. Each is a descriptor that memattach holds as long as the session lasts:
 *
 *   - its root directory (O_PATH): debug files are below it, and programs that are not held themselves;
 *   - the program file of each module, of which nothing else may be left but the mapping: as many as SYMBOL_FILES_MAX,
 *     and a quarter of the descriptors that memattach may have;
 *   - memanalyze, which is beside memattach: another one may be installed meanwhile.
 *
 * They are opened as target_file.h says, and read only by a child that has given up its rights (analyzer_child.h). All
 * else that names frames, debug files and perf-PID.map, is opened by that child, with the rights of the target's user.
 * While memattach lives they keep a file system busy that the target has used, as the target itself does.
 */
#pragma once

#include "elf/elf_module.h"
#include "maps/maps.h"
#include "symbol_request.h"
#include "process/target.h"

#define SYMBOL_FILES_MAX SYMBOL_REQUEST_FILES_MAX

struct symbol_source {
	uint32_t id; /* of a module, as in the dump */
	uint32_t build_id_bytes;
	uint8_t build_id[DUMP_BUILD_ID_MAX];
	int fd;
};

struct symbol_sources {
	int program; /* memanalyze, -1: none */
	int root;    /* -1: none */
	uid_t uid;   /* of the target */
	gid_t gid;
	pid_t inner_pid;              /* of the target, as it knows itself */
	uint64_t started_realtime_ns; /* when the target began, about */
	struct symbol_source *files;
	size_t file_count;
};

/* Never fails: what cannot be opened is missing. symbol_sources_close afterwards. */
void symbol_sources_open(struct symbol_sources *sources, const struct target *target);
void symbol_sources_close(struct symbol_sources *sources);
/* For each module that is recorded. */
void symbol_sources_add(struct symbol_sources *sources, const struct elf_module *module,
                        const struct target_memory *memory, const struct maps *maps);
