/* SPDX-License-Identifier: MIT */
#include "live/fleet_rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/now.h"
#include "dumps/newest_dump.h"

#define MINUTE_NS 60e9
#define LEAST_NS 2000000000ull /* a growth of less is not told */

const char *fleet_sort_name(enum fleet_sort sort)
{
	static const char *const names[] = { "growth since the attach", "growth of the last minute", "live bytes",
		                             "name" };

	return names[sort];
}

/* ---- order ---- */

static double key_of(const struct fleet_process *p, enum fleet_sort sort)
{
	switch (sort) {
	case FLEET_SORT_GROWN: return p->grown;
	case FLEET_SORT_MINUTE: return isnan(p->minute) ? -HUGE_VAL : p->minute;
	case FLEET_SORT_LIVE: return p->live_known ? p->live.value : -1;
	default: return 0;
	}
}

static int compare(const void *a, const void *b, void *context)
{
	const enum fleet_sort sort = *(const enum fleet_sort *)context;
	const struct fleet_process *x = a, *y = b;
	double one = key_of(x, sort), other = key_of(y, sort);

	if (one != other)
		return one > other ? -1 : 1;
	int order = strcmp(x->command, y->command);
	return order ? order : strcmp(x->file, y->file);
}

void fleet_sort(struct fleet *f, enum fleet_sort sort)
{
	if (f->count)
		qsort_r(f->list, f->count, sizeof *f->list, compare, &sort);
}

bool fleet_fits(const struct fleet_process *p, const char *text)
{
	return !text[0] || strcasestr(p->command, text) || strcasestr(p->group, text);
}

/* ---- headers ---- */

/* The image without its registry, and the container; or the unit. */
static void name_group(const struct dump_header *h, char group[GROUP_NAME])
{
	char cgroup[sizeof h->cgroup], image[sizeof h->image];
	struct group_names names;

	snprintf(cgroup, sizeof cgroup, "%.*s", (int)sizeof h->cgroup, h->cgroup);
	snprintf(image, sizeof image, "%.*s", (int)sizeof h->image, h->image);
	const char *slash = strrchr(image, '/');
	group_names_of(cgroup, &names);
	if (names.container[0])
		snprintf(group, GROUP_NAME, "%.200s%s%.*s", slash ? slash + 1 : image, image[0] ? " " : "",
		         (int)CONTAINER_SHOWN, names.container);
	else
		snprintf(group, GROUP_NAME, "%s", names.unit);
}

static void note_growth(struct fleet_process *p, const struct dump_header *h)
{
	uint64_t ns = h->clock_latest.realtime_ns, bytes = h->private_latest_bytes;

	p->private_bytes = bytes;
	p->grown = bytes && h->private_start_bytes ? (double)bytes - (double)h->private_start_bytes : 0;
	if (!bytes || ns < p->bases[1].ns) /* another session */
		p->bases[0].ns = p->bases[1].ns = 0;
	if (!bytes)
		return;
	if (!p->bases[0].ns || ns - p->bases[1].ns > FLEET_WINDOW_NS / 2) {
		p->bases[0] = p->bases[1];
		p->bases[1].ns = ns;
		p->bases[1].bytes = bytes;
		if (!p->bases[0].ns)
			p->bases[0] = p->bases[1];
	}
	uint64_t past_ns = ns - p->bases[0].ns;
	p->minute = past_ns < LEAST_NS ? NAN
	                               : ((double)bytes - (double)p->bases[0].bytes) / ((double)past_ns / MINUTE_NS);
}

/* NULL: not now. */
static struct dump *open_dump(const struct fleet_process *p, const char *directory, char path[PATH_MAX])
{
	struct dump *dump;

	if ((size_t)snprintf(path, PATH_MAX, "%s/%s", directory, p->file) >= PATH_MAX ||
	    dump_open(path, &dump, ERR_IGNORED))
		return NULL;
	return dump;
}

static void read_header(struct fleet_process *p, const char *directory)
{
	char path[PATH_MAX];
	struct dump *dump = open_dump(p, directory, path);

	if (!dump)
		return;
	const struct dump_header *h = dump_header(dump);
	snprintf(p->command, sizeof p->command, "%.*s", (int)sizeof h->command, h->command);
	name_group(h, p->group);
	p->pid = h->pid;
	p->end = dump_end(dump);
	p->live_old = p->live_known;
	note_growth(p, h);
	dump_close(dump);
}

