/* SPDX-License-Identifier: MIT */
/*
 * The stub: the only code of ours that runs on a borrowed thread outside the payload. It is copied into the
 * cave (unused padding of an executable page) and must be able to bring the thread back to exactly where it
 * was without a tracer, whenever memattach dies. See remote.h for the order of operations.
 *
 * Image in the cave: code (STUB_CODE_BYTES at most), then struct stub_data, which the stub only reads.
 * The work area, mapped by the stub itself: struct stub_area, then the xsave image, data, and the stack.
 *
 * This file is read by the assembler too: offsets are written once, here, and checked against the structs.
 */
#ifndef MEMATTACH_STUB_H
#define MEMATTACH_STUB_H

/* struct stub_data */
#define SD_ALL_SIGNALS 0
#define SD_OLD_SIGNALS 8
#define SD_AREA 16
#define SD_AREA_BYTES 24
#define SD_MXCSR 32
#define SD_FLAGS 40
#define SD_RAX_RESTART 48 /* what the thread goes on with if no signal handler is due */
#define SD_RIP_RESTART 56
#define SD_RAX_HANDLER 64 /* … and if one is: an interrupted call returns EINTR then */
#define SD_RIP_HANDLER 72
#define SD_RBX 80
#define SD_RCX 88
#define SD_RDX 96
#define SD_RSI 104
#define SD_RDI 112
#define SD_RBP 120
#define SD_RSP 128
#define SD_R8 136
#define SD_R9 144
#define SD_R10 152
#define SD_R11 160
#define SD_R12 168
#define SD_R13 176
#define SD_R14 184
#define SD_R15 192
#define SD_MAGIC 200 /* tells a later memattach whose stub this is */
#define SD_TID 208
#define SD_RESTARTS 216 /* the interrupted call is one that SA_RESTART starts again */
#define SD_BYTES 224

/* struct stub_area */
#define SA_CALL_COUNT 0
#define SA_CLEANUP_COUNT 8
#define SA_ERRNO_ADDRESS 16
#define SA_ERRNO_VALUE 24
#define SA_PENDING 32
#define SA_CHANNEL 40      /* descriptor + 1 of the channel (channel.h), 0: none */
#define SA_CHANNEL_BYTE 48 /* what is said through it */
#define SA_CALLS 64
#define SA_CALL_MAX 16
#define SA_CLEANUP (SA_CALLS + SA_CALL_MAX * SC_BYTES)
#define SA_ACTION (SA_CLEANUP + SA_CALL_MAX * SC_BYTES) /* what rt_sigaction tells: handler, flags, … */
#define SA_XSAVE 4096
#define SA_XSAVE_MAX 16384
#define SA_DATA (SA_XSAVE + SA_XSAVE_MAX)
#define SA_DATA_BYTES 16384
#define SA_STACK_END (SA_DATA + SA_DATA_BYTES + 262144)
#define SA_EXTRA SA_STACK_END /* after the stack: as much more data as was asked for */

/* struct stub_call */
#define SC_TARGET 0 /* below SC_SYSCALL_LIMIT: a system call number, else a function */
#define SC_ARGUMENT 8
#define SC_RESULT 56
#define SC_BYTES 64
#define SC_SYSCALL_LIMIT 4096
#define SC_INDIRECT_BIT 63 /* in SC_TARGET: argument 0 is the address of an int, and that int is meant */

/*
 * First argument of the getpid calls that serve as checkpoints: where a living tracer takes over. Their lowest byte is
 * what is said through a channel instead.
 */
#define STUB_CHECKPOINT_CALLS 0x4d415401
#define STUB_CHECKPOINT_END 0x4d415402
#define STUB_MAGIC 0x425554534d454d31

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct stub_data {
	uint64_t all_signals; /* but those of faults */
	uint64_t old_signals;
	uint64_t area;
	uint64_t area_bytes;
	uint64_t mxcsr;
	uint64_t flags;
	uint64_t rax_restart, rip_restart;
	uint64_t rax_handler, rip_handler;
	uint64_t rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t magic;
	uint64_t tid;
	uint64_t restarts;
};

struct stub_call {
	uint64_t target;
	uint64_t argument[6];
	uint64_t result;
};

struct stub_area {
	uint64_t call_count;
	uint64_t cleanup_count;
	uint64_t errno_address;
	uint64_t errno_value;
	uint64_t pending;
	uint64_t channel;
	uint64_t channel_byte;
	uint64_t reserved;
	struct stub_call calls[SA_CALL_MAX];
	struct stub_call cleanup[SA_CALL_MAX];
	uint64_t action[4];
};

_Static_assert(sizeof(struct stub_data) == SD_BYTES, "stub_data");
_Static_assert(offsetof(struct stub_data, rbx) == SD_RBX && offsetof(struct stub_data, r15) == SD_R15, "stub_data");
_Static_assert(offsetof(struct stub_data, restarts) == SD_RESTARTS, "stub_data");
_Static_assert(offsetof(struct stub_data, rip_handler) == SD_RIP_HANDLER, "stub_data");
_Static_assert(sizeof(struct stub_call) == SC_BYTES && offsetof(struct stub_call, result) == SC_RESULT, "stub_call");
_Static_assert(offsetof(struct stub_area, channel) == SA_CHANNEL &&
                       offsetof(struct stub_area, channel_byte) == SA_CHANNEL_BYTE,
               "stub_area");
_Static_assert(offsetof(struct stub_area, calls) == SA_CALLS, "stub_area");
_Static_assert(offsetof(struct stub_area, cleanup) == SA_CLEANUP, "stub_area");
_Static_assert(offsetof(struct stub_area, action) == SA_ACTION, "stub_area");
_Static_assert(sizeof(struct stub_area) <= SA_XSAVE, "stub_area");

extern const unsigned char stub_code[], stub_code_end[];
#endif
#endif
