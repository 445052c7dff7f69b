/* SPDX-License-Identifier: MIT */
/*
 * The root directory of the process that a dump is of, if that process is still there: a program in a container is
 * below it, and nowhere else on this machine. It is taken for the same process if the machine has the recorded name,
 * and the process with the recorded number began at the recorded time. A file below it is believed by its build-id, as
 * any other; so a process that ends just now costs names and no more.
 */
#pragma once

#include <stdbool.h>

#include "dump/dump_reader.h"
#include "input/images.h"

/* "/proc/PID/root"; false and "": there is no such process. */
bool target_root_find(const struct dump *dump, char root[IMAGE_ROOT_TEXT]);
