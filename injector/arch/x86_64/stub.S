/* SPDX-License-Identifier: MIT */
/*
 * Position-independent; struct stub_data follows the last byte. Registers: rbx = data, rbp = area.
 *
 * From the first instruction to the last the stub finishes by itself if nobody traces it: at a checkpoint without a
 * tracer it sees no calls, cleans up, and goes back to the interrupted code. Nothing is pushed on the thread's own
 * stack (red zone, alternate stacks, goroutines); the flags are set before the last system calls, and only moves
 * follow.
 */
#include "arch/x86_64/stub.h"

#define SYS_mmap 9
#define SYS_munmap 11
#define SYS_rt_sigaction 13
#define SYS_rt_sigprocmask 14
#define SYS_nanosleep 35
#define SYS_getpid 39
#define SYS_sendto 44
#define SYS_recvfrom 45
#define SYS_clone 56
#define SYS_rt_sigpending 127
#define SYS_prctl 157
#define SYS_exit_group 231
#define SYS_close_range 436
#define SIG_SETMASK 2
#define SIGSET_BYTES 8
#define SIG_IGN 1
#define SIGACTION_RESTART 0x10000000 /* SA_RESTART of <signal.h> */
#define MSG_NOSIGNAL 0x4000 /* SIGPIPE would wait behind the mask and end the program */
#define PR_SET_NAME 15
#define CLOSE_RANGE_UNSHARE 2
#define PROT_READ_WRITE 3
#define MAP_PRIVATE_ANONYMOUS_NOREPLACE 0x100022

	.section .rodata
	.balign 16
	.globl stub_code, stub_code_end
	.hidden stub_code, stub_code_end
	.type stub_code, @object
stub_code:
	lea	stub_code_end(%rip), %rbx
	mov	$SYS_rt_sigprocmask, %eax
	mov	$SIG_SETMASK, %edi
	lea	SD_ALL_SIGNALS(%rbx), %rsi
	xor	%edx, %edx
	mov	$SIGSET_BYTES, %r10d
	syscall

	mov	$SYS_mmap, %eax
	mov	SD_AREA(%rbx), %rdi
	mov	SD_AREA_BYTES(%rbx), %rsi
	mov	$PROT_READ_WRITE, %edx
	mov	$MAP_PRIVATE_ANONYMOUS_NOREPLACE, %r10d
	or	$-1, %r8
	xor	%r9d, %r9d
	syscall
	xor	%r12d, %r12d		/* r12: a signal handler is due that makes the call return EINTR */
	cmp	%rax, SD_AREA(%rbx)
	jne	.Lno_area
	mov	%rax, %rbp
	lea	SA_STACK_END(%rbp), %rsp
	or	$-1, %eax
	mov	%eax, %edx
	xsave64	SA_EXTENDED(%rbp)
	cld				/* what the ABI promises to a function: */
	fninit				/* the interrupted code may be anywhere */
	ldmxcsr	SD_MXCSR(%rbx)

.Lcheckpoint:
	mov	SA_CHANNEL(%rbp), %r13
	sub	$1, %r13
	jb	.Ltraced
	movb	$(STUB_CHECKPOINT_CALLS & 0xff), SA_CHANNEL_BYTE(%rbp)
	mov	$SYS_sendto, %eax
	mov	$MSG_NOSIGNAL, %r10d
	call	.Lchannel
	mov	$SYS_recvfrom, %eax
	xor	%r10d, %r10d
	call	.Lchannel
	jmp	.Ltaken
.Lchannel:				/* eax, r10d: system call and its flags */
	mov	%r13, %rdi
	lea	SA_CHANNEL_BYTE(%rbp), %rsi
	mov	$1, %edx
	xor	%r8d, %r8d
	xor	%r9d, %r9d
	syscall
	ret
.Ltraced:
	mov	$SYS_getpid, %eax
	mov	$STUB_CHECKPOINT_CALLS, %edi
	syscall
.Ltaken:
	mov	SA_CALL_COUNT(%rbp), %r14
	lea	SA_CALLS(%rbp), %r13
	test	%r14, %r14
	jnz	.Lrun
	mov	SA_CLEANUP_COUNT(%rbp), %r14
	lea	SA_CLEANUP(%rbp), %r13
	test	%r14, %r14
	jz	.Lend
	andq	$0, SA_CLEANUP_COUNT(%rbp)
	andq	$0, SA_CHANNEL(%rbp)	/* it is among what is closed: the number may be somebody else's then */
.Lrun:
	andq	$0, SA_CALL_COUNT(%rbp)
.Lcall:
	mov	SC_ARGUMENT+8(%r13), %rsi
	mov	SC_ARGUMENT(%r13), %rdi
	mov	SC_ARGUMENT+16(%r13), %rdx
	mov	SC_ARGUMENT+24(%r13), %rcx
	mov	SC_ARGUMENT+32(%r13), %r8
	mov	SC_ARGUMENT+40(%r13), %r9
	mov	(%r13), %rax
	btr	$SC_INDIRECT_BIT, %rax
	jnc	.Lword
	movslq	(%rdi), %rdi
.Lword:
	btr	$SC_WORD_BIT, %rax
	jnc	.Ldirect
	mov	(%rdi), %rdi
.Ldirect:
	cmp	$SC_SYSCALL_LIMIT, %rax
	jae	.Lfunction
	mov	%rcx, %r10
	cmp	$SYS_clone, %eax
	je	.Lclone
	syscall
	jmp	.Lresult
.Lfunction:
	call	*%rax
