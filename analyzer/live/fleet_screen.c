/* SPDX-License-Identifier: MIT */
#include "live/fleet_screen.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "live/live_screen.h"

#define LINE 512
#define ERASE_LINE "\033[K"

static const char *signed_size(double bytes, char text[40])
{
	char size[SIZE_TEXT];

	if (isnan(bytes))
		return "-";
	snprintf(text, 40, "%s%s", bytes < 0 ? "-" : bytes > 0 ? "+" : "", size_format(fabs(bytes), size));
	return text;
}

/* What is live, with the larger half of its interval; of a state of the dump that is not the last one in parentheses.
 */
static void live_text(const struct fleet_process *p, char live[40], char margin[40])
{
	static const char *const marks[] = {
		[TRUST_LOWER_BOUND] = ">", [TRUST_UPPER_BOUND] = "<", [TRUST_UNKNOWN] = "?"
	};
	const char *mark = p->trust < sizeof marks / sizeof marks[0] && marks[p->trust] ? marks[p->trust] : "";
	char size[SIZE_TEXT];

	snprintf(live, 40, "%s", p->live_known ? "" : "...");
	margin[0] = 0;
	if (!p->live_known)
		return;
	snprintf(live, 40, "%s%s", mark, size_format(p->live.value, size));
	snprintf(margin, 40, "%s", size_format(fmax(p->live.high - p->live.value, p->live.value - p->live.low), size));
}

static void row_text(const struct fleet_process *p, bool chosen, char line[LINE])
{
	char grown[40], minute[40], live[40], margin[40];

	live_text(p, live, margin);
	snprintf(line, LINE, "%c%11s %11s %10s %9s %7d %s%s%s%s", chosen ? '>' : ' ', signed_size(p->grown, grown),
	         p->end == DUMP_END_RUNNING ? signed_size(p->minute, minute) : dump_end_name(p->end), live, margin,
	         p->pid, p->command, p->group[0] ? " (" : "", p->group, p->group[0] ? ")" : "");
}

static void put_titles(size_t columns, bool colour, FILE *out)
{
	char line[LINE];

	snprintf(line, sizeof line, " %11s %11s %10s %9s %7s %s", "GROWN", "PER MINUTE", "LIVE", "+-", "PID",
	         "PROCESS");
	fprintf(out, "%s%-*.*s%s" ERASE_LINE "\r\n", colour ? "\033[7m" : "", (int)columns, (int)columns, line,
	        colour ? "\033[0m" : "");
}

static void put_head(const struct fleet_frame *f, size_t columns, FILE *out)
{
	const struct fleet *fleet = f->fleet;
	char line[LINE], grown[40], private[SIZE_TEXT], ended[60] = "", more[60] = "", memory[120] = "";

	if (fleet->ended)
		snprintf(ended, sizeof ended, ", %zu ended", fleet->ended);
	if (fleet->left_out)
		snprintf(more, sizeof more, ", %zu are not read", fleet->left_out);
	if (fleet->private_bytes > 0)
		snprintf(memory, sizeof memory, "; private memory %s (%s)", size_format(fleet->private_bytes, private),
		         signed_size(fleet->grown, grown));
	snprintf(line, sizeof line, "%zu processes%s%s%s%s  %s", fleet->count, ended, more, memory,
	         f->choice.paused ? "  PAUSED" : "", f->directory);
	live_screen_line(line, columns, out);
	if (f->choice.typing)
		snprintf(line, sizeof line, "/%s_  only processes with this text; Enter keeps it, Esc clears",
		         f->choice.filter);
	else if (f->notice)
		snprintf(line, sizeof line, "%s", f->notice);
	else
		snprintf(line, sizeof line, "by %s%s%s; Enter opens one, s sorts, h help, q quit",
		         fleet_sort_name(f->sort), f->choice.filter[0] ? ", only /" : "", f->choice.filter);
	live_screen_line(line, columns, out);
}

static void put_help(size_t columns, size_t lines, FILE *out)
{
	static const char *const text[] = {
		"All processes that memattach --system profiles, once a second.",
		"",
		"  Enter       the heap of the process with >; q there comes back",
		"  s           sort by growth, growth of the last minute, live bytes, name",
		"  /           only processes with a text that is typed now; Esc: all",
		"  p, space    pause, go on",
		"  up, down, page up, page down, home, end, j, k, g, G    scroll",
		"  h, ?        this help",
		"  q           quit",
		"",
		"GROWN       private memory since the attach, by the kernel",
		"PER MINUTE  the same of the last minute; of a process that has ended, how",
		"LIVE        allocated since the attach and not freed: > at least, < at most,",
		"            ? not known, ... not read yet",
		"+-          the larger half of its interval",
		"PROCESS     and its container, or unit of systemd",
	};

	for (size_t i = 0; i < sizeof text / sizeof text[0] && i + 1 < lines; i++)
		live_screen_line(text[i], columns, out);
}

void fleet_screen_write(const struct fleet_frame *f, size_t columns, size_t lines, bool colour, FILE *out)
{
	size_t end = f->choice.first + fleet_screen_page(lines);
	char line[LINE];

	fputs("\033[H", out);
	if (f->choice.help) {
		put_help(columns, lines, out);
	} else {
		if (lines > FLEET_HEAD_LINES)
			put_head(f, columns, out);
		put_titles(columns, colour, out);
		for (size_t i = f->choice.first; i < end && i < f->row_count; i++) {
			row_text(&f->fleet->list[f->rows[i]], i == f->choice.chosen, line);
			live_screen_line(line, columns, out);
		}
	}
	fputs("\033[J", out);
}
