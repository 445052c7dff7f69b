/* SPDX-License-Identifier: MIT */
/* How a memanalyze ends that memattach has executed and that could not give up its rights; or that was not executed. */
#pragma once

#define REQUEST_NOT_DROPPED 126
#define REQUEST_NOT_EXECUTED 127