.Lresult:
	mov	%rax, SC_RESULT(%r13)
	add	$SC_BYTES, %r13
	dec	%r14
	jnz	.Lcall
	jmp	.Lcheckpoint

.Lclone:
	syscall
	test	%rax, %rax
	jnz	.Lresult
	/* The clone, in memory of its own (memory_clone.h): it knows no other way than to its end. */
	mov	$SYS_prctl, %eax
	mov	$PR_SET_NAME, %edi
	lea	SA_CLONE_NAME(%rbp), %rsi
	syscall
	mov	$SYS_close_range, %eax	/* it has no descriptors then, and the program's are its own again */
	xor	%edi, %edi
	or	$-1, %esi
	mov	$CLOSE_RANGE_UNSHARE, %edx
	syscall
	mov	$SYS_nanosleep, %eax	/* meanwhile it is seized */
	lea	SA_CLONE_SLEEP(%rbp), %rdi
	xor	%esi, %esi
	syscall
.Lclone_ends:
	mov	$SYS_exit_group, %eax
	xor	%edi, %edi
	syscall
	jmp	.Lclone_ends

.Lend:
	mov	SA_ERRNO_ADDRESS(%rbp), %rcx
	jrcxz	.Lerrno_done
	mov	SA_ERRNO_VALUE(%rbp), %eax
	mov	%eax, (%rcx)
.Lerrno_done:
	or	$-1, %eax
	mov	%eax, %edx
	xrstor64 SA_EXTENDED(%rbp)
	/*
	 * Is a signal waiting that will run a handler as soon as it is unblocked, so that the interrupted call returns
	 * EINTR? One that is ignored, by default or by the program, stays pending while it is blocked, and interrupts
	 * nothing when it is unblocked.
	 */
	mov	$SYS_rt_sigpending, %eax
	lea	SA_PENDING(%rbp), %rdi
	mov	$SIGSET_BYTES, %esi
	syscall
	mov	SD_OLD_SIGNALS(%rbx), %r12
	not	%r12
	and	SA_PENDING(%rbp), %r12
.Lsignal:
	bsf	%r12, %r13
	jz	.Lsignals_done
	mov	$SYS_rt_sigaction, %eax
	lea	1(%r13), %edi
	xor	%esi, %esi
	lea	SA_ACTION(%rbp), %rdx
	mov	$SIGSET_BYTES, %r10d
	syscall
	cmpq	$SIG_IGN, SA_ACTION(%rbp)	/* or SIG_DFL, which is 0 */
	ja	.Lhandler
	btr	%r13, %r12
	jmp	.Lsignal
.Lhandler:
	testl	$SIGACTION_RESTART, SA_ACTION+8(%rbp)
	jz	.Lsignals_done
	cmpq	$0, SD_RESTARTS(%rbx)
	je	.Lsignals_done
	xor	%r12d, %r12d
.Lsignals_done:
	pushq	SD_FLAGS(%rbx)
	popfq
	mov	$SYS_munmap, %eax
	mov	%rbp, %rdi
	mov	SD_AREA_BYTES(%rbx), %rsi
	mov	SD_RSP(%rbx), %rsp
	syscall
	jmp	.Lleave

.Lno_area:				/* flags are those of the interrupted code only if we get them back: */
	/* no stack of ours; the tracer, which lives at this point or nearly so, restores them. Without a tracer the
	   arithmetic flags are rebuilt with sahf (SF ZF AF PF CF) and the overflow flag by an addition. */
	mov	SD_FLAGS(%rbx), %rcx
	mov	%rcx, %rax
	shl	$8, %eax		/* ah = low byte of the flags */
	shr	$11, %ecx
	and	$1, %ecx		/* OF */
	add	$0x7fffffff, %ecx	/* overflows when it was set */
	sahf				/* leaves OF alone */
.Lleave:
	mov	$SYS_getpid, %eax
	mov	$STUB_CHECKPOINT_END, %edi
	syscall
	/* From here on only without a tracer. */
	mov	$SYS_rt_sigprocmask, %eax
	mov	$SIG_SETMASK, %edi
	lea	SD_OLD_SIGNALS(%rbx), %rsi
	mov	$0, %edx
	mov	$SIGSET_BYTES, %r10d
	syscall
	mov	SD_RDX(%rbx), %rdx
	mov	SD_RSI(%rbx), %rsi
	mov	SD_RDI(%rbx), %rdi
	mov	SD_RBP(%rbx), %rbp
	mov	SD_R8(%rbx), %r8
	mov	SD_R9(%rbx), %r9
	mov	SD_R10(%rbx), %r10
	mov	SD_R11(%rbx), %r11
	mov	SD_R13(%rbx), %r13
	mov	SD_R14(%rbx), %r14
	mov	SD_R15(%rbx), %r15
	mov	%r12, %rcx
	mov	SD_R12(%rbx), %r12
	mov	SD_RBX(%rbx), %rbx
	jrcxz	.Lrestart
	mov	stub_code_end+SD_RCX(%rip), %rcx
	mov	stub_code_end+SD_RAX_HANDLER(%rip), %rax
	jmp	*stub_code_end+SD_RIP_HANDLER(%rip)
.Lrestart:
	mov	stub_code_end+SD_RCX(%rip), %rcx
	mov	stub_code_end+SD_RAX_RESTART(%rip), %rax
	jmp	*stub_code_end+SD_RIP_RESTART(%rip)
	.balign 8
stub_code_end:
	.size	stub_code, . - stub_code
	.section .note.GNU-stack, "", @progbits
