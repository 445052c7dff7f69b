/* SPDX-License-Identifier: MIT */
/*
 * Position-independent; struct stub_data follows the last byte, struct stub_frame is where that says. Registers: x19 =
 * data, x20 = area.
 *
 * From the first instruction to the last the stub finishes by itself if nobody traces it: at a checkpoint without a
 * tracer it sees no calls, cleans up, and goes back to the interrupted code by rt_sigreturn. Nothing is pushed on the
 * thread's own stack (alternate stacks, goroutines). A call that was interrupted is then made again from its start: the
 * frame cannot be written any more, so a signal that came meanwhile counts as one that came just before the call.
 */
#include "arch/aarch64/stub.h"

#define SYS_exit_group 94
#define SYS_nanosleep 101
#define SYS_rt_sigaction 134
#define SYS_rt_sigprocmask 135
#define SYS_rt_sigpending 136
#define SYS_rt_sigreturn 139
#define SYS_prctl 167
#define SYS_getpid 172
#define SYS_sendto 206
#define SYS_recvfrom 207
#define SYS_munmap 215
#define SYS_clone 220
#define SYS_mmap 222
#define SYS_close_range 436
#define SIG_SETMASK 2
#define SIGSET_BYTES 8
#define SIG_IGN 1
#define SIGACTION_RESTART_BIT 28 /* SA_RESTART of <signal.h> */
#define MSG_NOSIGNAL 0x4000 /* SIGPIPE would wait behind the mask and end the program */
#define PR_SET_NAME 15
#define CLOSE_RANGE_UNSHARE 2
#define PROT_READ_WRITE 3
#define MAP_PRIVATE_ANONYMOUS 0x22
#define MAP_FIXED_NOREPLACE_HIGH 0x10

	.macro	system_call number
	mov	x8, #\number
	svc	#0
	.endm

	.section .rodata
	.balign 16
	.globl stub_code, stub_code_end
	.hidden stub_code, stub_code_end
	.type stub_code, @object
