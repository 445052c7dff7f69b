/* SPDX-License-Identifier: MIT */
/*
 * The service of scripts/demo: an order cache that leaks. Three threads take in orders, answer quotes and keep metrics.
 * Orders expire from the cache after a while; the documents of rejected ones are remembered "for the audit", and never
 * forgotten.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE_ORDERS 500
#define ORDERS_PER_TICK 20 /* every 5 ms */
#define METRICS_KEPT 100
#define FRAME __attribute__((noinline, noclone)) /* seen by name in the report */

struct order {
	uint64_t id;
	char *customer;
	char *document; /* as it came from the network */
	size_t document_bytes;
	uint32_t checksum; /* of the document */
};

struct audit_entry {
	struct audit_entry *next;
	uint64_t id;
	char *document;
};

static struct order *cache[CACHE_ORDERS]; /* by id modulo its size: a new order replaces the oldest */
static struct audit_entry *audit_log;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
static _Atomic uint64_t last_id;

static void *need(void *block)
{
	if (!block) {
		perror("demo_service");
		exit(1);
	}
	return block;
}

static FRAME char *copy_text(const char *text)
{
	return need(strdup(text));
}

/*
 * CRC-32, bit by bit. The service works for its orders as services do: one that only allocates and sleeps would give a
 * sampler that is limited to a part of the CPU time next to nothing.
 */
static FRAME uint32_t checksum_of(const char *bytes, size_t length)
{
	uint32_t sum = ~0u;

	for (size_t i = 0; i < length; i++) {
		sum ^= (unsigned char)bytes[i];
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (0xedb88320u & -(sum & 1));
	}
	return ~sum;
}

static FRAME struct order *parse_order(uint64_t id, unsigned *random)
{
	char customer[64];
	struct order *order = need(malloc(sizeof *order));

	snprintf(customer, sizeof customer, "customer number %d", rand_r(random) % 100000);
	order->id = id;
	order->customer = copy_text(customer);
	order->document_bytes = 2000u + (unsigned)rand_r(random) % 6000u;
	order->document = need(malloc(order->document_bytes));
	memset(order->document, (int)id, order->document_bytes);
	order->checksum = checksum_of(order->document, order->document_bytes);
	return order;
}

static void free_order(struct order *order)
{
	if (!order)
		return;
	free(order->customer);
	free(order->document);
	free(order);
}

/* The leak. */
static FRAME void remember_rejected(const struct order *order)
{
	struct audit_entry *entry = need(malloc(sizeof *entry));

	entry->id = order->id;
	entry->document = need(malloc(order->document_bytes));
	memcpy(entry->document, order->document, order->document_bytes);
	pthread_mutex_lock(&lock);
	entry->next = audit_log;
	audit_log = entry;
	pthread_mutex_unlock(&lock);
}

static FRAME void cache_add(struct order *order)
{
	pthread_mutex_lock(&lock);
	struct order **place = &cache[order->id % CACHE_ORDERS];
	free_order(*place);
	*place = order;
	pthread_mutex_unlock(&lock);
}

static FRAME size_t quote(uint64_t id)
{
	char *answer = need(malloc(400 + id % 500));

	pthread_mutex_lock(&lock);
	const struct order *order = cache[id % CACHE_ORDERS];
	snprintf(answer, 400, "order %lu of %s, %08x", (unsigned long)id, order ? order->customer : "nobody",
	         order ? order->checksum : 0u);
	pthread_mutex_unlock(&lock);
	size_t length = strlen(answer);
	free(answer);
	return length;
}

static void *intake(void *argument)
{
	unsigned random = 42;

	(void)argument;
	while (!stop) {
		for (int i = 0; i < ORDERS_PER_TICK; i++) {
			struct order *order = parse_order(last_id + 1, &random);
			if (rand_r(&random) % 5 == 0) {
				remember_rejected(order);
				free_order(order);
			} else {
				cache_add(order);
			}
			last_id++;
		}
		usleep(5000);
	}
	return NULL;
}

static void *answer_quotes(void *argument)
{
	unsigned random = 43;
	size_t *answered = argument;

	while (!stop) {
		for (int i = 0; i < 50; i++)
			*answered += quote((uint64_t)rand_r(&random));
		usleep(1000);
	}
	return NULL;
}

static FRAME void keep_metrics(void)
{
	static char *recent[METRICS_KEPT];

	for (unsigned i = 0; !stop; i = (i + 1) % METRICS_KEPT) {
		free(recent[i]);
		recent[i] = need(malloc(1000));
		snprintf(recent[i], 1000, "orders %lu", (unsigned long)last_id);
		usleep(10000);
	}
}

static void on_signal(int signal_number)
{
	(void)signal_number;
	stop = true;
}

int main(void)
{
	pthread_t taker, answerer;
	size_t answered = 0;

	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	printf("PID %d\n", (int)getpid());
	fflush(stdout);
	if (pthread_create(&taker, NULL, intake, NULL) || pthread_create(&answerer, NULL, answer_quotes, &answered))
		return 1;
	keep_metrics();
	pthread_join(taker, NULL);
	pthread_join(answerer, NULL);
	printf("%lu orders, %zu bytes of quotes\n", (unsigned long)last_id, answered);
	return 0;
}
