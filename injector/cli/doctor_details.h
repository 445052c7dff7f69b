/* SPDX-License-Identifier: MIT */
/*
 * What --doctor --verbose adds: all that an attach would work with, one line for each module, definition, GOT entry and
 * unwind table. For people who look into why something is or is not recorded.
 */
#pragma once

#include "session/session.h"

/* After the plan and the unwind tables were made. To stdout. */
void doctor_details(const struct session *s);
