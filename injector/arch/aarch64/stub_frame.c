/* SPDX-License-Identifier: MIT */
/*
 * Records behind the general registers, in the order in which the kernel writes them: vectors, those of SVE if they are
 * live, the permissions that a thread has by protection keys (POR_EL0) where the machine knows these (FEAT_S1POE), the
 * end of the list. A record of what the machine does not have would be an error. Without the one of POR_EL0 Linux gives
 * that register a word of the kernel's stack, from 6.12 on until 7.1 and the stable versions of May 2026. What has no
 * record stays as the stub found it.
 */
#include "arch/stub_frame.h"

#include <asm/ptrace.h>
#include <asm/sigcontext.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "arch/aarch64/traced.h"
#include "arch/aarch64/words.h"

#define NT_ARM_POE 0x40f
#define OVERLAYS_MAGIC 0x504f4530u /* POE_MAGIC, which headers before Linux 6.12 do not have */
#define VECTORS 32u
#define VQ_MAX 16u /* of the architecture, in units of 16 bytes */

_Static_assert(sizeof(siginfo_t) + offsetof(ucontext_t, uc_stack) == SF_BEFORE &&
                       offsetof(ucontext_t, uc_sigmask) - offsetof(ucontext_t, uc_stack) ==
                               offsetof(struct stub_frame, mask) &&
                       offsetof(ucontext_t, uc_mcontext) - offsetof(ucontext_t, uc_stack) == SF_REGISTERS - 8 &&
                       offsetof(struct sigcontext, regs) == 8 &&
                       offsetof(struct sigcontext, sp) == SF_SP - SF_REGISTERS + 8 &&
                       offsetof(struct sigcontext, __reserved) == SF_VECTORS - SF_REGISTERS + 8,
               "rt_sigframe");
_Static_assert(sizeof(struct fpsimd_context) == SF_REST - SF_VECTORS, "fpsimd_context");
_Static_assert(SVE_PT_SVE_OFFSET == SVE_SIG_REGS_OFFSET && SVE_PT_SVE_FFR_OFFSET(3) == SVE_SIG_FFR_OFFSET(3),
               "sve_context");

struct vectors {
	uint64_t registers[64];
	uint32_t status, control;
	uint32_t reserved[2];
};

/* As the kernel shows them: of the length in the header, up to the longest that there are. */
struct long_vectors {
	struct user_sve_header header;
	uint8_t registers[SVE_PT_SIZE(VQ_MAX, SVE_PT_REGS_SVE)];
};

struct overlays {
	uint32_t magic, bytes;
	uint64_t permissions;
};

_Static_assert(SF_BYTES == SF_REST + sizeof(struct overlays) + 16, "a list of records ends with half of one");

/* Of the record of SVE. */
static uint64_t long_bytes(unsigned vq)
{
	return (SVE_SIG_CONTEXT_SIZE(vq) + 15) & ~15u;
}

uint64_t stub_frame_least(void)
{
	return SF_BYTES;
}

uint64_t stub_frame_usual(void)
{
	const int length = prctl(PR_SVE_GET_VL, 0, 0, 0, 0);

	return length < 0 ? SF_BYTES : SF_BYTES + long_bytes(sve_vq_from_vl((unsigned)length & PR_SVE_VL_LEN_MASK));
}

/*
 * Registers of SVE, if they are live: false if they are not. A system call ends their life: they are of no thread that
 * is in one, or about to make it, whatever the kernel still has.
 */
static bool get_long_vectors(pid_t tid, const struct registers *regs, struct long_vectors *v)
{
	struct iovec iov = { v, sizeof *v };

	return ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_ARM_SVE, &iov) == 0 &&
	       iov.iov_len >= sizeof v->header && v->header.flags & VECTORS_LIVE && regs->call < 0 &&
	       traced_instruction(tid, regs->general.pc) != WORD_SYSTEM_CALL;
}

static void note_long_vectors(struct stub_frame *frame, const struct long_vectors *v)
{
	const unsigned vq = sve_vq_from_vl(v->header.vl);
	const struct sve_context context = { .head = { SVE_MAGIC, (uint32_t)long_bytes(vq) }, .vl = v->header.vl };
	const uint8_t *from = (const uint8_t *)v;

	memcpy(frame->rest, &context, sizeof context);
	memcpy(frame->rest + SVE_SIG_REGS_OFFSET, from + SVE_PT_SVE_OFFSET, SVE_SIG_REGS_SIZE(vq));
	for (unsigned i = 0; i < VECTORS; i++)
		memcpy(&frame->vectors[2 * i], from + SVE_PT_SVE_ZREG_OFFSET(vq, i), 2 * sizeof frame->vectors[0]);
	memcpy(&frame->status, from + SVE_PT_SVE_FPSR_OFFSET(vq), sizeof frame->status);
	memcpy(&frame->control, from + SVE_PT_SVE_FPCR_OFFSET(vq), sizeof frame->control);
}

static bool note_vectors(pid_t tid, const struct registers *regs, struct stub_frame *frame, uint64_t *frame_bytes)
{
	struct long_vectors longer;
	struct vectors vectors;

	frame->vectors_magic = FPSIMD_MAGIC;
	frame->vectors_bytes = sizeof(struct fpsimd_context);
	*frame_bytes = SF_BYTES;
	if (get_long_vectors(tid, regs, &longer)) {
		*frame_bytes += long_bytes(sve_vq_from_vl(longer.header.vl));
		if (*frame_bytes <= sizeof *frame)
			note_long_vectors(frame, &longer);
		return true;
	}
	if (!traced_get_set(tid, NT_FPREGSET, &vectors, sizeof vectors))
		return false;
	frame->status = vectors.status;
	frame->control = vectors.control;
	memcpy(frame->vectors, vectors.registers, sizeof frame->vectors);
	return true;
}

/* In front of the end of the list. */
static bool note_overlays(pid_t tid, struct stub_frame *frame, uint64_t frame_bytes)
{
	struct overlays overlays = { OVERLAYS_MAGIC, sizeof overlays, 0 };

	if (!traced_get_set(tid, NT_ARM_POE, &overlays.permissions, sizeof overlays.permissions))
		return errno == EINVAL; /* this kernel has none, and takes no record */
	if (frame_bytes <= sizeof *frame)
		memcpy((uint8_t *)frame + frame_bytes - (SF_BYTES - SF_REST), &overlays, sizeof overlays);
	return true;
}

bool stub_frame_note(pid_t tid, const struct registers *regs, struct stub_frame *frame, uint64_t *frame_bytes)
{
	return note_vectors(tid, regs, frame, frame_bytes) && note_overlays(tid, frame, *frame_bytes);
}

bool stub_frame_give_vectors_back(pid_t tid, const struct stub_frame *frame)
{
	struct vectors vectors = { .status = frame->status, .control = frame->control };

	memcpy(vectors.registers, frame->vectors, sizeof vectors.registers);
	return traced_put_set(tid, NT_FPREGSET, &vectors, sizeof vectors);
}
