/* SPDX-License-Identifier: MIT */
/*
 * How memattach has the live heap shown (--live): it executes memanalyze with
 *
 *   memanalyze --show-live VERSION ROOT FILES
 *
 * Descriptors: the standard ones are the terminal, VIEW_REQUEST_DUMP is the memory of the dump. ROOT and FILES are as
 * in symbol_request.h; 0 and "-": no names are wanted. First it gives up its rights (rights_drop_to_view in
 * common/sandbox/rights.h); where it cannot, it ends with REQUEST_NOT_DROPPED. The exit status is 0 if the user has
 * quit the view, or the session has ended. Anything else than these arguments ends memanalyze with
 * VIEW_REQUEST_UNKNOWN: it is of another version.
 */
#pragma once

#include "request_status.h"

#define VIEW_REQUEST_OPTION "--show-live"
#define VIEW_REQUEST_VERSION "1"
#define VIEW_REQUEST_UNKNOWN 64
#define VIEW_REQUEST_NO_NAMES "-"

enum { VIEW_REQUEST_DUMP = 3 };
