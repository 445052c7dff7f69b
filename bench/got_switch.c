/* SPDX-License-Identifier: MIT */
/*
 * What memattach costs a real server, below the noise of the machine: while a session is in force, the patched GOT
 * entries of the server are switched between the trampolines and the originals after every few requests, and the
 * server's own CPU time for each request is compared, slice by slice. The switch is only sound while no thread of the
 * target loads or unloads libraries, so this is for measuring and nothing else; what the target frees in a slice
 * without trampolines is not seen.
 *
 *     cc -O2 bench/got_switch.c -o got_switch
 *     got_switch redis|http|postgres|line PORT [rounds [connections [requests in a slice]]]
 *
 * It connects, says "ready", and reads the number of the process from its standard input, in which the session must be
 * in force by then (a backend of PostgreSQL is there only after the connection). bench/switched does all that.
 *
 * A round has three slices in random order: the trampolines, the originals, and the originals again as a control; each
 * prints a line with the CPU time for a request of the three, in ns. In a slice all connections send a request, then
 * all answers are awaited, and so on; at its ends the server sleeps. The last line is the number of all requests that
 * were sent with trampolines.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "../include/control.h"

#define CONNECTIONS_MAX 64
#define KEYS 50000
#define FIRST 500 /* requests before the session, where no keys are to be set */
#define VALUE 200
#define WARM 4 /* a part of so many of each slice is not looked at */
#define IDLE_NS 60000

enum kind { REDIS, HTTP, POSTGRES, LINE };
static const char *const kinds[] = { "redis", "http", "postgres", "line" };

struct connection {
	int fd;
	uint64_t number; /* of the next request */
	size_t have;
	char answer[1 << 16];
};

static enum kind kind;
static struct connection connections[CONNECTIONS_MAX];
static int connection_count = 8;
static size_t page_bytes; /* of an answer of HTTP */
static uint64_t dice = 88172645463325252ull;

static void die(const char *what)
{
	fprintf(stderr, "got_switch: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put_length(char *at, size_t length)
{
	uint32_t n = htonl((uint32_t)length);

	memcpy(at, &n, sizeof n);
}

static size_t request(char *out, size_t room, uint64_t number)
{
	unsigned key = (unsigned)(number / 2 * 7919 % KEYS); /* each is set before it is asked for */
	int n;

	switch (kind) {
	case REDIS:
		if (number & 1)
			return (size_t)snprintf(out, room, "*2\r\n$3\r\nGET\r\n$10\r\nkey:%06u\r\n", key);
		return (size_t)snprintf(out, room, "*3\r\n$3\r\nSET\r\n$10\r\nkey:%06u\r\n$%d\r\n%0*llu\r\n", key,
		                        VALUE, VALUE, (unsigned long long)number);
	case HTTP:
		return (size_t)snprintf(out, room,
		                        "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: "
		                        "got_switch\r\nAccept: */*\r\n\r\n");
	case POSTGRES:
		n = snprintf(out + 5, room - 5, "SELECT abalance FROM pgbench_accounts WHERE aid = %u;", key + 1) + 1;
		out[0] = 'Q';
		put_length(out + 1, (size_t)n + 4);
		return (size_t)n + 5;
	default: return (size_t)snprintf(out, room, "%u\n", key);
	}
}

static bool is_whole(const struct connection *c)
{
	switch (kind) {
	case REDIS: return c->have >= (c->number & 1 ? 1 + 3 + 2 + VALUE + 2 : 5);
	case HTTP: return page_bytes && c->have >= page_bytes;
	case POSTGRES: return c->have >= 6 && !memcmp(c->answer + c->have - 6, "Z\0\0\0\5I", 6);
	default: return c->have && c->answer[c->have - 1] == '\n';
	}
}

static void learn_page(struct connection *c)
{
	c->answer[c->have] = 0;
	const char *end = strstr(c->answer, "\r\n\r\n"), *length = strcasestr(c->answer, "Content-Length:");
	if (end && length)
		page_bytes = (size_t)(end + 4 - c->answer) + strtoul(length + 15, NULL, 10);
}

static void await(struct connection *c)
{
	c->have = 0;
	do {
		ssize_t n = read(c->fd, c->answer + c->have, sizeof c->answer - 1 - c->have);
		if (n <= 0)
			die("answer");
		c->have += (size_t)n;
		if (kind == HTTP && !page_bytes)
			learn_page(c);
	} while (!is_whole(c));
}

static void all(void)
{
	char text[1024];

	for (int i = 0; i < connection_count; i++) {
		size_t n = request(text, sizeof text, connections[i].number);
		if (write(connections[i].fd, text, n) != (ssize_t)n)
			die("request");
	}
	for (int i = 0; i < connection_count; i++) {
		await(&connections[i]);
		connections[i].number++;
	}
}

static void open_connections(int port)
{
	static const char hello_postgres[] = "\0\0\0\0\0\3\0\0user\0postgres\0database\0postgres\0";
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons((uint16_t)port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1;

	for (int i = 0; i < connection_count; i++) {
		struct connection *c = &connections[i];
		c->number = (uint64_t)i * 2 * KEYS / (uint64_t)connection_count;
		c->fd = socket(AF_INET, SOCK_STREAM, 0);
		if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address))
			die("connect");
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		if (kind != POSTGRES)
			continue;
		char text[sizeof hello_postgres];
		memcpy(text, hello_postgres, sizeof text);
		put_length(text, sizeof text);
		if (write(c->fd, text, sizeof text) != (ssize_t)sizeof text)
			die("hello");
		await(c);
	}
}

/* The target. */
static int memory;
static struct got_entry *entries;
static uint64_t *trampolines;
static size_t entry_count;
static bool trampolines_used = true;
static uint64_t sampled_requests; /* sent while they were */

static bool peek(uint64_t at, void *out, size_t bytes)
{
	return pread(memory, out, bytes, (off_t)at) == (ssize_t)bytes;
}

static bool find_session_in(uint64_t start, uint64_t end, struct memattach_session *session)
{
	for (uint64_t at = start; at + sizeof *session <= end; at += 8)
		if (peek(at, session, sizeof session->magic) && session->magic == CONTROL_MAGIC &&
		    peek(at, session, sizeof *session) && session->state == SESSION_STARTED && session->entry_count)
			return true;
	return false;
}

/* The session block is in the data of the payload, which is mapped from a memfd. */
static void find_session(int pid, struct memattach_session *session)
{
	char path[64], line[512];
	bool found = false;

	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	memory = open(path, O_RDWR);
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "r");
	if (memory < 0 || !maps)
		die(path);
	while (!found && fgets(line, sizeof line, maps)) {
		unsigned long start, end;
		char mode[8];
		if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) == 3 && mode[1] == 'w' &&
		    strstr(line, "memfd:memattach-payload"))
			found = find_session_in(start, end, session);
	}
	fclose(maps);
	if (!found) {
		fprintf(stderr, "got_switch: no session in %d\n", pid);
		exit(1);
	}
}

