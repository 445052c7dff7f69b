/* SPDX-License-Identifier: MIT */
/* The records of the stub's frame, read as the kernel reads them, for threads of machines that are not here: what
 * ptrace would give of these is made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <asm/ptrace.h>
#include <asm/sigcontext.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "arch/stub_frame.h"

#define OVERLAYS 0x40f /* NT_ARM_POE */
#define OVERLAYS_MAGIC 0x504f4530u
#define PERMISSIONS 0x7777777777770217u
#define LIMIT 4096u /* of the list */

/* The machine: what it has, and of the thread */
static struct {
	int overlays_error; /* 0: it has protection keys */
	unsigned vl;        /* of live registers of SVE; 0: there are none */
} machine;

static uint8_t vector_byte(unsigned set, unsigned i)
{
	return (uint8_t)(set * 71 + i * 3 + 1);
}

static long give(struct iovec *iov, const void *from, size_t bytes)
{
	iov->iov_len = bytes < iov->iov_len ? bytes : iov->iov_len;
	memcpy(iov->iov_base, from, iov->iov_len);
	return 0;
}

static long give_long_vectors(struct iovec *iov)
{
	static uint8_t all[SVE_PT_SIZE(16, SVE_PT_REGS_SVE)];
	const unsigned vq = sve_vq_from_vl(machine.vl);
	const struct user_sve_header header = { .size = (uint32_t)SVE_PT_SIZE(vq, SVE_PT_REGS_SVE),
		                                .vl = (uint16_t)machine.vl,
		                                .flags = SVE_PT_REGS_SVE };

	for (unsigned i = sizeof header; i < sizeof all; i++)
		all[i] = vector_byte(2, i);
	memcpy(all, &header, sizeof header);
	return give(iov, all, header.size);
}

long __wrap_ptrace(enum __ptrace_request request, ...);
long __wrap_ptrace(enum __ptrace_request request, ...)
{
	static const uint64_t permissions = PERMISSIONS;
	struct user_fpsimd_state vectors;
	va_list list;

	va_start(list, request);
	const pid_t tid = va_arg(list, pid_t);
	const uintptr_t what = va_arg(list, uintptr_t);
	struct iovec *iov = va_arg(list, struct iovec *);
	va_end(list);
	assert_int_equal(tid, 17);
	if ((int)request == PTRACE_PEEKTEXT)
		return 0; /* no call */
	assert_int_equal(request, PTRACE_GETREGSET);
	for (unsigned i = 0; i < sizeof vectors; i++)
		((uint8_t *)&vectors)[i] = vector_byte(1, i);
	errno = what == OVERLAYS ? machine.overlays_error : machine.vl ? 0 : EINVAL;
	switch (what) {
	case NT_FPREGSET: return give(iov, &vectors, sizeof vectors);
	case NT_ARM_SVE: return errno ? -1 : give_long_vectors(iov);
	case OVERLAYS: return errno ? -1 : give(iov, &permissions, sizeof permissions);
	default: fail(); return -1;
	}
}

struct records {
	const struct fpsimd_context *vectors;
	const struct sve_context *longer;
	const uint64_t *permissions;
	uint64_t bytes; /* from the beginning of the frame to the end of the list */
};

/* Each at most once, in whatever order, up to one of no size. */
static struct records read_records(const struct stub_frame *frame)
{
	const uint8_t *base = (const uint8_t *)&frame->vectors_magic;
	struct records r = { 0 };
	uint32_t at = 0;

	for (;;) {
		struct _aarch64_ctx head;
		assert_int_equal(at % 16, 0);
		assert_true(at + sizeof head <= LIMIT);
		memcpy(&head, base + at, sizeof head);
		assert_true(head.size <= LIMIT - at);
		const void *record = base + at;
		if (head.magic == 0) {
			assert_int_equal(head.size, 0);
			r.bytes = SF_VECTORS + at + sizeof head;
			return r;
		}
		if (head.magic == FPSIMD_MAGIC && !r.vectors) {
			assert_int_equal(head.size, sizeof *r.vectors);
			r.vectors = record;
		} else if (head.magic == SVE_MAGIC && machine.vl && !r.longer) {
			assert_true(head.size >= SVE_SIG_CONTEXT_SIZE(sve_vq_from_vl(machine.vl)));
			r.longer = record;
		} else if (head.magic == OVERLAYS_MAGIC && !machine.overlays_error && !r.permissions) {
			assert_int_equal(head.size, 16);
			r.permissions = (const uint64_t *)record + 1;
		} else {
			fail_msg("record 0x%x, %u bytes, at %u", head.magic, head.size, at);
		}
		at += head.size;
	}
}

