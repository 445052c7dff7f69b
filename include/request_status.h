/* SPDX-License-Identifier: MIT */
/* How a memanalyze ends that memattach has executed and that could not give up its rights; or that was not executed. */
#ifndef MEMATTACH_REQUEST_STATUS_H
#define MEMATTACH_REQUEST_STATUS_H

#define REQUEST_NOT_DROPPED 126
#define REQUEST_NOT_EXECUTED 127

#endif
