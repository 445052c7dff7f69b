/* SPDX-License-Identifier: MIT */
#include "files/owner.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* The last number means "leave it as it is". */
static bool parse(const char *text, unsigned *id)
{
	char *end;

	if (!text || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	unsigned long value = strtoul(text, &end, 10);
	if (errno || *end || value >= 0xffffffffu)
		return false;
	*id = (unsigned)value;
	return true;
}

bool owner_parse(const char *uid_text, const char *gid_text, uid_t *uid, gid_t *gid)
{
	unsigned user, group;

	if (!parse(uid_text, &user) || !parse(gid_text, &group) || user == 0)
		return false;
	*uid = user;
	*gid = group;
	return true;
}

bool owner_is_other(uid_t *uid, gid_t *gid)
{
	return getuid() == 0 && geteuid() == 0 &&
	       owner_parse(secure_getenv("SUDO_UID"), secure_getenv("SUDO_GID"), uid, gid);
}

void owner_give(int fd)
{
	uid_t uid;
	gid_t gid;

	if (owner_is_other(&uid, &gid) && fchown(fd, uid, gid) < 0)
		return;
}