stub_code:
	adr	x19, stub_code_end
	bl	.Lblock
	ldr	x0, [x19, #SD_AREA]
	ldr	x1, [x19, #SD_AREA_BYTES]
	mov	x2, #PROT_READ_WRITE
	mov	x3, #MAP_PRIVATE_ANONYMOUS
	movk	x3, #MAP_FIXED_NOREPLACE_HIGH, lsl #16
	mov	x4, #-1
	mov	x5, #0
	system_call SYS_mmap
	mov	x24, #0			/* x24: a signal handler is due that makes the call return EINTR */
	ldr	x9, [x19, #SD_AREA]
	cmp	x0, x9
	b.ne	.Lleave
	mov	x20, x0
	mov	x9, #(SA_STACK_END & 0xffff)
	movk	x9, #(SA_STACK_END >> 16), lsl #16
	add	x9, x20, x9
	mov	sp, x9
	msr	fpcr, xzr		/* what the ABI promises to a function */

.Lcheckpoint:
	ldr	x21, [x20, #SA_CHANNEL]
	cbz	x21, .Ltraced
	sub	x21, x21, #1
	mov	w9, #(STUB_CHECKPOINT_CALLS & 0xff)
	strb	w9, [x20, #SA_CHANNEL_BYTE]
	mov	x3, #MSG_NOSIGNAL
	mov	x8, #SYS_sendto
	bl	.Lchannel
	mov	x3, #0
	mov	x8, #SYS_recvfrom
	bl	.Lchannel
	b	.Ltaken
.Lchannel:				/* x8, x3: system call and its flags */
	mov	x0, x21
	add	x1, x20, #SA_CHANNEL_BYTE
	mov	x2, #1
	mov	x4, #0
	mov	x5, #0
	svc	#0
	ret
.Ltraced:
	mov	x0, #(STUB_CHECKPOINT_CALLS & 0xffff)
	movk	x0, #(STUB_CHECKPOINT_CALLS >> 16), lsl #16
	system_call SYS_getpid
.Ltaken:
	ldr	x22, [x20, #SA_CALL_COUNT]
	add	x23, x20, #SA_CALLS
	cbnz	x22, .Lrun
	ldr	x22, [x20, #SA_CLEANUP_COUNT]
	add	x23, x20, #SA_CLEANUP
	cbz	x22, .Lend
	str	xzr, [x20, #SA_CLEANUP_COUNT]
	str	xzr, [x20, #SA_CHANNEL]	/* it is among what is closed: the number may be somebody else's then */
.Lrun:
	str	xzr, [x20, #SA_CALL_COUNT]
.Lcall:
	ldp	x0, x1, [x23, #SC_ARGUMENT]
	ldp	x2, x3, [x23, #SC_ARGUMENT + 16]
	ldp	x4, x5, [x23, #SC_ARGUMENT + 32]
	ldr	x8, [x23, #SC_TARGET]
	tbz	x8, #SC_INDIRECT_BIT, .Lword
	and	x8, x8, #~(1 << SC_INDIRECT_BIT)
	ldrsw	x0, [x0]
.Lword:
	tbz	x8, #SC_WORD_BIT, .Ldirect
	and	x8, x8, #~(1 << SC_WORD_BIT)
	ldr	x0, [x0]
.Ldirect:
	cmp	x8, #SC_SYSCALL_LIMIT
	b.hs	.Lfunction
	cmp	x8, #SYS_clone
	b.eq	.Lclone
	svc	#0
	b	.Lresult
.Lfunction:
	blr	x8
.Lresult:
	str	x0, [x23, #SC_RESULT]
	add	x23, x23, #SC_BYTES
	sub	x22, x22, #1
	cbnz	x22, .Lcall
	b	.Lcheckpoint

.Lclone:
	svc	#0
	cbnz	x0, .Lresult
	/* The clone, in memory of its own (memory_clone.h): it knows no other way than to its end. */
	mov	x0, #PR_SET_NAME
	add	x1, x20, #SA_CLONE_NAME
	system_call SYS_prctl
	mov	x0, #0			/* it has no descriptors then, and the program's are its own again */
	mov	w1, #-1
	mov	x2, #CLOSE_RANGE_UNSHARE
	system_call SYS_close_range
	add	x0, x20, #SA_CLONE_SLEEP	/* meanwhile it is seized */
	mov	x1, #0
	system_call SYS_nanosleep
.Lclone_ends:
	mov	x0, #0
	system_call SYS_exit_group
	b	.Lclone_ends

.Lend:
	ldr	x9, [x20, #SA_ERRNO_ADDRESS]
	cbz	x9, .Lerrno_done
	ldr	w10, [x20, #SA_ERRNO_VALUE]
	str	w10, [x9]
.Lerrno_done:
	/*
	 * Is a signal waiting that will run a handler as soon as it is unblocked, so that the interrupted call returns
	 * EINTR? One that is ignored, by default or by the program, stays pending while it is blocked, and interrupts
	 * nothing when it is unblocked.
	 */
	add	x0, x20, #SA_PENDING
	mov	x1, #SIGSET_BYTES
	system_call SYS_rt_sigpending
	ldr	x22, [x20, #SA_PENDING]
	ldr	x9, [x19, #SD_OLD_SIGNALS]
	bic	x22, x22, x9
.Lsignal:
	cbz	x22, .Lsignals_done
	rbit	x9, x22
	clz	x23, x9
	add	x0, x23, #1
	mov	x1, #0
	mov	x2, #SA_ACTION
	add	x2, x20, x2
	mov	x3, #SIGSET_BYTES
	system_call SYS_rt_sigaction
	ldr	x9, [x20, #SA_ACTION]
	cmp	x9, #SIG_IGN		/* or SIG_DFL, which is 0 */
	b.hi	.Lhandler
	mov	x9, #1
	lsl	x9, x9, x23
	bic	x22, x22, x9
	b	.Lsignal
.Lhandler:
	mov	x24, #1
	ldr	x9, [x20, #SA_ACTION + 8]
	tbz	x9, #SIGACTION_RESTART_BIT, .Lsignals_done
	ldr	w9, [x19, #SD_RESTARTS]
	cbz	w9, .Lsignals_done
	mov	x24, #0
.Lsignals_done:
	ldr	x9, [x19, #SD_FRAME]
	ldr	x9, [x9, #SF_SP]
	mov	sp, x9
	mov	x0, x20
	ldr	x1, [x19, #SD_AREA_BYTES]
	system_call SYS_munmap
.Lleave:
	mov	x0, #(STUB_CHECKPOINT_END & 0xffff)
	movk	x0, #(STUB_CHECKPOINT_END >> 16), lsl #16
	mov	x1, x24
	system_call SYS_getpid
	/* From here on only without a tracer. One that has died may have given the mask back already: on the frame no
	   handler can run. */
	bl	.Lblock
	ldr	x9, [x19, #SD_FRAME]
	sub	sp, x9, #SF_BEFORE
	system_call SYS_rt_sigreturn
.Lblock:
	mov	x0, #SIG_SETMASK
	add	x1, x19, #SD_ALL_SIGNALS
	mov	x2, #0
	mov	x3, #SIGSET_BYTES
	system_call SYS_rt_sigprocmask
	ret
	.balign 8
stub_code_end:
	.size	stub_code, . - stub_code
	.section .note.GNU-stack, "", @progbits
