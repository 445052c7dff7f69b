/* SPDX-License-Identifier: MIT */
#include "recording/kept_dumps.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"

struct kept_dump {
	char *path;
	struct file_identity identity;
};

/* In the directory as it is now: another one that takes its name meanwhile is left alone. */
static int remove_ours(const struct kept_dump *d, struct err *e)
{
	AUTO_FREE char *directory = strdup(d->path);
	const char *slash = strrchr(d->path, '/'), *name = slash ? slash + 1 : d->path;
	struct file_identity there;

	if (!directory)
		return err_set(e, ENOMEM, "out of memory");
	AUTO_CLOSE int fd = open(slash ? dirname(directory) : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : file_identity_read(fd, name, &there);
	if (rc == -ENOENT || (rc == 0 && !file_identity_same(&there, &d->identity)))
		return 0;
	if (rc < 0)
		return err_set(e, -rc, "cannot look at %s, which is to be removed: %s", d->path, strerror(-rc));
	return unlinkat(fd, name, 0) < 0 ? err_sys(e, "cannot remove %s", d->path) : 0;
}

int kept_dumps_remove_oldest(struct kept_dumps *k, struct err *e)
{
	int rc = remove_ours(&k->list[0], e);

	free(k->list[0].path);
	memmove(k->list, k->list + 1, --k->count * sizeof *k->list);
	return rc;
}

int kept_dumps_add(struct kept_dumps *k, const char *path, const struct file_identity *identity, struct err *e)
{
	AUTO_FREE char *copy = strdup(path);
	int rc = 0;

	if (!copy || !grow_list(k->list, k->count))
		return err_set(e, ENOMEM, "out of memory");
	if (k->count >= k->limit)
		rc = kept_dumps_remove_oldest(k, e);
	k->list[k->count++] = (struct kept_dump){ .path = cleanup_steal_pointer(&copy), .identity = *identity };
	return rc;
}

void kept_dumps_free(struct kept_dumps *k)
{
	for (size_t i = 0; i < k->count; i++)
		free(k->list[i].path);
	free(k->list);
	*k = (struct kept_dumps){ .limit = k->limit };
}
