/* SPDX-License-Identifier: MIT */
/*
 * memattach --doctor: says what an attach to the process would meet, by reading /proc and the memory of the target.
 * Nothing is stopped, traced or written; the report goes to stdout, one fact per line, with
 * --verbose also what the facts are counted from (doctor_details.h).
 */
#pragma once

#include "session/session.h"

/* 0: as it looks now, an attach would succeed; 1: it would be refused, the last line says why. */
int doctor_report(struct session *s);
