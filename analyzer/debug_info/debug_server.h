/* SPDX-License-Identifier: MIT */
/*
 * Debug files from the servers of DEBUGINFOD_URLS, by elfutils' own client, libdebuginfod, which is loaded when it is
 * asked for the first time: so without --debuginfod there is no code in memanalyze that makes a connection. The client
 * keeps files in its own cache (debuginfod_find_debuginfo(3)); who reads them checks their build-id. The process that
 * reads ELF and DWARF makes no connection in any case (jail.h).
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct debug_server {
	void *library; /* NULL: none */
	void *client;
};

/* -ENOENT: there is no libdebuginfod; -EDESTADDRREQ: DEBUGINFOD_URLS names no server. */
int debug_server_open(struct debug_server *server, struct err *e) WARN_UNUSED;
void debug_server_close(struct debug_server *server);
/* The path of the debug file with a build-id, to be freed; NULL: no server has it, or there is no server. */
char *debug_server_find(const struct debug_server *server, const uint8_t *build_id, uint32_t build_id_bytes);
