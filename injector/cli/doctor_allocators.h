/* SPDX-License-Identifier: MIT */
/* What --doctor says of allocators: which there are, who calls them how, and what is seen of that. */
#pragma once

#include "allocators/allocator_find.h"
#include "session/session.h"
#include "entry/stored_pointers.h"

struct doctor_allocators {
	struct allocators found;
	struct stored_pointer stored; /* plan_look() */
	int result;                   /* of the search */
	struct err error;
};

/* Searches; the plan of the session must have been made. doctor_allocators_done after. */
void doctor_allocators_find(struct doctor_allocators *d, struct session *s);
void doctor_allocators_done(struct doctor_allocators *d);

/* The facts. */
void doctor_allocators_tell(const struct doctor_allocators *d, const struct session *s);

/* What would be hooked, once the plan is what an attach would make (plan_relieve(), python_session_find()). */
void doctor_allocators_tell_hooks(const struct doctor_allocators *d, const struct session *s);

/* With --verbose: each function. */
void doctor_allocators_details(const struct doctor_allocators *d, const struct session *s);

/* Lines "not covered" for calls that would not be seen; false: there are none. */
bool doctor_allocators_tell_uncovered(const struct doctor_allocators *d, const struct session *s);
