/* SPDX-License-Identifier: MIT */
#include "touch/start/entry_hold.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "arch/hold_stub.h"
#include "arch/registers.h"
#include "arch/start_code.h"
#include "host/clocks.h"
#include "touch/start/own_child.h"
#include "files/whole_io.h"
#include "touch/remote/target_write.h"

#define PAUSE_NS 500000u
#define RELEASE_NS 2000000000ull

static uint64_t code_bytes(void)
{
	return (uint64_t)(hold_code_end - hold_code);
}

static uint64_t all_bytes(void)
{
	return code_bytes() + sizeof(struct hold_data);
}

/* What it is written by; good for one call. */
static struct target_writer writer(struct entry_hold *h)
{
	return (struct target_writer){ .fd = h->image.mem, .changes = &h->changes };
}

static int write_code(struct entry_hold *h, pid_t parent, struct err *e)
{
	const struct hold_data data = { .entry = h->entry, .pause_ns = PAUSE_NS, .parent = (uint32_t)parent };
	const struct target_writer w = writer(h);

	changes_made(&h->changes, CHANGE_HOLD_CODE);
	int rc = target_write(&w, CHANGE_HOLD_CODE, h->code, hold_code, code_bytes(), e);
	return rc < 0 ? rc : target_write(&w, CHANGE_HOLD_CODE, h->code + code_bytes(), &data, sizeof data, e);
}

static void clear_code(struct entry_hold *h)
{
	const struct target_writer w = writer(h);
	uint8_t zeros[256] = { 0 };

	if (all_bytes() <= sizeof zeros &&
	    target_write(&w, CHANGE_HOLD_CODE, h->code, zeros, all_bytes(), ERR_IGNORED) == 0)
		changes_end(&h->changes, CHANGE_HOLD_CODE, CHANGE_UNDONE);
}

/* The one change that leads it to the copy: a single write, in one page. */
static int lead(struct entry_hold *h, uint64_t at, const void *before, const void *now, unsigned bytes, struct err *e)
{
	const struct target_writer w = writer(h);

	h->lead = target_writer_add_change(&w, CHANGE_HOLD_LEAD, at, before, now, bytes, e);
	return h->lead < 0 ? h->lead : 0;
}

static int lead_static(struct entry_hold *h, pid_t parent, uint64_t pc, uint64_t sp, struct err *e)
{
	const struct start_arguments arguments = { pc, sp, h->image.argc, h->image.argv };
	struct start_code code;
	uint8_t bytes[START_CODE_BYTES];

	if (!start_code_read(&code, h->image.mem, &arguments) || !start_image_is_code(&h->image, code.main_address) ||
	    !start_code_for(&code, h->code, bytes))
		return err_set(e, ENOEXEC, "its start code hands main to a C library in no way that is known");
	h->entry = code.main_address;
	int rc = write_code(h, parent, e);
	return rc < 0 ? rc : lead(h, code.place, code.bytes, bytes, code.length, e);
}

static int lead_dynamic(struct entry_hold *h, pid_t parent, struct err *e)
{
	h->entry = h->image.entry;
	int rc = write_code(h, parent, e);
	return rc < 0 ? rc : lead(h, h->image.entry_at, &h->image.entry, &h->code, sizeof h->code, e);
}

int entry_hold_set(struct entry_hold *h, pid_t pid, pid_t parent, struct err *e)
{
	struct registers regs;
	char path[40];

	*h = (struct entry_hold){ .pid = pid };
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	int mem = open(path, O_RDWR | O_CLOEXEC);
	int rc = mem < 0 || !registers_read(pid, NULL, &regs) ? err_sys(e, "cannot look at it") : 0;
	rc = rc ?: start_image_read(&h->image, mem, registers_sp(&regs), e);
	h->image.mem = mem;
	rc = rc ?: start_image_padding(&h->image, all_bytes(), &h->code, e);
	if (rc == 0)
		rc = h->image.dynamic ? lead_dynamic(h, parent, e)
		                      : lead_static(h, parent, registers_pc(&regs), registers_sp(&regs), e);
	if (rc < 0) {
		if (h->code)
			clear_code(h);
		entry_hold_close(h);
	}
	return rc;
}

/* The program counter of its main thread, which is asleep in a system call; 0: it is not. */
static uint64_t sleeping_at(pid_t pid)
{
	unsigned long long sp, pc;
	char path[40], text[200];

	snprintf(path, sizeof path, "/proc/%d/syscall", pid);
	if (whole_io_text(path, text, sizeof text) < 0 || text[0] < '0' || text[0] > '9' ||
	    sscanf(text, "%*d %*x %*x %*x %*x %*x %*x %llx %llx", &sp, &pc) != 2)
		return 0;
	return pc;
}

enum hold_state entry_hold_look(const struct entry_hold *h)
{
	uint64_t pc = sleeping_at(h->pid);
	uint8_t byte;

	if (pc - h->code < code_bytes())
		return HOLD_WAITING;
	/* It stands for the memory that was there at execve. */
	return whole_io_pread(h->image.mem, &byte, 1, h->code) ? HOLD_COMING : HOLD_MISSED;
}

/* Has the thread, which is stopped, go on at its entry. False: it is not where it waits. */
static bool leave(struct entry_hold *h)
{
	struct registers regs;
	uint64_t pushed[HOLD_PUSHED];

	if (!registers_read(h->pid, NULL, &regs) || registers_pc(&regs) - h->code >= code_bytes() ||
	    !whole_io_pread(h->image.mem, pushed, sizeof pushed, registers_sp(&regs)))
		return false;
	hold_stub_leave(&regs, h->entry, pushed);
	if (!registers_write(h->pid, &regs))
		return false;
	clear_code(h);
	return true;
}

static bool leave_traced(struct entry_hold *h)
{
	if (ptrace(PTRACE_SEIZE, h->pid, NULL, NULL) < 0)
		return false;
	enum child_event event = own_child_stop(h->pid, clock_monotonic_ns() + RELEASE_NS);
	bool left = event == CHILD_STOP && leave(h);
	h->seized = event == CHILD_RUNS;
	if (event == CHILD_STOP)
		(void)own_child_let_go(h->pid, 0);
	return left;
}

void entry_hold_release(struct entry_hold *h)
{
	const struct target_writer w = writer(h);
	const uint32_t go = 1;

	if (!h->code)
		return;
	if (target_writer_undo(&w, h->lead, NULL, ERR_IGNORED) < 0)
		return; /* its memory is gone */
	/* A handler of a signal may be running, or somebody else may trace it: then it goes on by itself. */
	if (!leave_traced(h) &&
	    target_write(&w, CHANGE_HOLD_CODE, h->code + code_bytes() + offsetof(struct hold_data, go), &go, sizeof go,
	                 ERR_IGNORED) < 0)
		return;
	h->code = 0;
}

void entry_hold_let_go(struct entry_hold *h)
{
	int number = 0;

	if (!h->seized)
		return;
	enum child_event event = own_child_wait(h->pid, 0, &number);
	if (event == CHILD_STOP || event == CHILD_SIGNAL)
		h->seized = !own_child_let_go(h->pid, event == CHILD_SIGNAL ? number : 0);
}

void entry_hold_close(struct entry_hold *h)
{
	if (h->image.mem >= 0)
		close(h->image.mem);
	h->image.mem = -1;
	h->code = 0;
	changes_free(&h->changes);
}
