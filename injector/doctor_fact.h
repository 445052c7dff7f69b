/* SPDX-License-Identifier: MIT */
/* A line of --doctor: a name, "" for a further line under the same one, and what is said of it. */
#ifndef MEMATTACH_DOCTOR_FACT_H
#define MEMATTACH_DOCTOR_FACT_H

void fact(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
