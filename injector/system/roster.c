/* SPDX-License-Identifier: MIT */
#include "system/roster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/new_file.h"
#include "files/output_file.h"

int roster_begin(struct roster *r, const char *directory, struct err *e)
{
	struct tm local;
	char when[32];

	new_file_sweep(directory);
	r->began = time(NULL);
	strftime(when, sizeof when, "%Y%m%d-%H%M%S", localtime_r(&r->began, &local));
	if ((size_t)snprintf(r->path, sizeof r->path, "%s/memattach.system.%s.%d", directory, when, getpid()) >=
	    sizeof r->path)
		return err_set(e, ENAMETOOLONG, "the name of the directory is too long");
	return 0;
}

/* What may change, to be freed; NULL: no memory. */
static char *rows_of(unsigned sessions, const struct unseen *u)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "sessions\t%u\n", sessions);
	for (size_t i = 0; i < u->count; i++)
		fprintf(f, "unseen\t%u\t%d\t%s\t%s\n", u->list[i].count, u->list[i].example, u->list[i].name,
		        u->list[i].why);
	if (u->more)
		fprintf(f, "more\t%u\n", u->more);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static int write_rows(const struct roster *r, const char *rows, struct err *e)
{
	struct output_file file;
	char host[65] = "";

	int rc = output_file_open(&file, r->path, OUTPUT_OF_SESSION, e);
	if (rc < 0)
		return rc;
	gethostname(host, sizeof host - 1);
	fprintf(file.stream, "memattach-system\t1\nhost\t%s\ntime\t%lld\t%lld\n%s", host, (long long)r->began,
	        (long long)time(NULL), rows);
	rc = output_file_finish(&file, e);
	output_file_done(&file);
	return rc;
}

int roster_write(struct roster *r, unsigned sessions, const struct unseen *u, struct err *e)
{
	char *rows = rows_of(sessions, u);

	if (!rows)
		return err_set(e, ENOMEM, "out of memory");
	bool stands = r->rows && strcmp(r->rows, rows) == 0 && access(r->path, F_OK) == 0;
	int rc = stands ? 0 : write_rows(r, rows, e);
	if (rc < 0) {
		free(rows);
		return rc;
	}
	free(r->rows);
	r->rows = rows;
	return 0;
}

void roster_free(struct roster *r)
{
	free(r->rows);
	r->rows = NULL;
}
