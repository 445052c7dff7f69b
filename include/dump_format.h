/* SPDX-License-Identifier: MIT */
/*
 * The dump: memory that the payload writes inside the target and memattach beside it, and copies of it in a file, which
 * memanalyze reads. man/memattach-dump.5 is the normative description.
 *
 * It is a header of DUMP_HEADER_BYTES, followed by regions. memattach alone adds regions: it allocates their memory,
 * writes the region's descriptor, then releases header.region_count. The payload touches nothing outside published
 * regions. The memory is sealed, so nothing that happens to a file or a disk raises SIGBUS in the target.
 *
 *   DUMP_REGION_LIVE         hash table of the sampled blocks that are live now
 *   DUMP_REGION_STACK_INDEX  hash table: hash of a stack -> its record
 *   DUMP_REGION_STACKS       arena of stack records (frames and cumulative sums), and of Python code records
 *   DUMP_REGION_HISTORY      ring of blocks of finished allocations
 *   DUMP_REGION_MODULES      arena of module records          (written by memattach)
 *   DUMP_REGION_THREADS      arena of thread records          (written by memattach)
 *   DUMP_REGION_NOTES        arena of texts: what is not seen (written by memattach)
 *   DUMP_REGION_RATES        arena of changes of the rate     (written by memattach)
 *   DUMP_REGION_PATHS        arena of texts: sys.path         (written by memattach)
 *   DUMP_REGION_JAVA         arena of Java methods and frames (written by memattach)
 *   DUMP_REGION_MEMORY       arena of what the resident memory was (written by memattach)
 *   DUMP_REGION_BLOCKS       arena of what blocks are that are live at the end (written by memattach)
 *   DUMP_REGION_USAGE        arena of how much was resident meanwhile (written by memattach)
 *   DUMP_REGION_SYMBOLS      names of the frames              (appended to the file when the session has ended)
 *
 * Hash tables grow by levels: when the youngest level fills up, memattach publishes another of at least twice the
 * capacity, and nothing is ever moved. A key can be in exactly one bucket of each level, so a lookup reads one cache
 * line per level: of keys, or of tags (LIVE).
 *
 * All integers are little-endian; all offsets are bytes from the start; times are cycle counter stamps, converted by
 * header.clock_start and header.clock_latest; doubles are IEEE 754 binary64. Words marked (atomic) may change while a
 * reader looks; the order of the stores is given with each.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dump_blocks.h"
#include "dump_memory.h"

#define DUMP_MAGIC "MEMATTCH" /* 8 bytes, no terminator */
#define DUMP_VERSION 5u
#define DUMP_HEADER_BYTES 16384u
#define DUMP_REGION_MAX 400u
#define DUMP_REGION_ALIGN 4096u

/* header.features: a reader must refuse a file with a bit that it does not know. */
#define DUMP_FEATURE_EXACT (1ull << 0) /* rate 1: every allocation is recorded, weight 1 */
#define DUMP_FEATURE_JAVA (1ull << 1)  /* frames of stacks may be those of Java code (DUMP_JAVA_FRAME_47) */
#define DUMP_FEATURE_FILES (1ull << 2) /* samples of some stacks are mappings of files, no memory (DUMP_STACK_FILE) */
#define DUMP_FEATURE_JAVA_63 (1ull << 3) /* the same, recorded in another form (DUMP_JAVA_FRAME_63) */
#define DUMP_FEATURES_KNOWN (DUMP_FEATURE_EXACT | DUMP_FEATURE_JAVA | DUMP_FEATURE_FILES | DUMP_FEATURE_JAVA_63)

/* header.session_flags: a reader may pass over a bit that it does not know. */
#define DUMP_SESSION_MMAP (1u << 0) /* mappings are sampled, too (--mmap) */

/* header.state (atomic), how far the session is and how it ended. */
enum dump_state {
	DUMP_STATE_PREPARING = 0,   /* memattach fills the header; nothing is recorded yet */
	DUMP_STATE_RUNNING = 1,     /* recording; believe it only until lease_realtime_ns */
	DUMP_STATE_DETACHED = 2,    /* memattach detached */
	DUMP_STATE_EXITED = 3,      /* the target ended by itself; end_detail is its exit status if known */
	DUMP_STATE_KILLED = 4,      /* the target was ended by signal end_detail */
	DUMP_STATE_ABANDONED = 5,   /* the lease ran out: the payload stopped recording by itself */
	DUMP_STATE_EXECED = 6,      /* the target called execve: its heap is gone */
};

