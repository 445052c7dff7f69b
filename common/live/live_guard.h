/* SPDX-License-Identifier: MIT */
/*
 * Runs a program that fills the terminal in a child, and gives the terminal back however it ends. Signals
 * that end or stop programs come to the guard: it ends or stops the child first, so that nothing is drawn any more,
 * gives the terminal back, and then does to itself what the signal does. In the background, where to take the terminal
 * would stop the whole job, the view waits until it is in the foreground. Where Ctrl-Z was ignored when the program was
 * started it is no key for stopping either: whoever started it must go on.
 */
#pragma once

#include "base/err.h"

#define LIVE_GUARD_LEFT 1 /* from run: it has given the terminal back itself */

/*
 * run: in the child, with the terminal taken; 0, LIVE_GUARD_LEFT, or -errno with a text. The result is that of the
 * child, -ECANCELED if it was ended by a signal that nobody has sent to the guard.
 */
int live_guard_run(int (*run)(void *arg, struct err *e), void *arg, struct err *e) WARN_UNUSED;
