/* SPDX-License-Identifier: MIT */
/*
 * Finds the file of an image on this machine and opens it with libdwfl at bias 0, so that addresses are offsets from
 * the load bias. A file is believed only if its build-id is the recorded one: the file at the recorded path may have
 * been replaced by an upgrade, or be of another machine. Nothing is fetched from the network. For use in the jail only
 * (jail.h), where every open, also of the libraries, is one of a regular file.
 */
#ifndef MEMATTACH_IMAGE_FILE_H
#define MEMATTACH_IMAGE_FILE_H

#include <elfutils/libdwfl.h>

#include "images.h"

enum image_source {
	IMAGE_SOURCE_NONE,  /* no file, see reason */
	IMAGE_SOURCE_FILE,  /* the program file itself */
	IMAGE_SOURCE_DEBUG, /* only its separate debug file */
};

/* What is known of the file of an image; in the end by who asked for it. */
struct image_found {
	enum image_source source;
	const char *reason;      /* why the program file was not used, or why names may be missing, or NULL */
	bool incomplete;         /* names may be missing */
	uint64_t identity;       /* file_identity of the program file */
	uint64_t debug_identity; /* of the separate debug file, 0: there is none */
	bool settled;            /* it is known what files the answers come from, and they do not change just now */
};

/* The file that several debug files share (dwz -m), if the debug file has one. */
struct image_alt {
	char *path;        /* NULL: none was asked for */
	uint64_t identity; /* file_identity */
};

struct image_file {
	Dwfl *dwfl;
	Dwfl_Module *module; /* NULL: nothing was found */
	enum image_source source;
	const char *reason; /* why the program file was not used, or NULL */
	uint64_t identity;  /* file_identity of the program file */
	/* After image_file_settle. */
	uint64_t debug_identity; /* of the separate debug file that libdwfl will use, 0: there is none */
	bool own_lines;          /* the program file has debug information */
	char *debug_path;        /* of that debug file, when it was read */
	struct image_alt alt;    /* known after image_file_settle_alt */
	bool settled;            /* it is known what files the answers come from, and they do not change just now */
};

/* Where to look, besides the recorded path and /usr/lib/debug. */
struct image_search {
	const char *debug_path; /* NULL: no other place; an absolute path */
	int pid;                /* 0, or a process whose root directory may hold the files */
};

/* search must outlive file, and file must stay where it is. It is never closed: the process that opens it ends. */
void image_file_open(struct image_file *file, const struct image *image, const struct image_search *search);

/*
 * Finds out what the answers will depend on; to be called before any is asked for, by who keeps them. A program with
 * symbols of its own but without debug information is not settled, nor one with the latter only.
 */
void image_file_settle(struct image_file *file);
/* The same when answers were given, about the file that several debug files share. */
void image_file_settle_alt(struct image_file *file);

#endif
