/* SPDX-License-Identifier: MIT */
#include "choose/container_image.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/group_names.h"
#include "base/json_find.h"
#include "files/regular_file.h"
#include "files/whole_io.h"

#define FILE_MOST (8 << 20) /* podman's list has all containers, each with a few KiB */
#define METADATA_BYTES 16384u
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./:@_-"

/* To be freed; NULL: there is none, or it is not to be believed. */
static char *read_state(const char *root, const char *path, size_t *bytes)
{
	char whole[PATH_MAX];
	struct stat st;

	if ((size_t)snprintf(whole, sizeof whole, "%s/%s", root, path) >= sizeof whole)
		return NULL;
	AUTO_CLOSE int fd = regular_file_open_at(AT_FDCWD, whole, O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || (st.st_uid != 0 && st.st_uid != geteuid()) ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_size <= 0 || st.st_size > FILE_MOST)
		return NULL;
	AUTO_FREE char *text = malloc((size_t)st.st_size);
	if (!text || !whole_io_pread(fd, text, (size_t)st.st_size, 0))
		return NULL;
	*bytes = (size_t)st.st_size;
	return cleanup_steal_pointer(&text);
}

static bool has_member(struct json_value object, const char *outer, const char *inner, char *name, size_t size)
{
	return json_value_member(object, outer, &object) && json_value_member(object, inner, &object) &&
	       json_value_text(object, name, size);
}

/* A file of one container. */
static bool read_one(const char *root, const char *format, const char *id, const char *outer, const char *inner,
                     char *name, size_t size)
{
	char path[PATH_MAX];
	size_t bytes;

	snprintf(path, sizeof path, "%.*s%s%s", (int)(strchr(format, '*') - format), format, id,
	         strchr(format, '*') + 1);
	AUTO_FREE char *text = read_state(root, path, &bytes);
	return text && has_member(json_value_of(text, bytes), outer, inner, name, size);
}

/* The metadata are JSON in a string. */
static bool read_list(const char *root, const char *id, char *name, size_t size)
{
	char own[CONTAINER_DIGITS + 1], metadata[METADATA_BYTES];
	struct json_value one, value;
	size_t bytes;

	AUTO_FREE char *text =
		read_state(root, "var/lib/containers/storage/overlay-containers/containers.json", &bytes);
	if (!text)
		return false;
	for (struct json_value rest = json_value_of(text, bytes); json_value_next(&rest, &one);) {
		if (!json_value_member(one, "id", &value) || !json_value_text(value, own, sizeof own) ||
		    strcmp(own, id) != 0)
			continue;
		return json_value_member(one, "metadata", &value) &&
		       json_value_text(value, metadata, sizeof metadata) &&
		       json_value_member(json_value_of(metadata, strlen(metadata)), "image-name", &value) &&
		       json_value_text(value, name, size);
	}
	return false;
}

bool container_image_below(const char *root, const char *id, char *name, size_t size)
{
	bool found = read_one(root, "var/lib/docker/containers/*/config.v2.json", id, "Config", "Image", name, size) ||
	             read_one(root, "run/containerd/io.containerd.runtime.v2.task/k8s.io/*/config.json", id,
	                      "annotations", "io.kubernetes.cri.image-name", name, size) ||
	             read_list(root, id, name, size);

	found = found && name[0] && !name[strspn(name, NAME_CHARACTERS)];
	if (!found)
		name[0] = '\0';
	return found;
}

bool container_image_find(const char *cgroup, char *name, size_t size)
{
	struct group_names names;

	name[0] = '\0';
	group_names_of(cgroup, &names);
	return names.container[0] && (container_image_below("", names.container, name, size) ||
	                              container_image_below("/proc/1/root", names.container, name, size));
}
