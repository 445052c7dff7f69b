/* SPDX-License-Identifier: MIT */
/*
 * What --doctor says of CPython in the process: its version, whether its frames can be read, which of its words a
 * session with these options would patch, and with --verbose the Python stack of each thread as it is in this moment.
 * Nothing where there is no CPython.
 */
#pragma once

#include "session/session.h"

/* Once the rest of the plan is made, to which it adds those words; reads the memory of the target. */
void doctor_python(struct session *s);
