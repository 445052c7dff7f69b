/* SPDX-License-Identifier: MIT */
/* Newer than most calls: only the general one of several of like meaning is there (asm-generic/unistd.h). */
#pragma once

#define CALLS_ARCH AUDIT_ARCH_AARCH64
#define CALLS_END 0x40000000u

#define SYS_access CALL_NONE
#define SYS_dup2 CALL_NONE
#define SYS_epoll_wait CALL_NONE
#define SYS_getpgrp CALL_NONE
#define SYS_lstat CALL_NONE
#define SYS_open CALL_NONE
#define SYS_pause CALL_NONE
#define SYS_poll CALL_NONE
#define SYS_readlink CALL_NONE
#define SYS_select CALL_NONE
#define SYS_stat CALL_NONE
#define SYS_vfork CALL_NONE
