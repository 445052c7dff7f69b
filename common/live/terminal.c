/* SPDX-License-Identifier: MIT */
#include "live/terminal.h"

#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"
#define COLUMNS_MAX 1000u
#define LINES_MAX 1000u

static struct termios before;
static volatile sig_atomic_t entered;

int terminal_open(struct err *e)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before))
		return err_set(e, ENOTTY, "--live needs a terminal; --batch N writes N looks as plain text");
	return 0;
}

static void put(const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t n = write(STDOUT_FILENO, text, left);
		if (n <= 0)
			return;
		text += n;
		left -= (size_t)n;
	}
}

void terminal_enter(bool stops)
{
	struct termios keys = before;

	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 1;
	keys.c_cc[VTIME] = 0;
	if (!stops)
		keys.c_cc[VSUSP] = _POSIX_VDISABLE;
	tcsetattr(STDIN_FILENO, TCSANOW, &keys);
	entered = 1;
	put(ENTER);
}

void terminal_leave(void)
{
	sigset_t output, old;

	if (!entered)
		return;
	entered = 0;
	/* One that is in the background by now would be stopped. */
	sigemptyset(&output);
	sigaddset(&output, SIGTTOU);
	sigprocmask(SIG_BLOCK, &output, &old);
	tcflow(STDOUT_FILENO, TCOON); /* after Ctrl-S nothing could be written */
	put(LEAVE);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

void terminal_left(void)
{
	entered = 0;
}

bool terminal_is_ours(void)
{
	pid_t foreground = tcgetpgrp(STDIN_FILENO); /* -1: this is not the terminal of our session */

	return foreground < 0 || foreground == getpgrp();
}

void terminal_size(size_t *columns, size_t *lines)
{
	struct winsize size = { 0 };

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*columns = size.ws_col ? size.ws_col : 80;
	*lines = size.ws_row ? size.ws_row : 24;
	*columns = *columns < COLUMNS_MAX ? *columns : COLUMNS_MAX;
	*lines = *lines < LINES_MAX ? *lines : LINES_MAX;
}

int terminal_write(const char *text, size_t bytes, struct err *e)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = write(STDOUT_FILENO, text + done, bytes - done);
		if (n < 0 && errno != EINTR)
			return err_sys(e, "cannot write");
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int terminal_draw(terminal_screen_fn write_screen, const void *view, struct err *e)
{
	size_t columns, lines, size = 0;
	AUTO_FREE char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return err_set(e, ENOMEM, "out of memory");
	terminal_size(&columns, &lines);
	write_screen(view, columns, lines, out);
	return fclose(out) ? err_set(e, ENOMEM, "out of memory") : terminal_write(text, size, e);
}
