/* SPDX-License-Identifier: MIT */
/*
 * Finds the file of an image on this machine and opens it with libdwfl at bias 0, so that addresses are offsets from the
 * load bias. A file is believed only if its build-id is the recorded one: the file at the recorded path
 * may have been replaced by an upgrade, or be of another machine. Nothing is fetched from the network.
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

struct image_file {
	Dwfl *dwfl;
	Dwfl_Module *module; /* NULL: nothing was found */
	enum image_source source;
	const char *reason;  /* why the program file was not used, or NULL */
};

/* Where to look, besides the recorded path and /usr/lib/debug. */
struct image_search {
	const char *debug_path; /* NULL: no other place; an absolute path */
	int pid;                /* 0, or a process whose root directory may hold the files */
};

/* search must outlive file. */
void image_file_open(struct image_file *file, const struct image *image, const struct image_search *search);
void image_file_close(struct image_file *file);

#endif
