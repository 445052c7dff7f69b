/* SPDX-License-Identifier: MIT */
/*
 * The name of the image that a container was made of, as its engine has written it down; no daemon is asked:
 *
 *   docker           var/lib/docker/containers/ID/config.v2.json: Config.Image
 *   containerd, CRI  run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json, the annotation
 *                    io.kubernetes.cri.image-name
 *   podman, CRI-O    var/lib/containers/storage/overlay-containers/containers.json: image-name in the metadata of ID
 *
 * They are looked for below / and, for a memattach that is in a container itself, below the root of process 1. Only
 * files that nobody but root, or who runs memattach, can write are believed, and only names of letters, digits and
 * ./:@_-. Not found are images of rootless containers, of an engine whose folder is elsewhere, and where only
 * containerd's data base has the name (nerdctl).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* cgroup: the path of a process's. False, and name is "": it is in no container, or the name is not found. */
bool container_image_find(const char *cgroup, char *name, size_t size);
/* The same below a directory, by the container's id. */
bool container_image_below(const char *root, const char *id, char *name, size_t size);