/* A point that ties the cycle counter to the two clocks. */
struct dump_clock {
	uint64_t stamp;        /* cycle counter */
	uint64_t monotonic_ns; /* CLOCK_MONOTONIC at the same instant */
	uint64_t realtime_ns;  /* CLOCK_REALTIME at the same instant */
};

/* Named counters; each thread adds to one of DUMP_COUNTER_SHARDS rows, a reader adds the rows up. */
#define DUMP_COUNTER_LIST(X)                                                                          \
	X(samples_taken, "allocations that were sampled")                                            \
	X(samples_freed, "sampled allocations that were freed again")                                \
	X(lost_busy, "samples not taken: the hook was in a signal handler or had no state, or new_handler ran") \
	X(lost_live_full, "samples not kept: no room in the live table")                             \
	X(lost_stack_full, "samples whose stack could not be stored")                                \
	X(lost_history, "finished allocations dropped from the history")                             \
	X(stacks_truncated, "samples whose stack could not be walked to its end")                    \
	X(stacks_deep, "samples whose stack is deeper than is recorded")                             \
	X(frees_missed, "sampled blocks whose free was not seen (their address was given out again)") \
	X(filter_hits, "frees that had to look into the live table")                                 \
	X(frames_walked, "stack frames walked")                                                      \
	X(frames_fallback, "stack frames walked by frame pointer")                                   \
	X(slow_cycles, "cycles spent in taking samples and in looking for freed ones")              \
	X(children, "calls that were made in a forked child (not recorded)")                          \
	X(samples_thinned, "live samples given up to make room (those that are left stand for them)")    \
	X(lost_mappings, "mappings not followed: parts of them that go are not seen")

#define DUMP_COUNTER_ENUM_(name, text) DUMP_COUNTER_##name,
enum dump_counter { DUMP_COUNTER_LIST(DUMP_COUNTER_ENUM_) DUMP_COUNTER_COUNT };
#undef DUMP_COUNTER_ENUM_
#define DUMP_COUNTER_SHARDS 16u
#define DUMP_COUNTER_ROW 16u

enum dump_region_kind {
	DUMP_REGION_NONE = 0,
	DUMP_REGION_LIVE = 1,
	DUMP_REGION_STACK_INDEX = 2,
	DUMP_REGION_STACKS = 3,
	DUMP_REGION_HISTORY = 4,
	DUMP_REGION_MODULES = 5,
	DUMP_REGION_THREADS = 6,
	DUMP_REGION_NOTES = 7,
	DUMP_REGION_RATES = 8,
	DUMP_REGION_SYMBOLS = 9, /* in the file only, at most one */
	DUMP_REGION_PATHS = 10,
	DUMP_REGION_JAVA = 11,
	DUMP_REGION_MEMORY = 12,
	DUMP_REGION_BLOCKS = 13,
	DUMP_REGION_USAGE = 14,
};

struct dump_region {
	uint32_t kind;    /* enum dump_region_kind */
	uint32_t serial;  /* 0, 1, 2 … within its kind, oldest first */
	uint64_t offset;  /* multiple of DUMP_REGION_ALIGN */
	uint64_t bytes;   /* multiple of DUMP_REGION_ALIGN */
	uint64_t entries; /* hash tables: capacity in entries, a power of two >= 8; history: blocks; else 0 */
};

/* Code of CPython's evaluator: a native frame in it runs Python frames. */
struct dump_evaluator {
	uint64_t start;
	uint64_t bytes;        /* (atomic) 0: none; released last */
};
#define DUMP_EVALUATORS 4u