static void read_entries(const struct memattach_session *session)
{
	size_t n = session->entry_count;

	entries = calloc(n, sizeof *entries);
	trampolines = calloc(n, sizeof *trampolines);
	if (!peek(session->entries_address, entries, n * sizeof *entries))
		die("entries");
	for (size_t i = 0; i < n; i++) {
		if (entries[i].state != GOT_PATCHED ||
		    !peek(entries[i].address, &trampolines[entry_count], sizeof *trampolines))
			continue;
		if (trampolines[entry_count] - session->trampolines_address >= TRAMPOLINES_CODE_BYTES)
			continue; /* somebody else's hook */
		entries[entry_count++] = entries[i];
	}
}

static void use_trampolines(bool on)
{
	trampolines_used = on;
	for (size_t i = 0; i < entry_count; i++)
		if (pwrite(memory, on ? &trampolines[i] : &entries[i].old_value, 8, (off_t)entries[i].address) != 8)
			die("entry");
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU time of the target once it sleeps: the kernel adds up what a thread ran when it stops. */
static uint64_t cpu_asleep(clockid_t id)
{
	uint64_t before, now = clock_ns(id);

	do {
		before = now;
		uint64_t start = clock_ns(CLOCK_MONOTONIC);
		while (clock_ns(CLOCK_MONOTONIC) - start < IDLE_NS)
			;
		now = clock_ns(id);
	} while (now != before);
	return now;
}

/* CPU time for each request, in ns. */
static double slice(clockid_t id, int turns)
{
	if (trampolines_used)
		sampled_requests += (uint64_t)(turns / WARM + 1 + turns) * (uint64_t)connection_count;
	for (int i = 0; i < turns / WARM + 1; i++)
		all();
	uint64_t start = cpu_asleep(id);
	for (int i = 0; i < turns; i++)
		all();
	return (double)(cpu_asleep(id) - start) / turns / connection_count;
}

static void measure(clockid_t id, int rounds, int turns)
{
	static const char orders[6][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 }
	};

	for (int r = 0; r < rounds; r++) {
		const char *order = orders[xs64(&dice) % 6];
		double ns[3];
		for (int k = 0; k < 3; k++) {
			use_trampolines(order[k] == 0);
			ns[(int)order[k]] = slice(id, turns);
		}
		printf("%.1f %.1f %.1f\n", ns[0], ns[1], ns[2]);
	}
	use_trampolines(true);
}

int main(int argc, char **argv)
{
	int rounds = argc > 3 ? atoi(argv[3]) : 500, turns = argc > 5 ? atoi(argv[5]) : 0, pid;
	struct memattach_session session;
	clockid_t id;

	if (argc > 4)
		connection_count = atoi(argv[4]);
	while (argc > 2 && kind <= LINE && strcmp(kinds[kind], argv[1]))
		kind++;
	if (argc < 3 || kind > LINE || rounds < 1 || connection_count < 1 || connection_count > CONNECTIONS_MAX)
		return 64;
	pin_from_env();
	open_connections(atoi(argv[2]));
	for (int i = 0; i < (kind == REDIS ? 2 * KEYS : FIRST) / connection_count + 1; i++)
		all(); /* sets all keys */
	puts("ready");
	fflush(stdout);
	if (scanf("%d", &pid) != 1 || clock_getcpuclockid(pid, &id))
		return 64;
	find_session(pid, &session);
	read_entries(&session);
	double start = now_s();
	slice(id, 200);
	if (!turns) /* some 4 ms */
		turns = (int)(0.004 * 250 / (now_s() - start)) + 1;
	fprintf(stderr, "%zu GOT entries, %d requests in a slice\n", entry_count, turns * connection_count);
	measure(id, rounds, turns);
	printf("%llu\n", (unsigned long long)sampled_requests);
	return 0;
}
