/* SPDX-License-Identifier: MIT */
#include "cli/wanted.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "choose/child_search.h"
#include "choose/chosen.h"
#include "cli/census_command.h"
#include "cli/doctor.h"
#include "launch/launch.h"
#include "process/memory_room.h"
#include "host/say.h"
#include "run/steps/look_ahead.h"
#include "run/repeat.h"
#include "run/session_end.h"
#include "run/steps/session_file.h"
#include "run/reports/session_reports.h"
#include "run/session_run.h"
#include "run/take_out.h"
#include "run/trigger_wait.h"
#include "host/session_seed.h"
#include "launch/several.h"
#include "system/leftovers.h"
#include "system/system.h"

#define LISTED_MAX 40u

/* One session or many, now or later. */
static struct session_result profile(struct session *s)
{
	const struct session_options *o = &s->options;
	struct err e;

	int rc = o->trigger_count || o->every_ns ? look_ahead(o, &e) : 0;
	if (rc == 0 && o->trigger_count)
		rc = trigger_wait(s, &e);
	if (rc < 0) {
		session_end_complain(s, &e);
		return (struct session_result){ EXIT_NOT_ATTACHED, AFTER_NOTHING };
	}
	return o->every_ns ? (struct session_result){ repeat_sessions(s), AFTER_NOTHING } : session_run(s);
}

/* To the supervisor, before this process ends. */
static void tell_dump(struct session_share *share, const struct dump_file *file)
{
	memcpy(share->path, file->path, sizeof share->path);
	share->identity = dump_file_identity(file);
}

/* In this process. */
static struct session_result profile_one(const struct session_options *options)
{
	struct session session;

	memory_room_go_first();
	session_init(&session, options);
	struct session_result result = profile(&session);
	if (options->share && session.recording.file.result)
		tell_dump(options->share, &session.recording.file);
	session_done(&session);
	return result;
}

/* heap.html is heap.812.html of PID 812, heap.812.1.html of what it executes then: the form stays. */
static void name_reports(struct session_options *o, const struct several_member *member)
{
	static char paths[SESSION_REPORTS_MAX][PATH_MAX]; /* of this process */
	char number[40];

	int used = snprintf(number, sizeof number, ".%d", (int)o->pid);
	if (member->programs)
		snprintf(number + used, sizeof number - (size_t)used, ".%u", member->programs);
	for (unsigned i = 0; i < o->report_count; i++) {
		const char *path = o->reports[i], *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
		const bool named_by_beginning = !strncmp(name, "dhat.out", 8);
		const size_t stem = named_by_beginning || !*name ? strlen(path)
		                                                 : (size_t)(name - path) + 1 + strcspn(name + 1, ".");
		snprintf(paths[i], sizeof paths[i], "%.*s%s%s", (int)stem, path, number, path + stem);
		o->reports[i] = paths[i];
	}
}

/* In a process of its own, see several.h. */
static struct session_result profile_member(void *context, const struct several_member *member)
{
	const struct wanted *w = context;
	struct session_options options = w->options;

	options.pid = member->target->pid;
	options.start_ticks = member->target->start_ticks;
	options.among_several = true;
	options.launched &= member->ordinal == 0;
	options.found_later = member->found_later;
	options.seed = session_seed(session_seed(options.seed, member->ordinal), member->programs);
	name_reports(&options, member);
	if (w->options.launched && member->ordinal)
		close(options.ready);
	return profile_one(&options);
}

/* A program that could not be attached to must not wait for it any longer. */
static void close_ready(void *context)
{
	struct wanted *w = context;

	if (w->options.launched)
		close(w->options.ready);
	w->options.launched = false;
}

static int profile_several(struct wanted *w, const struct chosen_list *targets)
{
	const struct several_options options = { .children = w->selection.children,
		                                 .quiet = w->options.quiet,
		                                 .session = profile_member,
		                                 .context = w,
		                                 .first_ended = close_ready };

	return several_run(&options, targets);
}

/* In a process of its own, see system.h. */
static struct session_result profile_system_member(void *context, const struct system_member *member)
{
	const struct wanted *w = context;
	struct session_options options = w->options;

	options.pid = member->target->pid;
	options.start_ticks = member->target->start_ticks;
	options.among_several = options.found_later = true;
	options.share = member->share;
	options.duration_ns = 0; /* it is told */
	options.quiet |= !options.verbose;
	options.seed = session_seed(options.seed, member->ordinal);
	return profile_one(&options);
}

/* The same: what a session has left is taken out. */
static enum exit_status detach_member(void *context, const struct chosen *target)
{
	const struct wanted *w = context;
	struct session_options options = w->options;
	struct session session;