struct dump_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;         /* DUMP_HEADER_BYTES */
	uint64_t features;
	uint32_t state;                /* (atomic) enum dump_state, released last */
	int32_t end_detail;
	uint64_t max_bytes;            /* the file never grows beyond */
	uint64_t rate_bytes;           /* (atomic) mean bytes between two samples, now: may change at any time */
	uint64_t first_rate_bytes;     /* rate at the start of the session */
	int32_t pid;                   /* target, in memattach's pid namespace */
	int32_t injector_pid;
	uint64_t target_start_ticks;   /* field 22 of /proc/PID/stat */
	uint64_t injector_start_ticks;
	char command[64];              /* name of the target, NUL-terminated */
	char program[256];             /* path of the target's program, NUL-terminated, possibly cut */
	char host[64];
	struct dump_clock clock_start; /* when recording began */
	struct dump_clock clock_latest;/* last renewal of the lease, or the end (atomic, by lease_sequence) */
	uint32_t lease_sequence;       /* (atomic) odd while clock_latest changes */
	uint32_t region_count;         /* (atomic) released after the descriptors */
	uint64_t lease_stamp;          /* (atomic) recording stops when the counter is past it; 0: none; 1: detached */
	uint64_t lease_realtime_ns;    /* the same instant, for readers */
	uint64_t seed;                 /* of the random numbers, 0: from the kernel */
	uint64_t session_id;           /* random, the same in the payload's session block */
	uint64_t private_start_bytes;  /* anonymous memory of the target at attach (RssAnon + VmSwap), 0 unknown */
	uint64_t private_latest_bytes; /* the same at the last look */
	uint32_t unknown_stack;        /* stack reference of the record with no frames, for stacks that had no room */
	uint32_t max_overhead_ppm;     /* limit of the cost, in millionths of the CPU time, or DUMP_LOAD_MIN; 0: none */
	uint64_t cpu_ns;               /* CPU time of the target since the start of the session, at the last look */
	uint64_t cost_ns;              /* how much of that went into sampling, as memattach reckons */
	uint32_t thinnings;            /* (atomic) changes of the rate that thin; released before anything is removed */
	uint32_t python_version;       /* (atomic) of the CPython that is in the stacks, as Py_Version; 0: none is */
	struct dump_evaluator evaluators[DUMP_EVALUATORS];
	uint64_t shared_start_bytes;   /* resident shared memory of the target before the attach (RssShmem) */
	uint64_t shared_end_bytes;     /* the same after the detach: in between the dump itself is part of it */
	uint64_t files_start_bytes;    /* resident pages of files before the attach (RssFile); 0: both unknown */
	uint64_t files_end_bytes;      /* the same after the detach; 0: both unknown */
	uint32_t session_flags;        /* DUMP_SESSION_… */
	uint32_t java_version;         /* of the HotSpot that is in the stacks, as 17; 0: none is */

	_Alignas(64) uint64_t history_next; /* (atomic) number of history blocks ever handed out */
	/*
	 * (atomic) Frees of blocks that were not seen allocated, and the bytes of those whose size the allocator tells.
	 * Counted only where every free is looked at (rate 1 without a limit for the cost); mean that only as long as
	 * the rate stays 1 and nothing is lost.
	 */
	uint64_t frees_unseen;
	uint64_t frees_unseen_bytes;
	uint64_t java_age;     /* (atomic) 0 to 7 or 3: of frames of Java's interpreter from now on, in low bits */
	uint64_t java_behind;  /* (atomic) 1: names of frames of the interpreter may be out of date */
	uint64_t mapping_cycles; /* (atomic) spent in following mappings, whatever the rate is */
	uint64_t hot_reserved_[2];
	_Alignas(64) uint64_t counters[DUMP_COUNTER_SHARDS][DUMP_COUNTER_ROW]; /* (atomic) */

	struct dump_region regions[DUMP_REGION_MAX];
	char cgroup[512];              /* path of the target's cgroup at the attach, NUL-terminated, possibly cut */
	char image[256];               /* name of the image of its container; "" not known, and in older dumps */
};

/*
 * A region of kind LIVE: a tag for each entry (a byte, atomic), then from the next multiple of DUMP_RECORDS_ALIGN bytes
 * on the records (struct dump_live_record), DUMP_BUCKET of them in a bucket. Tags are for the payload's lookups, which
 * seldom have to look at a record in vain; readers need none. A tag is 0 unless the record is complete, and where its
 * block is about to be freed. The first word of a record is its key (atomic):
 *     0              free
 *     1              a record is being written or taken away
 *     bit 63 set     free, too: memattach has given the sample at that address (the other bits) up; the target's filter
 *                    of frees knows it still
 *     other          the record is complete; the key is its address
 * Insert: key 0 (or one with bit 63) -> 1, write the record, release key = address. Remove: key address -> 1, copy the
 * record to the history, release key = 0.
 */
#define DUMP_BUCKET 8u
#define DUMP_KEY_FREE 0u
#define DUMP_KEY_BUSY 1u
#define DUMP_KEY_GIVEN_UP (1ull << 63)
#define DUMP_KEY_IS_FREE(key) ((key) == DUMP_KEY_FREE || ((key) & DUMP_KEY_GIVEN_UP))

