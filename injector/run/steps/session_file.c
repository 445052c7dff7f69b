/* SPDX-License-Identifier: MIT */
#include "run/steps/session_file.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "run/reports/long_wait.h"
#include "base/cleanup.h"
#include "host/say.h"
#include "touch/patches/target_dump.h"
#include "files/file_place.h"

#define NAMES_MAX 100u                      /* that are made for one second */
#define STALL_NS 30000000000ull             /* for one copy */
#define SHARED_UNCHANGED_NS 300000000000ull /* until the next one, of many sessions whose processes sample nothing */
#define LEFT_BYTES (16u << 20)              /* of another folder */

static bool has_room(const char *folder, uint64_t bytes)
{
	struct statvfs s;

	return statvfs(folder, &s) == 0 && (uint64_t)s.f_bavail * s.f_frsize / 2 > bytes + LEFT_BYTES;
}

/*
 * Where a dump finds room when its disk has none: the first of $TMPDIR, /var/tmp and /tmp that is on another file
 * system than directory (a descriptor; -1: on any), may be written to, and has room for so many bytes and as many again
 * for other programs. NULL: none.
 */
static const char *other_folder(int directory, uint64_t bytes)
{
	const char *const folders[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };
	struct stat full, other;
	bool known = directory >= 0 && fstat(directory, &full) == 0;

	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		if (folders[i] && folders[i][0] == '/' && stat(folders[i], &other) == 0 && S_ISDIR(other.st_mode) &&
		    !(known && full.st_dev == other.st_dev) && access(folders[i], W_OK | X_OK) == 0 &&
		    has_room(folders[i], bytes))
			return folders[i];
	return NULL;
}

/* Is this an error of a disk without room? */
static bool other_folder_helps(int code)
{
	return code == ENOSPC || code == EDQUOT;
}

/* memattach.<comm>.<pid>.<YYYYMMDD-HHMMSS>.dump, with a number if there is one already; what does not belong into a
 * file name becomes '_'. */
