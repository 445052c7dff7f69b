/* SPDX-License-Identifier: MIT */
#include "touch/remote/pending_error.h"

#include "arch/registers.h"

void pending_error_hide(struct pending_error *p, const struct libc *libc, struct remote *r)
{
	const uint64_t none = 0;
	uint64_t address = registers_tp(&r->saved) + (uint64_t)libc->dlerror_result, value = 0;

	*p = (struct pending_error){ 0 };
	if (!libc->dlerror_result || target_read_u64(r->memory, address, &value, ERR_IGNORED) < 0 || !value)
		return;
	int row = target_writer_add_change(r->writer, CHANGE_ERROR_TEXT, address, &value, &none, sizeof none,
	                                   ERR_IGNORED);
	if (row >= 0)
		*p = (struct pending_error){ address, row };
}

void pending_error_show(const struct pending_error *p, const struct libc *libc, struct remote *r, uint64_t deadline_ns)
{
	const uint64_t none[6] = { 0 };
	uint64_t now = 0, text;

	if (!p->address)
		return;
	/* A call of ours has failed. What it left is freed by the second dlerror(). */
	for (int i = 0; i < 2 && libc->dlerror && target_read_u64(r->memory, p->address, &now, ERR_IGNORED) == 0 && now;
	     i++)
		if (remote_call1(r, libc->dlerror, none, &text, deadline_ns, ERR_IGNORED) < 0)
			break;
	if (target_writer_undo(r->writer, p->row, NULL, ERR_IGNORED) < 0)
		changes_set(r->writer->changes, p->row, CHANGE_GONE);
}
