/* SPDX-License-Identifier: MIT */
/* A line of --doctor: a name, "" for a further line under the same one, and what is said of it. */
#pragma once

void doctor_fact(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Each line of text, the first under that name; before: what stands in front of each. */
void doctor_fact_lines(const char *name, const char *before, const char *text);

/* Of what --verbose adds: after an empty line. */
void doctor_fact_heading(const char *text);
