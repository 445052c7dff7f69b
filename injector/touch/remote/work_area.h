/* SPDX-License-Identifier: MIT */
/*
 * The mapping in which a borrowed thread works: all that its calls read and write there has a member of its own, and
 * nobody counts bytes. What the stub reads by numbers of its own (SA_*, arch/stub.h) is compared with them.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "arch/stub.h"
#include "control.h"

#define WORK_PATH_BYTES 1024u
#define WORK_DESCRIPTORS 4u /* that are received at once */

/* A message with descriptors, as the thread receives it. */
struct work_message {
	int32_t pair[2]; /* of sockets */
	struct msghdr header;
	struct iovec vector;
	char byte[8];
	union {
		char bytes[CMSG_SPACE(WORK_DESCRIPTORS * sizeof(int))];
		struct cmsghdr align;
	} control;
};

/* Of one call at a time, but for the message: the clean-up calls read its numbers when the thread leaves. */
struct work_data {
	int32_t tsc_mode;
	char path[WORK_PATH_BYTES];
	struct control_start start;
	struct control_patch patch;
	struct work_message message;
};

struct work_area {
	union {
		struct stub_area stub;
		uint8_t before_extended[SA_EXTENDED];
	};
	uint8_t extended[SA_EXTENDED_MAX]; /* registers */
	union {
		struct work_data data;
		uint8_t before_stack[SA_DATA_BYTES];
	};
	uint8_t stack[SA_STACK_END - SA_DATA - SA_DATA_BYTES];
	uint8_t extra[]; /* as much as was asked for */
};

#define WORK_AT(member) offsetof(struct work_area, member)
_Static_assert(WORK_AT(extended) == SA_EXTENDED, "SA_EXTENDED");
_Static_assert(WORK_AT(data) == SA_DATA, "SA_DATA");
_Static_assert(WORK_AT(extra) == SA_STACK_END, "SA_STACK_END");