struct dump_live_record {
	uint64_t address;    /* (atomic) the key */
	uint64_t size;       /* bytes requested */
	uint64_t usable;     /* bytes that the allocator gave, 0 unknown; of a part the size of the whole mapping */
	uint64_t stamp;      /* time of the allocation */
	uint32_t stack;      /* stack reference, see dump_stack */
	uint32_t rate_bytes; /* R at the time; 1: this sample has weight 1 */
	uint32_t tid;        /* thread that allocated, as the C library knows it, 0 unknown */
	uint16_t hook;       /* enum hook_id */
	uint16_t flags;      /* DUMP_LIVE_RESIDENCY(), DUMP_LIVE_PART */
};
/*
 * What is left of a mapping that was sampled, when a part of it has gone or was replaced. All parts of one have its
 * stamp, stack and thread, and were sampled together, with the p of the whole mapping, whose size is in usable: p is
 * that of DUMP_SAMPLED_BYTES().
 */
#define DUMP_LIVE_PART (1u << 14)
#define DUMP_HISTORY_PART 2u
#define DUMP_SAMPLED_BYTES(record, part) \
	((record)->flags & (part) && (record)->usable > (record)->size ? (record)->usable : (record)->size)

#define DUMP_RECORDS_ALIGN 64u
#define DUMP_LIVE_RECORDS_AT(entries) (((entries) + DUMP_RECORDS_ALIGN - 1) & ~(uint64_t)(DUMP_RECORDS_ALIGN - 1))
/* Bytes of a region of so many entries: no more than 2^56. */
#define DUMP_LIVE_BYTES(entries) (DUMP_LIVE_RECORDS_AT(entries) + (entries) * sizeof(struct dump_live_record))
#define DUMP_LIVE_ENTRY_BYTES (1 + sizeof(struct dump_live_record)) /* and what is rounded up: any page has it */

/*
 * A region of kind STACK_INDEX: entries words (uint64_t, atomic), 0: free, else the reference of a stack in the low
 * half and the low half of its hash in the high one. Words are grouped in buckets as well. A reference is the file
 * offset of the record divided by 16. The record is complete before the word is released.
 */
#define DUMP_STACK_ALIGN 16u
#define DUMP_BYTES_MAX ((uint64_t)UINT32_MAX * DUMP_STACK_ALIGN) /* no reference reaches further */
#define DUMP_INDEX_ENTRY_BYTES sizeof(uint64_t)
#define DUMP_INDEX_WORD(hash, reference) ((hash) << 32 | (reference))
#define DUMP_INDEX_REFERENCE(word) ((uint32_t)(word))
#define DUMP_INDEX_CHECK(word) ((uint32_t)((word) >> 32))

/* A region of kind STACKS, MODULES, THREADS, NOTES, RATES, PATHS, JAVA, MEMORY, BLOCKS or USAGE starts with this, then
 * records follow, each aligned to 16. */
struct dump_arena {
	uint64_t used; /* (atomic) bytes handed out after this header; may exceed the room: then the arena is full */
	uint64_t reserved_[7];
};

/* dump_stack.flags: why the walk ended before the outermost frame. */
#define DUMP_STACK_TRUNCATED 1u /* no rule for a frame, or a frame that does not fit the stack */
#define DUMP_STACK_DEEP 2u      /* more than DUMP_FRAMES_MAX frames */
/* … and why the list of Python frames ends before the outermost one. */
#define DUMP_STACK_PYTHON_TRUNCATED 4u /* the chain is not as it should be */
#define DUMP_STACK_PYTHON_DEEP 8u      /* more than DUMP_PYTHON_FRAMES_MAX */
#define DUMP_STACK_CODE 16u            /* this is no stack but a dump_code */
/* Where the native frames are in the evaluator more often than the Python frames tell, those of another interpreter are
 * not in the list, which the thread has entered further in, or whose code has entered the one of the list. */
#define DUMP_STACK_PYTHON_INNER 32u
#define DUMP_STACK_PYTHON_OUTER 64u
/*
 * Not why the walk ended: the samples of this stack are mappings of files, with DUMP_FEATURE_FILES. Their bytes are
 * address space, which the file backs, and must not be added to memory. Where the same calls make both, they are two
 * stacks, with a hash each.
 */
#define DUMP_STACK_FILE 128u
/* flags: the upper half is the number of Python frames, which follow the native ones in frames[]. */
#define DUMP_STACK_PYTHON_COUNT(flags) ((flags) >> 16)
#define DUMP_STACK_PYTHON_FLAGS(count) ((uint32_t)(count) << 16)
#define DUMP_FRAMES_MAX 128u
#define DUMP_LOAD_MIN 0.2 /* processors: the least CPU time that a limit for the cost is a part of */
#define DUMP_PYTHON_FRAMES_MAX 128u

