/* SPDX-License-Identifier: MIT */
#include "session/payload_place.h"

#include <string.h>

#include "process/live_thread.h"
#include "touch/remote/payload_symbols.h"

bool payload_place_is_mapped(const struct session *s)
{
	struct maps maps;

	if (live_thread_maps(&s->target, &maps, ERR_IGNORED) < 0)
		return false;
	const struct mapping *m = maps_find(&maps, s->payload.base);
	bool mapped = m && strstr(m->path, "memfd:" PAYLOAD_MEMFD_NAME);
	maps_free(&maps);
	return mapped;
}

static bool looks_like_payload(const struct elf_module *m)
{
	return strcmp(elf_module_name(m), "memfd:" PAYLOAD_MEMFD_NAME) == 0 ||
	       strstr(m->path, "memfd:" PAYLOAD_MEMFD_NAME);
}

static int locate(struct payload_place *place, uint64_t base, struct err *e)
{
	uint64_t session_offset, control_offset;

	int rc = payload_symbol("memattach_session", &session_offset, e);
	rc = rc ?: payload_symbol("memattach_control", &control_offset, e);
	if (rc < 0)
		return rc;
	*place = (struct payload_place){
		.base = base,
		.session = base + session_offset,
		.control = base + control_offset,
	};
	return 0;
}

/* What is loaded under the payload's name, and what its session block says. */
static int read_payload(const struct session *s, const struct elf_module *m, struct payload_place *place, struct err *e)
{
	int rc = locate(place, m->start, e);
	if (rc < 0)
		return rc;
	place->end = m->end;
	place->code_end = m->exec_end;
	rc = target_read(&s->memory, place->session, &place->block, sizeof place->block, e);
	if (rc == 0 && (place->block.magic != CONTROL_MAGIC || place->block.version != CONTROL_VERSION))
		rc = err_set(e, EPROTO,
		             "the target holds the payload of another version of memattach (detach with that version), "
		             "or it has written over it");
	return rc;
}

int payload_place_set(struct session *s, uint64_t base, uint64_t end, uint64_t code_end, struct err *e)
{
	int rc = locate(&s->payload, base, e);
	if (rc < 0)
		return rc;
	s->payload.end = end;
	s->payload.code_end = code_end;
	s->own_base = base;
	rc = target_read(&s->memory, s->payload.session, &s->payload.block, sizeof s->payload.block, e);
	if (rc == 0 && s->payload.block.magic != CONTROL_MAGIC)
		rc = err_set(e, EPROTO, "the payload is not where the loader says");
	return rc;
}

static bool is_active(const struct payload_place *place)
{
	return place->block.state == SESSION_STARTED || place->block.state == SESSION_INERT;
}

bool payload_place_is_active(const struct session *s)
{
	return s->payload.base && is_active(&s->payload);
}

int payload_place_find(struct session *s, struct err *e)
{
	struct payload_place found = { 0 };
	int rc = 0;

	for (size_t i = 0; i < s->view.modules.count && rc == 0; i++) {
		const struct elf_module *m = &s->view.modules.list[i];
		struct payload_place place;
		if (!looks_like_payload(m) || (s->own_base && m->start != s->own_base))
			continue;
		rc = read_payload(s, m, &place, e);
		if (rc == 0 && (!found.base || (is_active(&place) && !is_active(&found))))
			found = place;
	}
	if (rc == 0)
		s->payload = found;
	if (rc == 0 && found.base && !payload_place_handle(s))
		s->maps_payload = s->view.libc.set_aside = true;
	if (rc == 0 && found.base)
		ours_add_mapping(&s->ours, maps_find(&s->view.maps, found.base));
	if (rc == 0 && found.base && !s->touched)
		ours_add_named(&s->ours, &s->view.maps);
	if (rc == 0 && s->recording.dump.own && s->own_base && found.base && is_active(&found) &&
	    found.block.session_id != s->recording.dump.own->session_id)
		rc = err_set(e, EPROTO, "the payload in the target is that of another session");
	return rc;
}

uint64_t payload_place_handle(const struct session *s)
{
	const struct elf_module *m = modules_find(&s->view.modules, s->payload.base, false);

	if (s->payload.block.dl_handle)
		return s->payload.block.dl_handle;
	return m ? m->link_map : 0;
}