	options.pid = target->pid;
	options.start_ticks = target->start_ticks;
	options.duration_ns = 0;
	memory_room_go_first();
	session_init(&session, &options);
	enum exit_status status = take_out(&session);
	session_done(&session);
	return status;
}

static int profile_system(struct wanted *w)
{
	const struct session_options *o = &w->options;
	const struct system_options options = { .what = w->selection.what,
		                                .by = w->selection.by,
		                                .directory = o->output,
		                                .duration_ns = o->duration_ns,
		                                .max_bytes = o->max_bytes,
		                                .part = o->max_overhead,
		                                .quiet = o->quiet,
		                                .verbose = o->verbose,
		                                .session = profile_system_member,
		                                .detach = detach_member,
		                                .context = w };
	struct stat st;

	if (stat(o->output, &st) < 0 || !S_ISDIR(st.st_mode)) {
		say_error(0, "-o %s is no directory: with --system each process has a dump of its own", o->output);
		return EXIT_NOT_ATTACHED;
	}
	return system_run(&options);
}

static int detach_all(struct wanted *w)
{
	const struct leftovers_options options = { .what = w->selection.what,
		                                   .by = w->selection.by,
		                                   .quiet = w->options.quiet,
		                                   .detach = detach_member,
		                                   .context = w };

	return leftovers_take_out(&options);
}

/* One process, and those that it makes. */
static int profile_tree(struct wanted *w)
{
	struct chosen root;
	struct err e;

	if (!child_search_works()) {
		say_error(w->options.pid, "--children: this kernel does not list them (CONFIG_PROC_CHILDREN)");
		return EXIT_NOT_ATTACHED;
	}
	if (chosen_look(&root, w->options.pid, &e) < 0) {
		say_error(w->options.pid, "%s", e.text);
		return EXIT_NOT_ATTACHED;
	}
	return profile_several(w, &(struct chosen_list){ .list = &root, .count = 1 });
}

/* Several were found, and one was wanted. */
static int ask_which(const struct chosen_list *found, enum command command)
{
	say_error(0, "%zu processes fit; give the PID of one%s:", found->count,
	          command == COMMAND_PROFILE ? ", or --all" : "");
	chosen_print(found, LISTED_MAX, stderr);
	return EXIT_NOT_ATTACHED;
}

/* In a process of its own, see launch.h. */
static int profile_launched(void *context, pid_t pid, int ready)
{
	struct wanted *w = context;

	w->options.pid = pid;
	w->options.launched = true;
	w->options.ready = ready;
	return w->selection.children ? profile_tree(w) : (int)profile_one(&w->options).status;
}

/* What would keep it from being profiled, and can be told before. */
static int launch(struct wanted *w)
{
	const struct session_options *options = &w->options;
	struct err e;

	if (session_reports_check(options, &e) < 0 || session_file_check(options, &e) < 0) {
		say_error(0, "%s", e.text);
		return LAUNCH_FAILED;
	}
	return launch_run(w->selection.program, options->quiet, profile_launched, w);
}

static int run(struct wanted *w)
{
	struct session session;

	if (w->command == COMMAND_PROFILE)
		return w->selection.children ? profile_tree(w) : (int)profile_one(&w->options).status;
	memory_room_go_first();
	if (w->command == COMMAND_CENSUS)
		return census_command(&w->options);
	session_init(&session, &w->options);
	int status = w->command == COMMAND_DETACH ? (int)take_out(&session) : doctor_report(&session);
	session_done(&session);
	return status;
}

/* By name, cgroup or unit. */
static int run_chosen(struct wanted *w)
{
	struct chosen_list found;
	struct err e;
	int status;

	if (chosen_find(&found, w->selection.by, w->selection.what, &e) < 0) {
		say_error(0, "%s", e.text);
		return EXIT_NOT_ATTACHED;
	}
	if (found.count > 1 && !w->selection.all) {
		status = ask_which(&found, w->command);
	} else if (found.count > 1) {
		status = profile_several(w, &found);
	} else {
		w->options.pid = found.list->pid;
		w->options.start_ticks = found.list->start_ticks;
		status = run(w);
	}
	chosen_free(&found);
	return status;
}

int wanted_run(struct wanted *w)
{
	if (w->command == COMMAND_LAUNCH)
		return launch(w);
	if (w->selection.system)
		return profile_system(w);
	if (w->selection.all && w->command == COMMAND_DETACH)
		return detach_all(w);
	return w->selection.what ? run_chosen(w) : run(w);
}
