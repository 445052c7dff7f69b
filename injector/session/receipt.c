/* SPDX-License-Identifier: MIT */
#include "session/receipt.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/clocks.h"
#include "base/cleanup.h"
#include "files/file_place.h"
#include "base/json.h"
#include "files/owner.h"

#define SETTLE_NS 5000000
#define STARTED_TRIES 600 /* a new thread may wait so long for its first turn on a processor */

/* ---- its file ---- */

int receipt_file_open(FILE **f, const char *path, struct err *e)
{
	struct stat st;
	/* Without O_TRUNC, which would act before it is known what the file is; a FIFO does not make it wait. Without
	 * O_CREAT for what is there: in /tmp not even root may (fs.protected_regular). */
	const int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	struct file_place place;

	int rc = file_place_open(&place, path, PLACE_KEEP_LINK, e);
	if (rc < 0)
		return err_prefix(e, "cannot write the receipt %s", path);
	AUTO_CLOSE int fd = openat(place.directory, place.name, flags | O_CREAT | O_EXCL, 0600);
	if (fd >= 0)
		owner_give(fd);
	else if (errno == EEXIST)
		fd = openat(place.directory, place.name, flags);
	rc = errno;
	file_place_close(&place);
	errno = rc;

	if (fd < 0)
		return err_sys(e,
		               errno == ELOOP
		                       ? "cannot write the receipt %s: it is a symbolic link, which is not followed"
		                       : "cannot write the receipt %s",
		               path);
	if (fstat(fd, &st) < 0)
		return err_sys(e, "cannot write the receipt %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, EINVAL, "cannot write the receipt %s: it is no regular file", path);
	/* Another name of a file that is elsewhere, which whoever made it could not write. */
	if (st.st_nlink != 1 || (geteuid() == 0 && !file_place_trusts(st.st_uid)))
		return err_set(e, EACCES,
		               "cannot write the receipt %s: the file belongs to another user, or has another name",
		               path);
	if (ftruncate(fd, 0) < 0)
		return err_sys(e, "cannot write the receipt %s", path);
	*f = fdopen(fd, "w");
	if (!*f)
		return err_sys(e, "cannot write the receipt %s", path);
	cleanup_steal_fd(&fd);
	return 0;
}

int receipt_file_close(FILE *f, const char *path, struct err *e)
{
	int failed = fflush(f) != 0 || ferror(f), code = errno;

	if (fclose(f) != 0 && !failed) {
		failed = 1;
		code = errno;
	}
	errno = code;
	return failed ? err_sys(e, "cannot write the receipt %s", path) : 0;
}

void receipt_file_string(FILE *f, const char *text, size_t length)
{
	AUTO_FREE char *copy = strndup(text, length);
	struct json json = { .out = f };

	json_string(&json, NULL, copy ? copy : "");
}

/* ---- what is compared ---- */

static bool is_ours(const struct session *s, const struct mapping *m)
{
	return ours_has(&s->ours, m->dev_major, m->dev_minor, m->inode);
}

static void add_mapping(void *context, const struct maps_change *change)
{
	struct session *s = context;
	char text[300];

	if (change->after && is_ours(s, change->after))
		session_add_residue(s, "mapping %s", maps_change_format(change, text, sizeof text));
}

static void compare_descriptors(struct session *s, const struct snapshot *after)
{
	for (size_t i = 0; i < after->descriptor_count; i++)
		if (ours_has(&s->ours, after->descriptors[i].dev_major, after->descriptors[i].dev_minor,
		             after->descriptors[i].inode))
			session_add_residue(s, "descriptor %d: %s", after->descriptors[i].number,
			                    after->descriptors[i].target);
}

/* With the signals that the C library blocks for moments only, as a thread does that memattach has borrowed. The kernel
 * blocks two never, the stub those of faults neither (remote.h). */
static bool blocks_all(uint64_t blocked)
{
	static const int others[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };

	for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++)
		blocked |= 1ull << (others[i] - 1);
	return blocked == ~0ull;
}

static bool blocked_all_before(const struct session *s, pid_t tid)
{
	for (size_t i = 0; i < s->outcome.before.thread_count; i++)
		if (s->outcome.before.threads[i].tid == tid)
			return blocks_all(s->outcome.before.threads[i].blocked);
	return false;
}

/* The C library lets a thread begin and end so, and one that makes a process: only what stays is a difference. */
static bool keeps_blocking_all(const struct session *s, pid_t tid)
{
	for (int i = 0; i < STARTED_TRIES; i++) {
		if (!blocks_all(snapshot_blocked_now(&s->target, tid)))
			return false;
		clock_pause(SETTLE_NS);
	}
	return true;
}

