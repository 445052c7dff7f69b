/* SPDX-License-Identifier: MIT */
/*
 * The process in which symbol_reader answers, from the side of who asks. It is started at the first question. If it
 * ends, for whatever reason, or neither answers nor works for WORKER_SILENCE_SECONDS, it is another one that answers
 * the next question, which knows nothing of the images that were opened.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "debug_info/jail.h"
#include "symbols/wire.h"

#define WORKER_STARTS_MAX 16u
#define WORKER_SILENCE_SECONDS 120

struct symbol_worker {
	int fd; /* -1: there is none now */
	pid_t pid;
	_Atomic unsigned *doing; /* shared with it: the image that is being asked about */
	unsigned starts;
	const struct jail_files *files; /* that it gets */
	struct err error;               /* why none can be started; "" */
};

/* files must outlive it. */
void symbol_worker_init(struct symbol_worker *w, const struct jail_files *files);
void symbol_worker_done(struct symbol_worker *w);

/* Starts one if there is none. False: there will be none any more. */
bool symbol_worker_start(struct symbol_worker *w);
/* False: it is gone, at work on image w->doing. */
bool symbol_worker_ask(struct symbol_worker *w, const struct wire *question);
bool symbol_worker_answer(struct symbol_worker *w, struct wire *answer);
