/* SPDX-License-Identifier: MIT */
/*
 * What the path of a cgroup says of a process: its unit of systemd, its container, its pod. Paths are made by systemd,
 * container engines and kubelets, each in its own form; what none of these forms fits is not named.
 */
#pragma once

#define GROUP_NAME 256u
#define CONTAINER_DIGITS 64u
#define CONTAINER_SHOWN 12u /* digits of the id of a container, as its tools show them */

struct group_names {
	char unit[GROUP_NAME]; /* "" each: there is none */
	char container[65];    /* 64 hexadecimal digits */
	char pod[37];          /* UID */
};

void group_names_of(const char *path, struct group_names *names);