static void compare_signals(struct session *s, const struct snapshot *after)
{
	/* A trap that memattach might have reset is one that the program had before. */
	uint64_t lost = (s->outcome.before.ignored & ~after->ignored & ~after->caught) |
	                (s->outcome.before.caught & ~after->caught);

	if (lost)
		session_say(s, "memattach: the program changed dispositions of signals during the session (mask %llx)",
		            (unsigned long long)lost);
	for (size_t i = 0; i < after->thread_count; i++)
		if (blocks_all(after->threads[i].blocked) && !blocked_all_before(s, after->threads[i].tid) &&
		    keeps_blocking_all(s, after->threads[i].tid))
			session_add_residue(s, "thread %d has all signals blocked, which it had not before",
			                    after->threads[i].tid);
}

/* What was said of it already is CHANGE_STAYS. */
static void add_changes(struct session *s)
{
	for (unsigned kind = 0; kind < CHANGE_KINDS; kind++)
		if (s->changes.sums[kind][CHANGE_MADE])
			session_add_residue(s, "%u not put back: %s", s->changes.sums[kind][CHANGE_MADE],
			                    change_what(kind));
}

int receipt_verify(struct session *s, struct err *e)
{
	struct snapshot after;

	int rc = snapshot_take(&after, &s->target, e);
	if (rc < 0)
		return rc;
	add_changes(s);
	if (s->outcome.before.maps.list) {
		maps_diff(&s->outcome.before.maps, &after.maps, add_mapping, s);
		compare_signals(s, &after);
	} else {
		for (size_t i = 0; i < after.maps.count; i++)
			if (is_ours(s, &after.maps.list[i]))
				session_add_residue(
					s, "mapping %llx-%llx %s", (unsigned long long)after.maps.list[i].start,
					(unsigned long long)after.maps.list[i].end, after.maps.list[i].path);
	}
	compare_descriptors(s, &after);
	snapshot_free(&after);
	return rc;
}

static void put_counts(FILE *f, const char *name, const struct word_counts *c)
{
	fprintf(f, "\"%s\":{\"patched\":%u,\"restored\":%u,\"foreign\":%u,\"gone\":%u},", name, c->patched, c->restored,
	        c->foreign, c->gone);
}

static void put_lines(FILE *f, const char *lines)
{
	fputc('[', f);
	for (const char *line = lines; line && *line;) {
		size_t length = strcspn(line, "\n");
		if (line != lines)
			fputc(',', f);
		receipt_file_string(f, line, length);
		line += length + (line[length] == '\n');
	}
	fputc(']', f);
}

static void put_changes(FILE *f, const struct changes *c)
{
	const char *between = "";

	fputs("\"changes\":[", f);
	for (unsigned kind = 0; kind < CHANGE_KINDS; kind++) {
		const uint32_t *n = c->sums[kind], undone = n[CHANGE_UNDONE], gone = n[CHANGE_GONE];
		const uint32_t stays = n[CHANGE_STAYS] + n[CHANGE_MADE];
		if (!(undone + gone + stays))
			continue;
		fprintf(f, "%s{\"what\":\"%s\",\"made\":%u,\"undone\":%u,\"gone\":%u,\"stays\":%u}", between,
		        change_what(kind), undone + gone + stays, undone, gone, stays);
		between = ",";
	}
	fputs("],", f);
}

int receipt_write(const struct session *s, struct err *e)
{
	if (!s->options.receipt)
		return 0;
	FILE *f;
	int rc = receipt_file_open(&f, s->options.receipt, e);
	if (rc < 0)
		return rc;
	fprintf(f, "{\"pid\":%d,\"stopped_ms\":{\"attach\":%.3f,\"detach\":%.3f},", s->target.pid,
	        (double)s->outcome.attach_longest_ns / 1e6, (double)s->outcome.detach_longest_ns / 1e6);
	put_counts(f, "slots", &s->outcome.entries);
	put_counts(f, "python", &s->outcome.python);
	fprintf(f, "\"payload\":\"%s\",", libc_loads_payload(&s->view.libc) ? "loaded" : "mapped");
	fprintf(f, "\"functions\":{\"hooked\":%u,\"restored\":%u},", s->outcome.functions_hooked,
	        s->outcome.functions_restored);
	put_changes(f, &s->changes);
	fprintf(f, "\"clean\":%s,\"residue\":", s->outcome.residue ? "false" : "true");
	put_lines(f, s->outcome.residue);
	fputs(",\"notes\":", f);
	put_lines(f, s->outcome.notes);
	fputs("}\n", f);
	return receipt_file_close(f, s->options.receipt, e);
}
