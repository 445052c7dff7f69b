/* SPDX-License-Identifier: MIT */
/* memattach --detach: ends the session that another memattach runs, or finishes what one that died has left. */
#pragma once

#include "host/exit_status.h"
#include "session/session.h"

enum exit_status take_out(struct session *s);
