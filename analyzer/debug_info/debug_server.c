/* SPDX-License-Identifier: MIT */
#include "debug_info/debug_server.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* elfutils/debuginfod.h, which is another package. */
typedef void *begin_function(void);
typedef void end_function(void *client);
typedef int find_function(void *client, const unsigned char *build_id, int build_id_bytes, char **path);

/* dlsym gives no function pointers. */
#define FUNCTION(type, server, name)                                                                                   \
	__extension__({                                                                                                \
		void *symbol_ = dlsym((server)->library, name);                                                        \
		type *function_;                                                                                       \
		memcpy(&function_, &symbol_, sizeof function_);                                                        \
		function_;                                                                                             \
	})

int debug_server_open(struct debug_server *server, struct err *e)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	*server = (struct debug_server){ 0 };
	if (!urls || !urls[strspn(urls, " ")])
		return err_set(e, EDESTADDRREQ, "DEBUGINFOD_URLS names no server");
	server->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	begin_function *begin = server->library ? FUNCTION(begin_function, server, "debuginfod_begin") : NULL;
	server->client = begin ? begin() : NULL;
	if (server->client)
		return 0;
	debug_server_close(server);
	return err_set(e, ENOENT, "libdebuginfod.so.1, the client of elfutils, is not installed");
}

void debug_server_close(struct debug_server *server)
{
	end_function *end = server->client ? FUNCTION(end_function, server, "debuginfod_end") : NULL;

	if (end)
		end(server->client);
	if (server->library)
		dlclose(server->library);
	*server = (struct debug_server){ 0 };
}

char *debug_server_find(const struct debug_server *server, const uint8_t *build_id, uint32_t build_id_bytes)
{
	find_function *find = server->client ? FUNCTION(find_function, server, "debuginfod_find_debuginfo") : NULL;
	char *path = NULL;

	if (!find || build_id_bytes < 8)
		return NULL;
	int fd = find(server->client, build_id, (int)build_id_bytes, &path);
	if (fd < 0)
		return NULL;
	close(fd);
	return path;
}
