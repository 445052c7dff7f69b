/* SPDX-License-Identifier: MIT */
#include "system/roster.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "files/output_file.h"

int roster_begin(struct roster *r, const char *directory, struct err *e)
{
	struct tm local;
	char when[32];

	r->began = time(NULL);
	strftime(when, sizeof when, "%Y%m%d-%H%M%S", localtime_r(&r->began, &local));
	if ((size_t)snprintf(r->path, sizeof r->path, "%s/memattach.system.%s.%d", directory, when, getpid()) >=
	    sizeof r->path)
		return err_set(e, ENAMETOOLONG, "the name of the directory is too long");
	return 0;
}

int roster_write(const struct roster *r, unsigned sessions, const struct unseen *u, struct err *e)
{
	struct output_file file;
	char host[65] = "";

	int rc = output_file_open(&file, r->path, OUTPUT_OF_SESSION, e);
	if (rc < 0)
		return rc;
	gethostname(host, sizeof host - 1);
	fprintf(file.stream, "memattach-system\t1\nhost\t%s\ntime\t%lld\t%lld\nsessions\t%u\n", host,
	        (long long)r->began, (long long)time(NULL), sessions);
	for (size_t i = 0; i < u->count; i++)
		fprintf(file.stream, "unseen\t%u\t%d\t%s\t%s\n", u->list[i].count, u->list[i].example, u->list[i].name,
		        u->list[i].why);
	if (u->more)
		fprintf(file.stream, "more\t%u\n", u->more);
	rc = output_file_finish(&file, e);
	output_file_done(&file);
	return rc;
}
