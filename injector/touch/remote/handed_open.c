/* SPDX-License-Identifier: MIT */
#include "touch/remote/handed_open.h"

#include <stdio.h>
#include <string.h>

#include "arch/registers.h"

struct opening {
	const char *name;
	int fd;
	bool entered; /* at the entry of the call that was changed, until its exit */
	bool handed;
	struct registers before;
};

void handed_open_name(char name[HANDED_NAME_BYTES], uint64_t unique)
{
	snprintf(name, HANDED_NAME_BYTES, "/memattach-payload/of-no-file-system/%016llx", (unsigned long long)unique);
}

static bool is_wanted(const struct opening *o, const struct remote *r, const struct registers *regs)
{
	char name[HANDED_NAME_BYTES];
	uint64_t at;

	return !o->handed && registers_opens(regs, &at) &&
	       target_read_string(r->memory, at, name, sizeof name, ERR_IGNORED) == 0 && !strcmp(name, o->name);
}

static int at_syscall(void *context, struct remote *r, const struct registers *regs, struct err *e)
{
	struct opening *o = context;
	struct registers changed = *regs;

	if (o->entered) {
		o->entered = false;
		registers_give_back_arguments(&changed, &o->before);
		return tracee_set_registers(r->tracee, &changed, e);
	}
	if (!is_wanted(o, r, regs))
		return 0;
	o->before = *regs;
	changes_made(r->writer->changes, CHANGE_SYSTEM_CALL);
	registers_duplicate_instead(&changed, o->fd);
	int rc = tracee_set_registers(r->tracee, &changed, e);
	o->entered = o->handed = rc == 0;
	return rc;
}

int handed_open_call(struct remote *r, struct stub_call *call, const char *name, int remote_fd, bool *handed,
                     uint64_t deadline_ns, struct err *e)
{
	struct opening o = { .name = name, .fd = remote_fd };

	r->at_syscall = at_syscall;
	r->at_syscall_context = &o;
	int rc = remote_call_traced(r, call, deadline_ns, e);
	r->at_syscall = NULL;
	*handed = o.handed;
	return rc;
}
