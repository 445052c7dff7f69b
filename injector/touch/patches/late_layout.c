/* SPDX-License-Identifier: MIT */
#include "touch/patches/late_layout.h"

#include <stdatomic.h>
#include <unistd.h>

#include "touch/remote/target_write.h"

bool late_layout_is_same_program(const struct session *s)
{
	uint64_t magic;

	return pread(s->writer.fd, &magic, sizeof magic, (off_t)s->payload.session) == sizeof magic &&
	       magic == CONTROL_MAGIC;
}

int late_layout_check(const struct session *s, uint64_t address, uint64_t bytes, struct err *e)
{
	if (address >= s->payload.base && address < s->payload.end && bytes <= s->payload.end - address)
		return 0;
	return err_set(e, EINVAL, "the payload does not say where it reads that there are any");
}

int late_layout_java(struct session *s, const struct java_layout *layout, uint32_t version, struct err *e)
{
	const uint64_t address = s->payload.block.java_address;
	struct java_layout without = *layout;

	without.bytes = 0;
	int rc = late_layout_check(s, address, sizeof *layout, e);
	rc = rc ?: target_write(&s->writer, CHANGE_PAYLOAD, address, &without, sizeof without, e);
	if (rc < 0)
		return rc;
	dump_writer_java(&s->recording.dump, version);
	atomic_thread_fence(memory_order_release);
	return target_write(&s->writer, CHANGE_PAYLOAD, address + offsetof(struct java_layout, bytes), &layout->bytes,
	                    sizeof layout->bytes, e);
}
