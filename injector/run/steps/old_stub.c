/* SPDX-License-Identifier: MIT */
#include "run/steps/old_stub.h"

#include "arch/stub_frame.h"
#include "run/steps/inspect.h"
#include "session/payload_place.h"

static struct stub_place place_of(const struct session *s, uint64_t cave)
{
	const struct session_view *v = &s->view;
	struct stub_place place = { .code = cave };
	struct stub_data data;
	uint64_t bytes;

	if (target_read(&s->memory, remote_cave_data(cave), &data, sizeof data, ERR_IGNORED) < 0 ||
	    data.magic != STUB_MAGIC)
		return place;
	const uint64_t frame = stub_data_frame(&data, &bytes);
	const bool beside = frame >= cave + remote_cave_bytes() || (frame < cave && bytes <= cave - frame);
	if (beside && bytes >= stub_frame_least() &&
	    cave_holds_frame(&v->modules, &s->memory, &v->maps, frame, bytes)) {
		place.frame = frame;
		place.frame_bytes = bytes;
	}
	return place;
}

bool old_stub_cave(const struct session *s, struct stub_place *cave)
{
	for (size_t i = 0; i < s->view.modules.count; i++) {
		struct cave found;
		if (cave_of_module(&found, &s->view.modules.list[i], &s->memory, &s->view.maps) &&
		    found.bytes >= remote_cave_bytes() && remote_is_stub(&s->memory, found.address)) {
			*cave = place_of(s, found.address);
			return true;
		}
	}
	return false;
}

int old_stub_erase_caves(struct session *s, struct err *e)
{
	uint64_t longest = 0;
	struct borrower borrower;
	int rc = 0;

	session_patient_borrower(s, &borrower, &longest);
	/* One in each module, unless the program writes them itself. */
	for (size_t i = 0; rc == 0 && old_stub_cave(s, &borrower.cave); i++)
		rc = i <= s->view.modules.count
		             ? borrow_erase_cave(&borrower, e)
		             : err_set(e, EBUSY, "what is cleared in the padding at 0x%llx comes back",
		                       (unsigned long long)borrower.cave.code);
	return rc;
}

int old_stub_settle(struct session *s, struct err *e)
{
	uint64_t longest = 0;
	struct borrower borrower;
	int rc = 0;

	if (old_stub_cave(s, &s->view.cave)) {
		rc = inspect_choose(s, e);
		session_patient_borrower(s, &borrower, &longest);
		rc = rc ?: borrow_wait_cave(&borrower, e);
		rc = rc ?: inspect_session_again(s, e);
	}
	return rc == 0 ? payload_place_find(s, e) : rc;
}