/*
 * A stack, interned once. frames[0] is the caller of the allocation function; each is a return address (look up address
 * - 1) in its low 48 bits and the id of its module in the upper 16 (0: in no known module), or one of Java code
 * (DUMP_JAVA_FRAME_47). The sums are over all
 * samples taken with this stack since the session began, w = 1 / p, p = 1 - exp(-S/R) (S counted as 1 if 0; p = 1 if R
 * is 1). What was allocated is estimated by taken + excess: a sample of weight 1 adds to integers alone. Samples that
 * were freed again are those that are neither in LIVE regions nor unkept. A mapping is one sample, of however many
 * parts: as long as a part of it has or had a record, it is not unkept.
 */
struct dump_stack {
	uint64_t hash;            /* not 0 */
	uint32_t frame_count;
	uint32_t flags;
	uint64_t taken_count;     /* (atomic) samples */
	uint64_t taken_bytes;     /* (atomic) sum of S, modulo 2^64 */
	double excess_count;      /* (atomic) sum of w - 1 */
	double excess_bytes;      /* (atomic) sum of S (w - 1) */
	double variance_count;    /* (atomic) sum of (1 - p) / p^2 */
	double variance_bytes;    /* (atomic) sum of S^2 (1 - p) / p^2 */
	uint32_t unkept;          /* (atomic) samples that had no room in the live table, or were given up for room */
	uint32_t unkept_parts;    /* (atomic) the same of parts of mappings (DUMP_LIVE_PART) */
	uint64_t frames[];
};
/* Bytes of the record of a stack with so many frames of both kinds: whole cache lines, so that its sums, to which all
 * threads add, are in one. */
#define DUMP_STACK_BYTES(frames) ((sizeof(struct dump_stack) + (frames) * sizeof(uint64_t) + 63) & ~(uint64_t)63)
/*
 * A Python frame: the reference of its dump_code in the upper half, 0 if that had no room; bit 31, the evaluator was
 * entered for this frame, so the next outer Python frame belongs to another native frame of the evaluator; and the
 * offset of its instruction from the start of the code in bytes, + 2: below 0, none has run yet. Python frames are
 * innermost first, as the native ones.
 */
#define DUMP_PYTHON_FRAME(reference, entry, offset) \
	((uint64_t)(reference) << 32 | (uint64_t)!!(entry) << 31 | (uint32_t)((offset) + 2))
#define DUMP_PYTHON_REFERENCE(f) ((uint32_t)((f) >> 32))
#define DUMP_PYTHON_ENTRY(f) ((uint32_t)(f) >> 31)
#define DUMP_PYTHON_OFFSET(f) ((int32_t)((uint32_t)(f) & 0x7fffffffu) - 2)
#define DUMP_FRAME_ADDRESS(f) ((f) & 0xffffffffffffull)
#define DUMP_FRAME_MODULE(f) ((uint32_t)((f) >> 48))
/*
 * A frame of Java code of HotSpot, among the native ones, is of an address and a tag of 16 bits. The address is either
 * in its code cache: a return address in a piece of code, and the tag is the low bits of its compile_id; or a Method
 * that the interpreter runs, and the tag is the low bits of the address of the bytecode: no method has more than 65535
 * bytes of these. A Method is a multiple of 8; in its low bits is header.java_age, which memattach changes where it
 * could not prove what the same Method was when it was first recorded. What it is called is in the region JAVA, under
 * the same word, or nobody knows it.
 *
 * With DUMP_FEATURE_JAVA such a frame has bit 47, which no address has where it is recorded so (x86-64); the tag is
 * above, the address, with the age in bits 0 to 2, below. With DUMP_FEATURE_JAVA_63, where addresses have 48 bits
 * (aarch64), it has bit 63, which no id of a module has there: they are below 32768. The tag is below that, and the
 * address, an even one, divided by 2 in the low 47 bits; the age is in bits 1 and 2 of it. Without either feature no
 * frame is one of Java code; with both DUMP_FEATURE_JAVA counts.
 */
#define DUMP_JAVA_MARK_47 (1ull << 47)
#define DUMP_JAVA_MARK_63 (1ull << 63)
#define DUMP_JAVA_MARK(features)                                                                                       \
	((features)&DUMP_FEATURE_JAVA ? DUMP_JAVA_MARK_47 : (features)&DUMP_FEATURE_JAVA_63 ? DUMP_JAVA_MARK_63 : 0)
