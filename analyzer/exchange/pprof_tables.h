/* SPDX-License-Identifier: MIT */
/* The tables of a profile (report_pprof.h): locations are numbered as samples name them, all else when they are put. */
#pragma once

#include "exchange/gzip.h"
#include "exchange/profile.h"
#include "exchange/proto.h"

/* Fields of the message Profile. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_DROP_FRAMES = 7,
	PROFILE_TIME = 9,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14,
};

struct pprof {
	struct profile base; /* first: profile_put_sample is called with it */
	struct gzip gzip;
	struct proto message, part, packed;
};

/* Puts p->message into a field of the profile, and empties it. */
void pprof_put(struct pprof *p, unsigned field);
/* Mappings, locations, functions and strings: last of all. */
void pprof_put_tables(struct pprof *p);