static struct fleet_process *find(struct fleet *f, const char *file)
{
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->list[i].file, file))
			return &f->list[i];
	if (f->count == FLEET_MAX || !grow_list(f->list, f->count))
		return NULL;
	f->list[f->count] = (struct fleet_process){ .file = strdup(file), .minute = NAN };
	return f->list[f->count].file ? &f->list[f->count++] : NULL;
}

/* By its name it is a dump, which may not be read. */
static bool is_refused(DIR *d, const char *file, const struct stat *st)
{
	const char *ending = strrchr(file, '.');

	return S_ISREG(st->st_mode) && ending && !strcmp(ending, ".dump") &&
	       faccessat(dirfd(d), file, R_OK, AT_EACCESS) < 0 && errno == EACCES;
}

static void look_at(struct fleet *f, DIR *d, const char *directory, const char *file)
{
	struct stat st;

	if (fstatat(dirfd(d), file, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (!newest_dump_is(dirfd(d), file)) {
		f->left_out += is_refused(d, file, &st);
		return;
	}
	struct fleet_process *p = find(f, file);
	if (!p) {
		f->left_out++;
		return;
	}
	p->present = true;
	if (p->inode == st.st_ino && p->written.tv_sec == st.st_mtim.tv_sec && p->written.tv_nsec == st.st_mtim.tv_nsec)
		return;
	p->inode = st.st_ino;
	p->written = st.st_mtim;
	read_header(p, directory);
}

static void drop_gone(struct fleet *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->count; i++) {
		if (f->list[i].present)
			f->list[kept++] = f->list[i];
		else
			free(f->list[i].file);
	}
	f->count = kept; /* grow_list goes by the count: the room that is left over for it was made for more */
}

static void sum_up(struct fleet *f)
{
	f->ended = 0;
	f->private_bytes = f->grown = 0;
	for (size_t i = 0; i < f->count; i++) {
		f->ended += f->list[i].end != DUMP_END_RUNNING;
		f->private_bytes += f->list[i].end == DUMP_END_RUNNING ? (double)f->list[i].private_bytes : 0;
		f->grown += f->list[i].grown;
	}
}

/* ---- what is live ---- */

static void read_live(struct fleet_process *p, const char *directory, const struct report_options *options)
{
	struct report_options heap = { .confidence = options->confidence };
	struct report report;
	char path[PATH_MAX];
	struct dump *dump = open_dump(p, directory, path);

	if (!dump)
		return;
	if (report_make(&report, dump, path, &heap, ERR_IGNORED) == 0) {
		p->live = report_estimate(&report, &report.total, FIGURE_LIVE_BYTES);
		p->samples = report.total.sum[FIGURE_LIVE_BYTES].samples;
		p->trust = report_trust(&report, FIGURE_LIVE_BYTES);
		p->live_known = true;
		p->live_old = false;
		report_done(&report);
	}
	dump_close(dump);
}

/* From the first row on that is shown, and then those above. */
static void read_some(struct fleet *f, const char *directory, const struct report_options *options, size_t first)
{
	uint64_t end_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) + FLEET_READ_NS;

	for (size_t i = 0; i < f->count && now_ns(CLOCK_PROCESS_CPUTIME_ID) < end_ns; i++) {
		struct fleet_process *p = &f->list[(first + i) % f->count];
		if (!p->live_known || p->live_old)
			read_live(p, directory, options);
	}
}

int fleet_look(struct fleet *f, const char *directory, const struct report_options *options, enum fleet_sort sort,
               size_t first, struct err *e)
{
	DIR *d = opendir(directory);

	if (!d)
		return err_sys(e, "cannot read the directory");
	f->left_out = 0;
	for (size_t i = 0; i < f->count; i++)
		f->list[i].present = false;
	for (struct dirent *entry; (entry = readdir(d));)
		look_at(f, d, directory, entry->d_name);
	closedir(d);
	drop_gone(f);
	sum_up(f);
	fleet_sort(f, sort);
	read_some(f, directory, options, first);
	if (sort == FLEET_SORT_LIVE)
		fleet_sort(f, sort);
	return 0;
}

void fleet_done(struct fleet *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->list[i].file);
	free(f->list);
	*f = (struct fleet){ 0 };
}
