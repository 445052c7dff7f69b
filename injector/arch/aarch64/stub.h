/* SPDX-License-Identifier: MIT */
/*
 * The assembler reads this file too: offsets are written once, here, and the compiler checks each against the structs.
 *
 * There is no jump that leaves all registers as they are, so the stub alone brings a thread back by rt_sigreturn:
 * struct stub_frame is the part of a signal frame that the kernel reads then (struct ucontext of struct rt_sigframe,
 * from the alternate stack on, and at its end the records of stub_frame.h). It is read only, by its address, so it may
 * be in padding that is no code. Vectors are in it, and the stub itself saves none: its first system call takes those
 * of SVE.
 */
#pragma once

/* struct stub_data */
#define SD_ALL_SIGNALS 0
#define SD_OLD_SIGNALS 8
#define SD_AREA 16
#define SD_AREA_BYTES 24
#define SD_MAGIC 32 /* tells a later memattach whose stub this is */
#define SD_TID 40
#define SD_FRAME 48       /* address of struct stub_frame */
#define SD_FRAME_BYTES 56 /* that it may have there */
#define SD_RESTARTS 60    /* the interrupted call is one that SA_RESTART starts again */
#define SD_BYTES 64

/* struct stub_frame */
#define SF_BEFORE 144 /* bytes in front of it, which the kernel does not read: siginfo, flags, link */
#define SF_REGISTERS 168
#define SF_SP 416
#define SF_VECTORS 448
#define SF_REST 976
#define SF_BYTES 1008     /* with a record of 16 bytes and the end of the list; with more of them in front of these */
#define SF_BYTES_MAX 4080 /* in a page; the kernel looks at 4096 from SF_VECTORS on */

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
#define SA_EXTENDED_MAX 0
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
 * what is said through a channel instead. The second argument of the last one: a signal handler is due that makes the
 * interrupted call return EINTR.
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
	uint64_t magic;
	uint64_t tid;
	uint64_t frame;
	uint32_t frame_bytes;
	uint32_t restarts;
};

struct stub_frame {
	/* struct ucontext of the kernel, without its flags and link */
	uint64_t stack_address, stack_flags, stack_bytes;
	uint64_t mask, more_mask[16];
	/* struct sigcontext */
	uint64_t fault;
	uint64_t registers[31], sp, pc, pstate;
	uint64_t padding;
	/* struct fpsimd_context, further records, and the end of the list */
	uint32_t vectors_magic, vectors_bytes;
	uint32_t status, control;
	uint64_t vectors[64];
	uint8_t rest[SF_BYTES_MAX - SF_REST];
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
AT(stub_data, magic, SD_MAGIC);
AT(stub_data, tid, SD_TID);
AT(stub_data, frame, SD_FRAME);
AT(stub_data, frame_bytes, SD_FRAME_BYTES);
AT(stub_data, restarts, SD_RESTARTS);
_Static_assert(sizeof(struct stub_data) == SD_BYTES, "SD_BYTES");
AT(stub_frame, registers, SF_REGISTERS);
AT(stub_frame, sp, SF_SP);
AT(stub_frame, vectors_magic, SF_VECTORS);
AT(stub_frame, rest, SF_REST);
_Static_assert(sizeof(struct stub_frame) == SF_BYTES_MAX, "SF_BYTES_MAX");
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
	data->frame = frame;
	data->frame_bytes = (uint32_t)bytes;
}

static inline uint64_t stub_data_frame(const struct stub_data *data, uint64_t *bytes)
{
	*bytes = data->frame_bytes;
	return data->frame;
}

extern const unsigned char stub_code[], stub_code_end[];
#endif
