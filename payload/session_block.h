/* SPDX-License-Identifier: MIT */
/* The session block under its internal name: a hidden alias, so that the payload never reaches for another payload's by
 * accident. */
#pragma once

#include "control.h"
#include "payload.h"

extern struct memattach_session session HIDDEN;
