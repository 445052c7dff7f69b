/* SPDX-License-Identifier: MIT */
#include "base/group_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define UID_CHARACTERS 36u

static bool ends_with(const char *text, size_t length, const char *ending)
{
	size_t n = strlen(ending);

	return length > n && !strncmp(text + length - n, ending, n);
}

/* Slices come first; the folder after them is the unit, but for the units of a user's manager, which are below it. */
static void name_unit(const char *path, char unit[GROUP_NAME])
{
	static const char *const endings[] = { ".service", ".scope", ".socket", ".mount", ".swap" };

	unit[0] = '\0';
	for (const char *s = path + strspn(path, "/"); *s; s += strspn(s, "/")) {
		size_t n = strcspn(s, "/");
		bool is_unit = false;
		for (unsigned i = 0; i < sizeof endings / sizeof endings[0]; i++)
			is_unit |= ends_with(s, n, endings[i]);
		if (is_unit)
			snprintf(unit, GROUP_NAME, "%.*s", (int)n, s);
		if (!ends_with(s, n, ".slice") && strncmp(s, "user@", strlen("user@")) != 0)
			return;
		s += n;
	}
}

/* 64 digits that stand alone: docker-ID.scope, /docker/ID, cri-containerd-ID.scope, crio-ID, libpod-ID, /kubepods/…/ID;
 * of several the innermost. */
static void name_container(const char *path, char container[CONTAINER_DIGITS + 1])
{
	container[0] = '\0';
	for (const char *s = path; *s;) {
		size_t n = strspn(s, "0123456789abcdef");
		bool begins = s == path || !isalnum((unsigned char)s[-1]);
		if (n == CONTAINER_DIGITS && begins && !isalnum((unsigned char)s[n]))
			snprintf(container, CONTAINER_DIGITS + 1, "%s", s);
		s += n ? n : 1;
	}
}

/* podUID, with "_" for "-" where systemd has named the slice. */
static void name_pod(const char *path, char pod[UID_CHARACTERS + 1])
{
	pod[0] = '\0';
	if (!strstr(path, "kubepods"))
		return;
	for (const char *s = path; (s = strstr(s, "pod")); s += strlen("pod")) {
		const char *uid = s + strlen("pod");
		if (strspn(uid, "0123456789abcdef-_") != UID_CHARACTERS)
			continue;
		snprintf(pod, UID_CHARACTERS + 1, "%s", uid);
		for (char *c = pod; (c = strchr(c, '_'));)
			*c = '-';
		return;
	}
}

void group_names_of(const char *path, struct group_names *names)
{
	name_unit(path, names->unit);
	name_container(path, names->container);
	name_pod(path, names->pod);
}
