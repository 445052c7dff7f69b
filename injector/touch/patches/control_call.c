/* SPDX-License-Identifier: MIT */
#include "touch/patches/control_call.h"

static int check(int64_t result, const char *what, struct err *e)
{
	return remote_result((uint64_t)result, e) < 0 ? err_prefix(e, "the payload could not %s", what) : 0;
}

int control_call(struct session *s, struct remote *r, enum control_op op, uint64_t argument, const char *what,
                 uint64_t deadline_ns, struct err *e)
{
	const uint64_t arguments[6] = { op, argument };
	uint64_t result = 0;

	int rc = remote_call1(r, s->payload.control, arguments, &result, deadline_ns, e);
	return rc < 0 ? rc : check((int64_t)result, what, e);
}