#define DUMP_JAVA_FRAME_47(address, tag) ((uint64_t)(uint16_t)(tag) << 48 | DUMP_JAVA_MARK_47 | (address))
#define DUMP_JAVA_FRAME_63(address, tag) (DUMP_JAVA_MARK_63 | (uint64_t)(uint16_t)(tag) << 47 | (address) >> 1)

/*
 * A code object of CPython, copied while a frame held it, stored and found by its hash as a stack is: the hash is of
 * its address and of what it holds, so that another object which is later given its address has another record. data
 * is the name, the file, and the table of lines, one after the other, as they are in the interpreter: characters of
 * name_width and file_width bytes (Latin-1, UCS-2 or UCS-4), table as co_lnotab or co_linetable has it.
 */
struct dump_code {
	uint64_t hash;         /* not 0 */
	uint32_t data_bytes;
	uint32_t flags;        /* DUMP_STACK_CODE | DUMP_CODE_… */
	uint64_t address;      /* of the code object */
	uint32_t code_bytes;   /* of its instructions */
	int32_t first_line;
	uint32_t table_bytes;
	uint16_t name_bytes;
	uint16_t file_bytes;
	uint8_t name_width;    /* 1, 2 or 4 */
	uint8_t file_width;
	uint8_t lines;         /* enum dump_lines */
	uint8_t reserved8_[5];
	uint64_t reserved_[3];
	uint8_t data[];
};
#define DUMP_CODE_NAME_CUT (1u << 5)  /* only the first characters are there */
#define DUMP_CODE_FILE_CUT (1u << 6)
#define DUMP_CODE_TABLE_CUT (1u << 7) /* the table of lines is too long: none of it is there */
#define DUMP_CODE_NAME_MAX 960u       /* bytes */
#define DUMP_CODE_FILE_MAX 4000u
#define DUMP_CODE_TABLE_MAX 65536u
#define DUMP_CODE_BYTES(data_bytes) ((sizeof(struct dump_code) + (data_bytes) + 63) & ~(uint64_t)63)
/* How the table tells which instruction is on which line. */
enum dump_lines {
	DUMP_LINES_NONE = 0,
	DUMP_LINES_LNOTAB = 1,    /* CPython 3.9: co_lnotab */
	DUMP_LINES_LINETABLE = 2, /* 3.10: co_linetable */
	DUMP_LINES_LOCATIONS = 3, /* 3.11 and later: co_linetable */
};

/* A region of kind HISTORY: blocks of this shape, each owned by one thread at a time. Logical block k (counted by
 * header.history_next) is in physical block k mod (all blocks of all history regions at that time). */
#define DUMP_HISTORY_BLOCK_BYTES 4096u
#define DUMP_HISTORY_RECORDS 83u
struct dump_history_record {
	uint64_t size;
	uint64_t usable;
	uint64_t allocated_stamp;
	uint64_t freed_stamp;
	uint32_t stack;
	uint32_t rate_bytes;
	uint32_t tid;         /* thread that allocated */
	uint16_t hook;        /* enum hook_id of the allocation */
	uint16_t flags;
};
#define DUMP_HISTORY_FREE_MISSED 1u /* freed_stamp is when the address was given out again */
/* DUMP_HISTORY_PART is 2: see DUMP_LIVE_PART. */
struct dump_history_block {
	uint64_t sequence;    /* k + 1; 0: never used; released before the first record */
	uint32_t used;        /* (atomic) records that are complete */
	uint32_t reserved_[13];
	struct dump_history_record records[DUMP_HISTORY_RECORDS];
	uint64_t padding_[6];
};

/* A module of the target. The strings follow: path, NUL, then nothing. bytes covers both, rounded up to 16. */
#define DUMP_BUILD_ID_MAX 32u
struct dump_module {
	uint32_t bytes;          /* of this record; 0 ends the arena; released last */
	uint32_t id;             /* as in the frames; 1 … 65535, with DUMP_FEATURE_JAVA_63 32767 */
	uint64_t start;          /* lowest mapped address */
	uint64_t end;            /* after the highest */
	uint64_t bias;           /* load bias: address = bias + p_vaddr */
	uint64_t loaded_stamp;   /* when it was first seen */
	uint64_t unloaded_stamp; /* (atomic) when it was found gone, 0: still there */
	uint32_t unwind_rows;    /* rows in its unwind table, 0: none */
	uint32_t got_entries;    /* GOT entries patched in it, and functions of it hooked at their entries */
	uint32_t flags;
	uint32_t build_id_bytes; /* 0 … DUMP_BUILD_ID_MAX */
	uint8_t build_id[DUMP_BUILD_ID_MAX];
	char path[];
};
#define DUMP_MODULE_MAIN 1u     /* the program itself */
#define DUMP_MODULE_ALLOCATOR 2u/* defines the malloc that others are bound to */
#define DUMP_MODULE_VDSO 4u

