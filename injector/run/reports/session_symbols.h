/* SPDX-License-Identifier: MIT */
/*
 * The names of functions in the dump: the last thing that a session does. The target is free by then, the receipt is
 * written and the dump is whole, so whatever goes wrong here, or takes too long, or is ended by a signal, costs the
 * names; memanalyze then looks for them where it runs. It is said what is missing.
 */
#pragma once

#include "session/session.h"

/* After session_file_finish. */
void session_symbols_write(struct session *s);
