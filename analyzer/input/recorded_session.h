/* SPDX-License-Identifier: MIT */
/* What is kept of a dump when it has been read: a report over a thousand dumps has a thousand of these. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dump/dump_reader.h"
#include "input/labels.h"
#include "input/memory/memory_growth.h"

/* A change of the rate. */
struct recorded_rate {
	double seconds; /* after the start */
	uint64_t old_bytes, new_bytes;
	uint32_t reason;        /* enum dump_rate_reason, or what a later memattach adds */
	uint64_t thinned_bytes; /* live samples of smaller rates were thinned to this one; 0: none */
	double overhead;
};

struct recorded_session {
	char *name; /* as the user called the dump */
	char command[64], program[256], host[64], cgroup[512], image[256];
	int32_t pid, end_detail;
	uint32_t state; /* enum dump_state */
	enum dump_end end;
	uint64_t id;
	uint64_t start_ns;    /* CLOCK_REALTIME, 0 unknown */
	uint64_t duration_ns; /* that was recorded; */
	bool no_end;          /* at least, because nobody has written the end */
	uint64_t copied_ns; /* CLOCK_REALTIME: the dump is a copy from then, of a session that had not ended; 0: it had,
	                       or unknown */
	bool is_copy;       /* of such a session, also where copied_ns is not known */
	bool rest_missing;  /* whose lease has passed since: there will be no other copy */
	uint64_t rate_bytes; /* at the end */
	uint64_t first_rate_bytes, least_rate_bytes, largest_rate_bytes;
	struct recorded_rate *rates; /* its changes, in their order */
	size_t rate_count;
	double max_overhead;                                /* the limit, as a part of the CPU time; 0: none */
	double cpu_seconds;                                 /* CPU time of the process, NAN unknown */
	double overhead;                                    /* what sampling took of it, NAN unknown; */
	double processor;                                   /* of one processor */
	double mapping_overhead;                            /* what following mappings took, whatever the rate is */
	uint64_t private_start_bytes, private_latest_bytes; /* 0 unknown */
	double shared_growth, files_growth;                 /* bytes of resident memory; NAN unknown */
	struct labels_look labels;                          /* of its blocks, if the report asks for them */
	struct memory_growth memory;                        /* what its resident memory is */
	bool samples_mmap;                                  /* anonymous mappings are sampled, too */
	bool frees_known;                                   /* those of blocks that were not seen allocated */
	uint64_t frees_unseen, frees_unseen_bytes;
	uint64_t counters[DUMP_COUNTER_COUNT];
	uint64_t skipped[DUMP_SKIP_COUNT];
	bool whole;         /* nothing of the file was left out */
	uint32_t groups[4]; /* the numbers of those that it is in, if the report has them */
};

/* Fills in all but what is only known after reading. -ENOMEM. */
int recorded_session_init(struct recorded_session *session, struct dump *dump, const char *name) WARN_UNUSED;
/* After the last record was read: what was left out. */
void recorded_session_finish(struct recorded_session *session, const struct dump *dump);
/* The name of a reason in JSON. */
const char *recorded_session_rate_reason(uint32_t reason);
void recorded_session_done(struct recorded_session *session);
