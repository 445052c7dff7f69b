/* SPDX-License-Identifier: MIT */
/* Writes the seeds of fuzz_dump_reader into a directory: small dumps of every shape, so that they need not be kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump_builder.h"

static void save(struct dump_builder *b, const char *directory, const char *name)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	if (dump_builder_write(b, path)) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct dump_builder b;
	const uint64_t frame = DUMP_FRAME(1, 0x400100);

	if (argc != 2)
		return 64;
	dump_builder_sampler(&b);
	save(&b, argv[1], "sampler");
	dump_builder_header(&b)->state = DUMP_STATE_RUNNING;
	dump_builder_header(&b)->lease_realtime_ns = 1;
	dump_builder_header(&b)->lease_sequence = 3;
	save(&b, argv[1], "abandoned");
	b.size = 20000;
	save(&b, argv[1], "cut");
	dump_builder_done(&b);

	dump_builder_init(&b, 1, 8, 8, 0);
	save(&b, argv[1], "empty");
	uint32_t s = dump_builder_stack(&b, &frame, 1, DUMP_STACK_DEEP);
	dump_builder_sample(&b, s, 0, 1, 1);
	dump_builder_module(&b, 1, 0, 0x400000, 0x500000, "/bin/true", NULL, 0, DUMP_MODULE_MAIN);
	dump_builder_module(&b, 65535, 0, 0x7000, 0x8000, "[vdso]", NULL, 0, DUMP_MODULE_VDSO);
	dump_builder_header(&b)->state = DUMP_STATE_EXECED;
	save(&b, argv[1], "exact");
	dump_builder_done(&b);
	return 0;
}
