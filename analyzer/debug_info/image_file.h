/* SPDX-License-Identifier: MIT */
/*
 * Finds the file of an image on this machine and opens it with libdwfl at bias 0, so that addresses are offsets from
 * the load bias. A file is believed only if its build-id is the recorded one: the file at the recorded path may have
 * been replaced by an upgrade, or be of another machine. Nothing is fetched from the network. For use in the jail only
 * (jail.h), where every open, also of the libraries, is one of a regular file.
 */
#pragma once

#include <elfutils/libdwfl.h>

#include "input/images.h"
#include "debug_info/jail.h"

enum image_source {
	IMAGE_SOURCE_NONE,  /* no file, see reason */
	IMAGE_SOURCE_FILE,  /* the program file itself */
	IMAGE_SOURCE_DEBUG, /* only its separate debug file */
};

/* What is known of the file of an image; in the end by who asked for it. */
struct image_found {
	enum image_source source;
	const char *reason; /* why the program file was not used, or why names may be missing, or NULL */
	bool incomplete;    /* names may be missing */
};

struct image_search;

struct image_file {
	const struct image *image;
	const struct image_search *search;
	Dwfl *dwfl;
	Dwfl_Module *module; /* NULL: nothing was found */
	enum image_source source;
	const char *reason; /* why the program file was not used, or NULL */
};

/* Where to look, besides the root of the target, the recorded path and /usr/lib/debug. */
struct image_search {
	/* NULL: no other place; an absolute path, not resolved: /proc/PID/root must stay what it is. */
	const char *debug_path;
	const struct debug_server *server; /* NULL: none is asked */
	const char *fetched;               /* the path of the debug file that the server had of this image, or NULL */
	struct jail_files files;           /* those of images (images.h), and a root that images may name */
	const struct given_files *given;   /* whose files are those, for the live view; or NULL */
};

/* image and search must outlive file, and file must stay where it is. It is never closed: the process that opens it
 * ends. */
void image_file_open(struct image_file *file, const struct image *image, const struct image_search *search);
/* Whether there is debug information, of whatever file: reads it. */
bool image_file_has_lines(const struct image_file *file);
