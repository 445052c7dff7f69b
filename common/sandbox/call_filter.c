/* SPDX-License-Identifier: MIT */
#include "sandbox/call_filter.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "arch/system_calls.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define IF(value, yes, no)                                                                                             \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no)) /* how many instructions are left out */

static void add(struct call_filter *f, const struct sock_filter *code, size_t count)
{
	assert(count <= COUNT(f->code) - f->count);
	for (size_t i = 0; i < count; i++)
		f->code[f->count++] = code[i];
}

/* The number of the call is loaded from here on, between all rules. */
void call_filter_begin(struct call_filter *f)
{
	const struct sock_filter code[] = { LOAD(arch),
		                            IF(CALLS_ARCH, 1, 0),
		                            ANSWER(SECCOMP_RET_KILL_PROCESS),
		                            LOAD(nr),
		                            BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, CALLS_END, 0, 1),
		                            ANSWER(SECCOMP_RET_KILL_PROCESS) };

	f->count = 0;
	add(f, code, COUNT(code));
}

void call_filter_answer(struct call_filter *f, uint32_t call, uint32_t answer)
{
	const struct sock_filter code[] = { IF(call, 0, 1), ANSWER(answer) };

	add(f, code, COUNT(code));
}

void call_filter_when(struct call_filter *f, uint32_t call, unsigned argument, uint32_t mask, uint32_t value,
                      uint32_t answer)
{
	const struct sock_filter code[] = {
		IF(call, 0, 5),  LOAD(args[argument]), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
		IF(value, 0, 1), ANSWER(answer),       LOAD(nr)
	};

	add(f, code, COUNT(code));
}

void call_filter_without(struct call_filter *f, uint32_t call, unsigned argument, uint32_t bits)
{
	call_filter_when(f, call, argument, bits, 0, SECCOMP_RET_ALLOW);
	call_filter_answer(f, call, CALL_FILTER_REFUSE(EPERM));
}

int call_filter_end(struct call_filter *f, const uint32_t *list, uint8_t count, uint32_t listed, uint32_t others)
{
	const struct sock_filter ends[] = { ANSWER(others), ANSWER(listed) };

	for (unsigned i = 0; i < count; i++)
		add(f, &(struct sock_filter)IF(list[i], (uint8_t)(count - i), 0), 1);
	add(f, ends, COUNT(ends));
	const struct sock_fprog program = { (unsigned short)f->count, f->code };
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno
	                                                                                                      : 0;
}
