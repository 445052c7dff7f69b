/* SPDX-License-Identifier: MIT */
/* --census: one look, two (--for), or one after the other (--every). No session: nothing is held, any signal ends it.
 */
#pragma once

#include "session/session.h"

/* Returns the exit status. */
int census_command(const struct session_options *o);
