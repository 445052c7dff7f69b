/* SPDX-License-Identifier: MIT */
#include "control_call.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "entry_place.h"
#include "live_thread.h"
#include "session_entries.h"

#define LOCKED_SYMBOL "memattach_locked"

static int check(int64_t result, const char *what, struct err *e)
{
	return remote_result((uint64_t)result, e) < 0 ? err_prefix(e, "the payload could not %s", what) : 0;
}

int control_call(struct session *s, struct remote *r, enum control_op op, uint64_t argument, const char *what,
                 uint64_t deadline_ns, struct err *e)
{
	const uint64_t arguments[6] = { op, argument };
	uint64_t result = 0;

	int rc = remote_call1(r, s->payload.control, arguments, &result, deadline_ns, e);
	return rc < 0 ? rc : check((int64_t)result, what, e);
}

struct lock_holder {
	struct session *s;
	bool patches; /* GOT entries, as they were planned; else it restores */
};

/* The mappings that hold GOT entries, as they are now. */
static int read_places(const struct session *s, const struct got_entry *entries, uint32_t count, struct maps *maps,
                       struct err *e)
{
	AUTO_FREE uint64_t *addresses = calloc(count + 1u, sizeof *addresses);

	if (!addresses)
		return err_set(e, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < count; i++)
		addresses[i] = entries[i].address;
	return live_thread_maps_at(&s->target, maps, addresses, count, e);
}

/* The loader's lock is held by the borrowed thread: what maps say now stays true for modules. */
static int tell_protections(void *context, struct err *e)
{
	const struct lock_holder *holder = context;
	struct session *s = holder->s;
	AUTO_FREE struct got_entry *entries = NULL;
	uint32_t count = 0;
	struct maps maps;

	int rc = session_entries(s, &entries, &count, e);
	if (rc == 0)
		rc = read_places(s, entries, count, &maps, e);
	if (rc < 0)
		return rc;
	rc = entry_places_find(entries, count, &maps, holder->patches ? &s->view.maps : NULL, &s->memory, e);
	maps_free(&maps);
	if (rc == 0 && count)
		rc = target_write(&s->writer, s->payload.block.entries_address, entries, count * sizeof *entries, e);
	const uint64_t known = 1;
	if (rc == 0)
		rc = target_write(&s->writer,
		                  s->payload.session + offsetof(struct memattach_session, protections_known), &known,
		                  sizeof known, e);
	return rc;
}

static int locked(struct session *s, struct remote *r, enum control_op op, uint64_t argument, const char *what,
                  uint64_t deadline_ns, struct err *e)
{
	const uint64_t request[3] = { op, argument, (uint64_t)-EIO };
	const uint64_t arguments[6] = { s->payload.block.dl_handle, remote_data(r) };
	uint64_t address, result;

	int rc = target_write(&s->writer, remote_data(r), LOCKED_SYMBOL, sizeof LOCKED_SYMBOL, e);
	if (rc == 0)
		rc = target_write(&s->writer, s->payload.session + offsetof(struct memattach_session, locked_op),
		                  request, sizeof request, e);
	if (rc == 0)
		rc = remote_call1(r, s->view.libc.dlsym, arguments, &address, deadline_ns, e);
	if (rc == 0)
		rc = target_read_u64(&s->memory, s->payload.session + offsetof(struct memattach_session, locked_result),
		                     &result, e);
	return rc < 0 ? rc : check((int64_t)result, what, e);
}

int control_call_locked(struct session *s, struct remote *r, enum control_op op, uint64_t argument, const char *what,
                        uint64_t deadline_ns, struct err *e)
{
	struct lock_holder holder = { s, op == CONTROL_PATCH };

	r->at_lock = tell_protections;
	r->at_lock_context = &holder;
	int rc = s->view.libc.dlsym && s->payload.block.dl_handle
	                 ? locked(s, r, op, argument, what, deadline_ns, e)
	                 : control_call(s, r, op, argument, what, deadline_ns, e);
	r->at_lock = NULL;
	return rc;
}
