/* SPDX-License-Identifier: MIT */
/* Loading the payload and starting the recording, see attach.c. */
#pragma once

#include "session/session.h"

/* Loads the payload, starts recording, patches. On failure the target is as before. */
int attach_session(struct session *s, struct err *e) WARN_UNUSED;
/* Patches what modules that were loaded later brought with them. */
int attach_patch_more(struct session *s, struct err *e) WARN_UNUSED;