/* A page, as the padding is, with something behind the frame. */
static union {
	struct stub_frame frame;
	uint8_t bytes[LIMIT + SF_VECTORS];
} page;

static struct records note(uint64_t *frame_bytes)
{
	struct registers regs = { .call = -1 };

	memset(&page, 0, sizeof page);
	assert_true(stub_frame_note(17, &regs, &page.frame, frame_bytes));
	for (uint64_t i = *frame_bytes; i < sizeof page; i++)
		assert_int_equal(page.bytes[i], 0);
	memset(page.bytes + *frame_bytes, 0xff, sizeof page - *frame_bytes);
	struct records r = read_records(&page.frame);
	assert_true(r.bytes <= *frame_bytes);
	assert_non_null(r.vectors);
	return r;
}

static void test_without_protection_keys_there_is_no_record_of_them(void **state)
{
	uint64_t bytes;

	(void)state;
	machine.overlays_error = EINVAL;
	machine.vl = 0;
	struct records r = note(&bytes);
	assert_int_equal(bytes, stub_frame_least());
	assert_null(r.permissions);
	assert_int_equal(((const uint8_t *)r.vectors->vregs)[5], vector_byte(1, 5));
}

static void test_permissions_of_protection_keys_are_given_back(void **state)
{
	uint64_t bytes;

	(void)state;
	machine.overlays_error = 0;
	machine.vl = 0;
	struct records r = note(&bytes);
	assert_int_equal(bytes, stub_frame_least());
	assert_non_null(r.permissions);
	assert_int_equal(*r.permissions, PERMISSIONS);
	assert_int_equal(((const uint8_t *)r.vectors->vregs)[511], vector_byte(1, 511));
}

static void test_they_are_behind_live_registers_of_sve(void **state)
{
	static const unsigned lengths[] = { 16, 32, 48, 64 };

	(void)state;
	machine.overlays_error = 0;
	for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		uint64_t bytes;
		machine.vl = lengths[i];
		struct records r = note(&bytes);
		const unsigned vq = sve_vq_from_vl(machine.vl);
		assert_true(bytes > stub_frame_least());
		assert_non_null(r.longer);
		assert_int_equal(r.longer->vl, machine.vl);
		assert_int_equal(((const uint8_t *)r.longer)[SVE_SIG_FFR_OFFSET(vq)],
		                 vector_byte(2, SVE_PT_SVE_FFR_OFFSET(vq)));
		assert_non_null(r.permissions);
		assert_int_equal(*r.permissions, PERMISSIONS);
	}
}

static void test_what_has_no_room_is_not_written(void **state)
{
	struct registers regs = { .call = -1 };
	uint64_t bytes;

	(void)state;
	machine.overlays_error = 0;
	machine.vl = 256;
	memset(&page, 0, sizeof page);
	assert_true(stub_frame_note(17, &regs, &page.frame, &bytes));
	assert_true(bytes > sizeof page.frame);
	for (unsigned i = SF_REST; i < sizeof page; i++)
		assert_int_equal(page.bytes[i], 0);
}

static void test_permissions_that_cannot_be_read_are_no_absence(void **state)
{
	struct registers regs = { .call = -1 };
	uint64_t bytes;

	(void)state;
	machine.overlays_error = ESRCH;
	machine.vl = 0;
	memset(&page, 0, sizeof page);
	assert_false(stub_frame_note(17, &regs, &page.frame, &bytes));
	assert_int_equal(errno, ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_protection_keys_there_is_no_record_of_them),
		cmocka_unit_test(test_permissions_of_protection_keys_are_given_back),
		cmocka_unit_test(test_they_are_behind_live_registers_of_sve),
		cmocka_unit_test(test_what_has_no_room_is_not_written),
		cmocka_unit_test(test_permissions_that_cannot_be_read_are_no_absence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
