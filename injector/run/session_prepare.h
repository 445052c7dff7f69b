/* SPDX-License-Identifier: MIT */
/* All of an attach that can be done before anything stops: looks, plans, the dump, its first copy on disk. */
#pragma once

#include "session/session.h"

/* On failure nothing of the target is changed, but what an earlier memattach left in it may have been taken out. */
int session_prepare(struct session *s, struct err *e) WARN_UNUSED;
