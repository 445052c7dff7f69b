/* SPDX-License-Identifier: MIT */
#ifndef MEMATTACH_TEST_PLUGIN_H
#define MEMATTACH_TEST_PLUGIN_H

#define PLUGIN_BLOCKS 200
#define PLUGIN_BYTES 5000

/* Allocates PLUGIN_BLOCKS blocks of PLUGIN_BYTES; 0, or -1 without memory. */
int plugin_keep(void);
/* Checks and frees them; returns the number of wrong bytes. */
int plugin_drop(void);

#endif
