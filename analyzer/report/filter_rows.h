/* SPDX-License-Identifier: MIT */
/* Applies what a report's filter says of stacks to its rows; what it says of samples collect.c has done. */
#pragma once

#include "report/report.h"

/* Drops rows and takes out frames; rows that are equal then become one. -ENOMEM. */
int filter_rows(struct report *report) WARN_UNUSED;
