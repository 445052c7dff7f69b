/* SPDX-License-Identifier: MIT */
#include "launch/group_witness.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>

#include "process/proc_status.h"
#include "sandbox/child.h"
#include "sandbox/close_all_but.h"

/* Who sends a signal to all that are called memattach, as pkill(1), does not mean the group. */
static _Noreturn void be_witness(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "group-witness");
	memset(program_invocation_name, 0, strlen(program_invocation_name));
	close_all_but(NULL, 0);
	for (;;)
		sigsuspend(&all);
}

void group_witness_start(struct group_witness *w)
{
	pid_t child = child_start(SIGKILL);

	if (child == 0)
		be_witness();
	w->pid = child > 0 ? child : 0;
}

void group_witness_end(struct group_witness *w)
{
	if (!w->pid)
		return;
	child_end(w->pid);
	w->pid = 0;
}

static uint64_t pending(const struct group_witness *w)
{
	char status[STATUS_BYTES];

	return w->pid && proc_status_read(status, w->pid, 0) == 0
	               ? (uint64_t)proc_status_number(status, "ShdPnd", 16, 0)
	               : 0;
}

/* Another one knows of nothing: what the old one has beside this signal, and is still to be asked for, is kept. It is
 * read before what the new one has: what came to both is then seen in the new one, too, and counts once. */
static void replace(struct group_witness *w, uint64_t bit)
{
	struct group_witness old = *w;

	group_witness_start(w); /* first: there is always one */
	uint64_t had = pending(&old) & ~bit;
	w->others |= had & ~pending(w);
	group_witness_end(&old);
}

bool group_witness_has(struct group_witness *w, int number)
{
	uint64_t bit = (uint64_t)1 << (number - 1);
	bool has = w->others & bit;

	w->others &= ~bit; /* memattach hears once of what waits twice */
	if (!(pending(w) & bit))
		return has;
	replace(w, bit);
	return true;
}
