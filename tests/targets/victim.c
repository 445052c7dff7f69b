/* SPDX-License-Identifier: MIT */
#include "victim.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static const char *victim_name = "victim";
static atomic_bool done;
static atomic_ulong rounds;
static atomic_ulong errors;

static void on_finish(int signal_number)
{
	(void)signal_number;
	atomic_store_explicit(&done, true, memory_order_relaxed);
}

__attribute__((format(printf, 2, 0))) static void say(const char *prefix, const char *format, va_list ap)
{
	char line[512];
	int used = snprintf(line, sizeof line - 1, "%s", prefix);
	int more = vsnprintf(line + used, sizeof line - 1 - (size_t)used, format, ap);
	size_t length = (size_t)used + (size_t)(more < 0 ? 0 : more);

	if (length > sizeof line - 2)
		length = sizeof line - 2;
	line[length++] = '\n';
	for (size_t at = 0; at < length;) {
		ssize_t n = write(STDOUT_FILENO, line + at, length - at);
		if (n < 0 && errno != EINTR)
			_exit(3);
		if (n > 0)
			at += (size_t)n;
	}
}

void victim_say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say("", format, ap);
	va_end(ap);
}

void victim_wrong(const char *format, ...)
{
	int saved = errno;
	va_list ap;

	if (atomic_fetch_add(&errors, 1) < 20) {
		va_start(ap, format);
		say("WRONG ", format, ap);
		va_end(ap);
	}
	errno = saved;
}

void victim_start(const char *name)
{
	struct sigaction action = { .sa_handler = on_finish }; /* no SA_RESTART: blocked calls must return */

	victim_name = name;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* Yama: a victim may be attached by anybody of its user */
	sigaction(SIGUSR1, &action, NULL);
	/* It has a heap, as nearly every program: the loader allocates for a library, and would make one. */
	void *volatile block = malloc(1000);
	free(block);
	victim_say("PID %d", (int)getpid());
}

void victim_ready(void)
{
	victim_say("READY");
}

bool victim_done(void)
{
	return atomic_load_explicit(&done, memory_order_relaxed);
}

void victim_round(void)
{
	atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed);
}

void victim_block(uint64_t *random)
{
	size_t bytes = 1 + victim_random(random) % 3000;
	unsigned char *p = malloc(bytes);

	if (!p)
		return;
	memset(p, 0x5a, bytes);
	for (size_t i = 0; i < bytes; i++)
		if (p[i] != 0x5a)
			victim_wrong("byte %zu of %zu changed", i, bytes);
	free(p);
}

int victim_report(void)
{
	if (atomic_load(&errors) == 0 && atomic_load(&rounds) == 0)
		victim_wrong("not one round was finished");
	if (atomic_load(&errors)) {
		victim_say("FAILED %s errors=%lu rounds=%lu", victim_name, atomic_load(&errors), atomic_load(&rounds));
		return 1;
	}
	victim_say("OK %s rounds=%lu", victim_name, atomic_load(&rounds));
	return 0;
}

bool victim_line(char *line, size_t size)
{
	size_t used = 0;

	while (used < size - 1) {
		ssize_t n = read(STDIN_FILENO, line + used, 1);
		if (n < 0 && errno == EINTR && victim_done())
			return false;
		if (n < 0) {
			victim_wrong("read of stdin: %s", strerror(errno));
			return false;
		}
		if (n == 0)
			return false;
		if (line[used] == '\n')
			break;
		used++;
	}
	line[used] = 0;
	return true;
}

uint64_t victim_monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
