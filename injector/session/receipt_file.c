/* SPDX-License-Identifier: MIT */
#include "session/receipt_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "files/file_place.h"
#include "base/json.h"
#include "files/owner.h"

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