/* The name of a thread. A later record of the same tid replaces it; a thread that was short-lived may have none. */
struct dump_thread {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint32_t tid;           /* as in the samples: in the pid namespace of the target */
	char name[16];
};

/* A sentence about what this session does not see. */
struct dump_note {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint32_t kind;          /* enum dump_note_kind */
	char text[];            /* NUL-terminated UTF-8 */
};
enum dump_note_kind {
	DUMP_NOTE_NOT_PATCHED = 1, /* a module whose calls are not seen */
	DUMP_NOTE_NO_UNWIND = 2,   /* a module without unwind table */
	DUMP_NOTE_STATIC = 3,      /* an allocator inside a module */
	DUMP_NOTE_FULL = 4,        /* recording lost room: disk full, size limit */
	DUMP_NOTE_OTHER = 5,
	DUMP_NOTE_HOOKS_LOST = 6,  /* the program has undone hooks: what came after is not seen */
};

/*
 * A change of the rate. Samples carry their own rate: from the change on, each thread draws the next interval with the
 * new one, so for a time there are samples of both.
 */
struct dump_rate_change {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint32_t reason;        /* enum dump_rate_reason */
	uint64_t stamp;         /* when */
	uint64_t old_bytes;
	uint64_t new_bytes;
	uint32_t overhead_ppm;  /* what sampling cost then, as max_overhead_ppm */
	uint32_t reserved_;
	uint64_t thinned_bytes; /* samples of smaller rates, born and not freed before, were thinned to this; 0: none */
};
enum dump_rate_reason {
	DUMP_RATE_COSTLY = 1, /* sampling cost more than max_overhead_ppm */
	DUMP_RATE_CHEAP = 2,  /* it cost much less: back towards first_rate_bytes */
	DUMP_RATE_FULL = 3,   /* the live table could not grow */
};

/*
 * An entry that sys.path had in one of the interpreters, at the attach or later, as it was written there: each once, in
 * no order that matters. One that is no absolute path follows a second time, behind the directory that the target
 * worked in then; "" is that directory. It may be no directory: an archive, or anything else.
 */
struct dump_path {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint32_t reserved_;
	char text[];            /* NUL-terminated UTF-8 */
};
#define DUMP_PATHS_MAX 512u
#define DUMP_PATHS_BYTES_MAX (128u << 10) /* of all texts, each with its NUL */

/*
 * A region of kind JAVA: methods of Java, and frames that are in them. Names were read and proved by memattach while
 * the JVM had them. A frame comes behind the methods that it names, each but once.
 */
enum dump_java_kind {
	DUMP_JAVA_METHOD = 1,
	DUMP_JAVA_CALLS = 2,
};
struct dump_java_method {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint16_t kind;          /* DUMP_JAVA_METHOD */
	uint16_t name_bytes;    /* of the name, with its NUL */
	uint32_t id;            /* 1, 2, 3 … */
	uint32_t flags;
	char text[];            /* name, "java.util.zip.Deflater.init"; file, "Deflater.java" or "": NUL-terminated */
};
#define DUMP_JAVA_STUB 1u       /* no method but code of HotSpot's own, as HotSpot calls it */
struct dump_java_call {
	uint32_t method;        /* id */
	int32_t line;           /* 0 not known */
};
/* A frame as in the stacks, and its calls, innermost first: all but the last are inlined into the next one. */
struct dump_java_calls {
	uint32_t bytes;         /* of this record, released last; 0 ends the arena */
	uint16_t kind;          /* DUMP_JAVA_CALLS */
	uint16_t count;         /* 1 … DUMP_JAVA_DEPTH_MAX */
	uint64_t frame;
	uint32_t gone;          /* (atomic) not 0: the method is gone, another may have this frame: it has no name */
	uint32_t flags;
	struct dump_java_call calls[];
};
/* A Method that the interpreter runs: who reads what was recorded after memattach had died does not know which. */
#define DUMP_JAVA_INTERPRETED 1u
#define DUMP_JAVA_DEPTH_MAX 128u
#define DUMP_JAVA_TEXT_MAX 1024u /* of name and file, with both NUL */
#define DUMP_JAVA_METHODS_MAX (1u << 18)
#define DUMP_JAVA_FRAMES_MAX (1u << 18)

