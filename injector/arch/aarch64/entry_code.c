/* SPDX-License-Identifier: MIT */
/* No entry is hooked: all plans are refused, so the rest is never reached. */
#include "arch/entry_code.h"

#include <string.h>

static int refuse(struct err *e)
{
	return err_set(e, ENOTSUP, "entry hooks are not there on aarch64");
}

int entry_code_plan_make(struct entry_code_plan *plan, const struct entry_code_function *f, struct err *e)
{
	(void)plan, (void)f;
	return refuse(e);
}

int entry_code_patch_make(struct entry_code_patch *patch, const struct entry_code_plan *plan, uint64_t hook,
                          struct err *e)
{
	(void)patch, (void)plan, (void)hook;
	return refuse(e);
}

void entry_code_undo(uint8_t code[ENTRY_UNDO_BYTES], const struct instruction_undo *undo)
{
	(void)undo;
	memset(code, 0, ENTRY_UNDO_BYTES);
}

void entry_code_far_jump(uint8_t code[ENTRY_FAR_JUMP_BYTES], uint64_t target)
{
	(void)target;
	memset(code, 0, ENTRY_FAR_JUMP_BYTES);
}

int entry_code_copy_make(struct entry_code_copy *copy, const struct entry_code_plan *plan, uint64_t at, struct err *e)
{
	(void)copy, (void)plan, (void)at;
	return refuse(e);
}