static void make_name(const struct session *s, unsigned number, char *name, size_t size)
{
	char comm[sizeof s->target.comm], when[32], suffix[16] = "";
	time_t now = time(NULL);
	struct tm local;

	snprintf(comm, sizeof comm, "%s", s->target.comm);
	for (char *c = comm; *c; c++)
		if (*c == '/' || (unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
			*c = '_';
	strftime(when, sizeof when, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
	if (number)
		snprintf(suffix, sizeof suffix, "-%u", number + 1);
	snprintf(name, size, "memattach.%s.%d.%s%s.dump", comm, s->target.pid, when, suffix);
}

/* path: of the file, or of the directory in which it gets a name; NULL: the current one. */
static int create(const struct session *s, struct dump_file *file, const char *path, struct err *e)
{
	char name[128], full[sizeof file->path];
	int rc = -EEXIST;

	if (path && !file_place_is_directory(path))
		return dump_file_create(file, path, e);
	for (unsigned i = 0; i < NAMES_MAX && rc == -EEXIST; i++) {
		make_name(s, i, name, sizeof name);
		if ((size_t)snprintf(full, sizeof full, "%s%s%s", path ? path : "", path ? "/" : "", name) >=
		    sizeof full)
			return err_set(e, ENAMETOOLONG, "the name of the dump is too long");
		rc = dump_file_create(file, full, e);
	}
	return rc;
}

int session_file_check(const struct session_options *options, struct err *e)
{
	if (options->output && options->every_ns && !file_place_is_directory(options->output))
		return err_set(e, ENOTDIR, "-o %s is no directory: with --every each session has a dump of its own",
		               options->output);
	if (!options->output || file_place_is_directory(options->output) ||
	    faccessat(AT_FDCWD, options->output, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return err_set(e, EEXIST, "%s exists; memattach never writes over a file, choose another name with -o",
	               options->output);
}

static int write_file(const struct session *s, struct dump_file *file, const struct dump_source *source, struct err *e)
{
	struct long_wait w;

	long_wait_begin(&w, s, "writing the dump", "");
	int rc = dump_file_write(file, source, &w.patience, e);
	say_status(NULL);
	return rc;
}

/* The same where there is no room, with the folder that has some. */
static int offer_other_folder(const struct dump_file *file, int rc, struct err *e)
{
	const char *folder = other_folder_helps(e->code) ? other_folder(file->directory, 0) : NULL;
	struct err why = *e;

	return folder ? err_set(e, why.code, "%s; there is room in another folder: -o %s", why.text, folder) : rc;
}

int session_file_create(struct session *s, struct err *e)
{
	struct dump_source source;

	int rc = session_file_check(&s->options, e);
	rc = rc ?: create(s, &s->recording.file, s->options.output, e);
	if (rc < 0)
		return offer_other_folder(&s->recording.file, rc, e);
	if (s->options.share)
		s->recording.file.unchanged_ns = SHARED_UNCHANGED_NS;
	dump_source_of_writer(&source, &s->recording.dump);
	rc = write_file(s, &s->recording.file, &source, e);
	if (rc < 0)
		rc = offer_other_folder(&s->recording.file, err_prefix(e, "%s", s->recording.file.path), e);
	return rc;
}

/* The time of the copy that is in the file. */
static const char *copied_at(const struct dump_file *f, char text[32])
{
	struct tm local;

	strftime(text, 32, "%H:%M:%S", localtime_r(&f->copied_at, &local));
	return text;
}

/* Says that a copy had to take another name than before. */
static void say_new_name(const struct session *s, const char *before)
{
	if (strcmp(before, s->recording.file.path) != 0)
		session_say(s, "memattach: something else has the name %s now; the dump is %s", before,
		            s->recording.file.path);
}

/* One of many sessions says nothing itself. */
static void say_failing(const struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say_failing(const struct session *s, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	AUTO_FREE char *text = say_format(format, ap);
	va_end(ap);
	if (!text)
		return;
	session_say(s, "memattach: %s", text);
	if (s->options.share)
		session_share_fails(s->options.share, text);
}

static void say_failed_copy(const struct session *s, const struct err *e)
{
	const struct dump_file *f = &s->recording.file;
	struct dump_source source;
	char at[32];

	dump_source_of_writer(&source, &s->recording.dump);
	const char *folder = other_folder_helps(e->code) ? other_folder(f->directory, dump_source_bytes(&source))
	                                                 : NULL;
	say_failing(s, "%s: %s; it holds the recording until %s, and it will be tried again%s%s", f->path, e->text,
	            copied_at(f, at), folder ? ", at the end also in " : "", folder ? folder : "");
}

static void say_complete(const struct session *s)
{
	session_say(s, "%s is complete again", s->recording.file.path);
	if (s->options.share)
		session_share_fails(s->options.share, NULL);
}

void session_file_tick(struct session *s)
{
	char path[sizeof s->recording.file.path], at[32];
	struct err e;

	memcpy(path, s->recording.file.path, sizeof path);
	int rc = dump_file_tick(&s->recording.file, &s->recording.dump, &e);
	if (rc < 0 && !s->recording.file.failing)
		say_failed_copy(s, &e);
	bool stalls = rc == 0 && s->recording.file.child &&
	              clock_monotonic_ns() - s->recording.file.begun_ns > STALL_NS;
	if (stalls && !s->recording.file.failing)
		say_failing(s, "%s: the disk takes longer than %llu s; it holds the recording until %s",
		            s->recording.file.path, STALL_NS / 1000000000u, copied_at(&s->recording.file, at));
	if (rc > 0 && s->recording.file.failing)
		say_complete(s);
	say_new_name(s, path);
	if (rc != 0 || stalls)
		s->recording.file.failing = rc < 0 || stalls;
}

/* The last copy, in a folder of another disk, under the same name. It is the dump from then on; the copy before stays
 * where it is. */
static int write_elsewhere(struct session *s, const struct dump_source *source)
{
	struct dump_file *full = &s->recording.file, file;
	const char *slash = strrchr(full->path, '/');
	const char *folder = other_folder(full->directory, dump_source_bytes(source));
	char path[sizeof full->path], at[32];

	if (!folder ||
	    (size_t)snprintf(path, sizeof path, "%s/%s", folder, slash ? slash + 1 : full->path) >= sizeof path ||
	    dump_file_create(&file, path, ERR_IGNORED) < 0)
		return -ENOSPC;
	if (write_file(s, &file, source, ERR_IGNORED) < 0) {
		dump_file_discard(&file);
		return -ENOSPC;
	}
	session_say(s, "memattach: there is no room for %s, which holds the recording until %s; all of it is in %s",
	            full->path, copied_at(full, at), file.path);
	dump_file_close(full);
	*full = file;
	if (s->options.share)
		s->options.share->elsewhere = true;
	return 0;
}

int session_file_finish(struct session *s, struct err *e)
{
	char path[sizeof s->recording.file.path], at[32];
	struct dump_source source;

	memcpy(path, s->recording.file.path, sizeof path);
	dump_source_of_writer(&source, &s->recording.dump);
	int rc = write_file(s, &s->recording.file, &source, e);
	say_new_name(s, path);
	if (rc == 0 || (other_folder_helps(e->code) && write_elsewhere(s, &source) == 0))
		return 0;
	struct err why = *e;
	return err_set(e, why.code, "%s: %s; it holds the recording until %s, what came after is lost",
	               s->recording.file.path, why.text, copied_at(&s->recording.file, at));
}

/* What another name or another disk helps against; the rest is no recording. */
static bool can_be_tried_again(int rc)
{
	return rc < 0 && rc != -EPROTO && rc != -ENOENT && rc != -EINTR;
}

static int save(const struct session *s, struct dump_file *file, struct err *e)
{
	struct long_wait w;

	long_wait_begin(&w, s, "writing the dump", "");
	int rc = target_dump_save(&(struct target_dump){ &s->payload.block, &s->view.maps, &s->memory },
	                          s->options.max_bytes, file, &w.patience, e);
	say_status(NULL);
	if (rc < 0) {
		dump_file_discard(file);
		return rc;
	}
	session_say(s, "what its session recorded until now is in %s", file->path);
	dump_file_close(file);
	return 0;
}

int session_file_save(struct session *s, struct err *e)
{
	const char *path = s->save_as;
	struct dump_file file;

	int rc = create(s, &file, path, e);
	bool again = rc < 0;
	if (rc == 0) {
		rc = save(s, &file, e);
		again = can_be_tried_again(rc);
	}
	if (again && path)
		return err_prefix(
			e, "the hooks are out; what the session recorded is still there, save it with another -o");
	if (again && !s->detaching)
		return err_prefix(e,
		                  "the hooks of the session before are out; what it recorded is still there, save it "
		                  "with memattach --detach -p %d "
		                  "-o FILE",
		                  s->target.pid);
	s->unsaved = rc < 0;
	if (rc < 0)
		session_say(s, "memattach: what its session recorded until now could not be saved: %s", e->text);
	return 0;
}
