/* SPDX-License-Identifier: MIT */
/*
 * SIGINT, SIGTERM and SIGHUP while memattach only waits and nothing of the target is held. Once something is, the
 * watchdog hears them (watchdog.h). A SIGHUP that was ignored at the start, as by nohup(1), stays ignored.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct stop_signals {
	int fd; /* -1 closed */
	sigset_t before;
};

/* The signals that end sessions. */
void stop_signals_list(sigset_t *set);
/* Is it one of them? A process of ours that such a signal has killed held nothing yet. */
bool stop_signals_have(int number);
/* Blocks these signals, until it is closed: one that has come and was not taken then does what it does. */
int stop_signals_open(struct stop_signals *s, struct err *e) WARN_UNUSED;
void stop_signals_close(struct stop_signals *s);
/* The number of one that has come, 0: none. */
int stop_signals_take(const struct stop_signals *s);

enum woken { WOKEN_BY_TIME, WOKEN_BY_END, WOKEN_BY_SIGNAL };
/* Until a time of clock_monotonic_ns(), a signal, or the end of a process. */
enum woken stop_signals_wait(const struct stop_signals *s, int pidfd, uint64_t until_ns);
