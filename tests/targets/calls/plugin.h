/* SPDX-License-Identifier: MIT */
#pragma once

#define PLUGIN_BLOCKS 200
#define PLUGIN_BYTES 5000

/* Allocates PLUGIN_BLOCKS blocks of PLUGIN_BYTES; 0, or -1 without memory. */
int plugin_keep(void);
/* Checks and frees them; returns the number of wrong bytes. */
int plugin_drop(void);
