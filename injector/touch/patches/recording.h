/* SPDX-License-Identifier: MIT */
/* What a borrowed thread does at an attach: takes the payload in, and has it begin to record. */
#pragma once

#include "touch/patches/loan.h"

/* Descriptors, load, CONTROL_START, detours, CONTROL_PATCH: see attach.c. If it fails before the recording has begun
 * the payload is unloaded again, if that can be. */
int recording_load(struct loan *l, int payload_fd, struct err *e) WARN_UNUSED;
/* The trampolines of the plan, in the extra data of the work area. */
int recording_set_trampolines(struct loan *l, struct err *e) WARN_UNUSED;
/*
 * The allocator's malloc_usable_size. It may be asked only for blocks of the allocator that it belongs to: where
 * modules are bound to different ones, it is not asked at all (0).
 */
uint64_t recording_usable_size(const struct session *s);