/*
 * A region of kind SYMBOLS: what the frames of the stacks of this dump are called, so that a report needs none of the
 * files that the target had. The region is appended to the last copy of the dump: its bytes first, then its descriptor,
 * then region_count. The structure below is followed by place_count places, ascending by frame; module_count modules;
 * location_count locations, each of one place; string_bytes bytes of strings, each NUL-terminated. A string is named by
 * its offset among them, or is DUMP_SYMBOLS_NONE.
 */
#define DUMP_SYMBOLS_BYTES_MAX (64ull << 20)
#define DUMP_SYMBOLS_DEPTH_MAX 64u
#define DUMP_SYMBOLS_STRING_MAX 65536u /* with its NUL */
#define DUMP_SYMBOLS_NONE UINT32_MAX
struct dump_symbols {
	uint64_t bytes;          /* of this and what follows; the region is rounded up */
	uint32_t flags;
	uint32_t place_count;
	uint32_t module_count;
	uint32_t location_count;
	uint32_t string_bytes;
	uint32_t reserved_;
};
/* There are frames that had no room or no time; others are not in the list because nothing is known of them. */
#define DUMP_SYMBOLS_CUT 1u

/* A frame as in the stacks, and its calls, innermost first: all but the last are inlined into the next one. */
struct dump_symbol_place {
	uint64_t frame;
	uint32_t first;          /* location */
	uint16_t count;          /* 1 … DUMP_SYMBOLS_DEPTH_MAX */
	uint16_t flags;
};
#define DUMP_SYMBOL_ALLOCATOR 1u /* inside one of the functions that are hooked */

/* What was found of a module that has places. */
struct dump_symbol_module {
	uint32_t id;             /* as in the frames */
	uint32_t reason;         /* string: why there is nothing better, or NONE */
	uint16_t source;         /* enum dump_symbol_source */
	uint16_t flags;
};
#define DUMP_SYMBOL_INCOMPLETE 1u /* names may be missing */
#define DUMP_SYMBOL_LINES 2u      /* there was debug information */
enum dump_symbol_source {
	DUMP_SYMBOL_SOURCE_NONE = 0,
	DUMP_SYMBOL_SOURCE_FILE = 1,  /* the program file */
	DUMP_SYMBOL_SOURCE_DEBUG = 2, /* its debug file only */
};

struct dump_symbol_location {
	uint32_t function;       /* string: as people write it */
	uint32_t file;           /* string */
	int32_t line;            /* 0 unknown */
};

#define DUMP_ASSERT_(c, text) _Static_assert(c, text)
DUMP_ASSERT_(sizeof(struct dump_region) == 32, "dump_region");
DUMP_ASSERT_(sizeof(struct dump_live_record) == 48, "dump_live_record");
DUMP_ASSERT_(sizeof(struct dump_arena) == 64, "dump_arena");
DUMP_ASSERT_(sizeof(struct dump_stack) == 72, "dump_stack");
DUMP_ASSERT_(sizeof(struct dump_code) == sizeof(struct dump_stack), "dump_code");
DUMP_ASSERT_(offsetof(struct dump_code, flags) == offsetof(struct dump_stack, flags), "dump_code");
DUMP_ASSERT_(sizeof(struct dump_history_record) == 48, "dump_history_record");
DUMP_ASSERT_(sizeof(struct dump_history_block) == DUMP_HISTORY_BLOCK_BYTES, "dump_history_block");
DUMP_ASSERT_(sizeof(struct dump_module) == 96, "dump_module");
DUMP_ASSERT_(sizeof(struct dump_thread) == 24, "dump_thread");
DUMP_ASSERT_(sizeof(struct dump_rate_change) == 48, "dump_rate_change");
DUMP_ASSERT_(sizeof(struct dump_path) == 8, "dump_path");
DUMP_ASSERT_(sizeof(struct dump_java_method) == 16, "dump_java_method");
DUMP_ASSERT_(sizeof(struct dump_java_calls) == 24, "dump_java_calls");
DUMP_ASSERT_(sizeof(struct dump_symbols) == 32, "dump_symbols");
DUMP_ASSERT_(sizeof(struct dump_symbol_place) == 16, "dump_symbol_place");
DUMP_ASSERT_(sizeof(struct dump_symbol_module) == 12, "dump_symbol_module");
DUMP_ASSERT_(sizeof(struct dump_symbol_location) == 12, "dump_symbol_location");
DUMP_ASSERT_(sizeof(struct dump_header) <= DUMP_HEADER_BYTES, "dump_header");
DUMP_ASSERT_(DUMP_COUNTER_COUNT <= DUMP_COUNTER_ROW, "dump counters");
