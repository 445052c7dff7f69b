/* SPDX-License-Identifier: MIT */
/*
 * Call frame information, and sections of files, are compiled in a child process that can do nothing else: it has the
 * bytes, the open files and the memory of the target for reading, no privileges, a limited amount of memory and of
 * time, and a file in memory for its results (common/sandbox/rights.h). This is the largest part of what is done with
 * data of the target, and libraries have a part in it (libdw, libelf). A child that dies or is stopped costs the rows
 * of its jobs, never the attach.
 *
 * What it writes is believed no more than the target: memattach reads it when the child is dead, and takes only rows
 * that are sound.
 */
#pragma once

#include "unwind/unwind_compile.h"

#define UNWIND_WORKER_BYTES (128ull << 20) /* of memory, and of results */
#define UNWIND_WORKER_SECONDS 30u          /* of CPU time, all threads together */

struct unwind_job {
	struct module_file file; /* open until the job is done */
	struct unwind_input input;
	/* Out: */
	struct unwind_rows rows;
	int result; /* 0 or -errno */
	struct err error;
};

/*
 * Compiles the input of each job. The child is ended when a signal that ends sessions (SIGINT, SIGTERM, SIGHUP) waits.
 * What fails for all jobs is the result of each of them.
 */
void unwind_worker_run(struct unwind_job *jobs, size_t count);
