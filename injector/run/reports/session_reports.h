/* SPDX-License-Identifier: MIT */
/*
 * The reports of --report. Their files are opened before the target is touched, so that what cannot be written is known
 * then, and take their names when they are whole (output_file.h); report_child.h writes them after the session.
 */
#pragma once

#include "session/session.h"

/* Before there is a target: do their names say a form? -EINVAL and others. */
int session_reports_check(const struct session_options *options, struct err *e) WARN_UNUSED;
/* After symbol_sources_open. -errno: one cannot be written, or its name says no form. */
int session_reports_open(struct session *s, struct err *e) WARN_UNUSED;
/* When the dump is whole and has its symbols. -errno: at least one could not be written, which is said. */
int session_reports_write(struct session *s) WARN_UNUSED;
