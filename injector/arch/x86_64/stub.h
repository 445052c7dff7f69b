/* SPDX-License-Identifier: MIT */
/*
 * The assembler reads this file too: offsets are written once, here, and the compiler checks each against the structs.
 */
#pragma once

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
#define SA_CLONE_NAME (SA_ACTION + 32)                  /* of a clone, and how long it sleeps: struct timespec */
#define SA_CLONE_SLEEP (SA_CLONE_NAME + 16)
#define SA_EXTENDED 4096
#define SA_EXTENDED_MAX 16384
#define SA_DATA (SA_EXTENDED + SA_EXTENDED_MAX)
#define SA_DATA_BYTES 16384
#define SA_STACK_END (SA_DATA + SA_DATA_BYTES + 262144)

/* struct stub_call */
#define SC_TARGET 0 /* below SC_SYSCALL_LIMIT: a system call number, else a function */
#define SC_ARGUMENT 8
#define SC_RESULT 56
#define SC_BYTES 64
#define SC_SYSCALL_LIMIT 4096
#define SC_INDIRECT_BIT 63 /* in SC_TARGET: argument 0 is the address of an int, and that int is meant */
#define SC_WORD_BIT 62     /* the same with a word of 8 bytes: the result of a call before */

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

/* Moves bring a thread back: there is none. */
struct stub_frame {
	uint64_t none[0];
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
	char clone_name[16];
	uint64_t clone_sleep[2];
};

#define AT(structure, member, place) _Static_assert(offsetof(struct structure, member) == (place), #place)
AT(stub_data, all_signals, SD_ALL_SIGNALS);
AT(stub_data, old_signals, SD_OLD_SIGNALS);
AT(stub_data, area, SD_AREA);
AT(stub_data, area_bytes, SD_AREA_BYTES);
AT(stub_data, mxcsr, SD_MXCSR);
AT(stub_data, flags, SD_FLAGS);
AT(stub_data, rax_restart, SD_RAX_RESTART);
AT(stub_data, rip_restart, SD_RIP_RESTART);
AT(stub_data, rax_handler, SD_RAX_HANDLER);
AT(stub_data, rip_handler, SD_RIP_HANDLER);
AT(stub_data, rbx, SD_RBX);
AT(stub_data, rcx, SD_RCX);
AT(stub_data, rdx, SD_RDX);
AT(stub_data, rsi, SD_RSI);
AT(stub_data, rdi, SD_RDI);
AT(stub_data, rbp, SD_RBP);
AT(stub_data, rsp, SD_RSP);
AT(stub_data, r8, SD_R8);
AT(stub_data, r9, SD_R9);
AT(stub_data, r10, SD_R10);
AT(stub_data, r11, SD_R11);
AT(stub_data, r12, SD_R12);
AT(stub_data, r13, SD_R13);
AT(stub_data, r14, SD_R14);
AT(stub_data, r15, SD_R15);
AT(stub_data, magic, SD_MAGIC);
AT(stub_data, tid, SD_TID);
AT(stub_data, restarts, SD_RESTARTS);
_Static_assert(sizeof(struct stub_data) == SD_BYTES, "SD_BYTES");
AT(stub_call, target, SC_TARGET);
AT(stub_call, argument, SC_ARGUMENT);
AT(stub_call, result, SC_RESULT);
_Static_assert(sizeof(struct stub_call) == SC_BYTES, "SC_BYTES");
AT(stub_area, call_count, SA_CALL_COUNT);
AT(stub_area, cleanup_count, SA_CLEANUP_COUNT);
AT(stub_area, errno_address, SA_ERRNO_ADDRESS);
AT(stub_area, errno_value, SA_ERRNO_VALUE);
AT(stub_area, pending, SA_PENDING);
AT(stub_area, channel, SA_CHANNEL);
AT(stub_area, channel_byte, SA_CHANNEL_BYTE);
AT(stub_area, calls, SA_CALLS);
AT(stub_area, cleanup, SA_CLEANUP);
AT(stub_area, action, SA_ACTION);
AT(stub_area, clone_name, SA_CLONE_NAME);
AT(stub_area, clone_sleep, SA_CLONE_SLEEP);
_Static_assert(sizeof(struct stub_area) <= SA_EXTENDED, "SA_EXTENDED");
#undef AT

static inline void stub_data_set_frame(struct stub_data *data, uint64_t frame, uint64_t bytes)
{
	(void)data, (void)frame, (void)bytes;
}

static inline uint64_t stub_data_frame(const struct stub_data *data, uint64_t *bytes)
{
	(void)data;
	*bytes = 0;
	return 0;
}

extern const unsigned char stub_code[], stub_code_end[];
#endif
