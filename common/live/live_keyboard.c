/* SPDX-License-Identifier: MIT */
#include "live/live_keyboard.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/now.h"

#define ESCAPE '\033'
#define ESCAPE_NS 50000000ull /* the rest of a sequence comes sooner */

static void on_resize(int sig)
{
	(void)sig; /* it ends the wait */
}

void live_keyboard_catch_resize(void)
{
	struct sigaction action = { .sa_handler = on_resize, .sa_flags = SA_RESTART };
	sigset_t resize;

	sigemptyset(&action.sa_mask);
	sigaction(SIGWINCH, &action, NULL);
	sigemptyset(&resize);
	sigaddset(&resize, SIGWINCH);
	sigprocmask(SIG_BLOCK, &resize, NULL); /* until it is waited for */
}

/* The rest of an escape sequence comes with it, or not at all. */
static int take_keys(struct live_keyboard *k, struct err *e)
{
	ssize_t n = read(STDIN_FILENO, k->keys + k->bytes, sizeof k->keys - k->bytes);
	size_t used = 0, length;
	int r = 0;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0) { /* the terminal is gone */
		*k->quit = true;
		return 0;
	}
	k->bytes += (size_t)n;
	while (!r && used < k->bytes && !*k->quit) {
		enum live_key key;
		if (*k->typing && k->keys[used] != ESCAPE) {
			r = k->type(k->arg, k->keys[used++], e);
			continue;
		}
		length = live_key_read(k->keys + used, k->bytes - used, &key);
		if (!length)
			break;
		used += length;
		r = k->apply(k->arg, key, e);
	}
	k->bytes -= used;
	memmove(k->keys, k->keys + used, k->bytes);
	return r;
}

int live_keyboard_await(struct live_keyboard *k, uint64_t due_ns, struct err *e)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
		                { .fd = k->ends ? k->ends : -1, .events = POLLIN } };
	uint64_t now = now_ns(CLOCK_MONOTONIC), left = due_ns > now ? due_ns - now : 0;
	bool begun = k->bytes > 0; /* a sequence, or a lone Escape */
	sigset_t none;
	bool lone = k->bytes == 1;

	left = begun && (*k->paused || left > ESCAPE_NS) ? ESCAPE_NS : left;
	const struct timespec wait = { (time_t)(left / 1000000000u), (long)(left % 1000000000u) };
	sigemptyset(&none);
	const int ready = ppoll(fds, 2, *k->paused && !begun ? NULL : &wait, &none);
	if (ready > 0)
		return fds[0].revents ? take_keys(k, e) : 0;
	k->bytes = 0;
	return lone ? k->apply(k->arg, LIVE_KEY_ESCAPE, e) : 0;
}
