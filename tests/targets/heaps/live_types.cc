/* SPDX-License-Identifier: MIT */
/*
 * Objects of known classes, text and zeros that are made after "go" on stdin, each held in one way, for types and
 * holders of the blocks of a session; TRUTH has how many bytes were asked for, by type and by holder.
 *
 * shop::orders is a variable with an array of orders, the list of stages is on the stack of main alone, parcels are
 * held by one Depot that only the stack of a thread knows.
 */
#include "victim.h"

#include <cstring>
#include <pthread.h>
#include <semaphore.h>

#define ORDERS 20000u
#define PARCELS 8000u
#define STAGES 6000u
#define TEXTS 5000u
#define ZEROS 3000u
#define TEXT_BYTES 400u
#define ZERO_BYTES 800u

namespace shop
{
struct Order {
	virtual ~Order() = default;
	char payload[232] = {};
};
struct Parcel {
	virtual ~Parcel() = default;
	char payload[504] = {};
};
struct Depot {
	virtual ~Depot() = default;
	Parcel **parcels = nullptr;
};
struct Stage {
	virtual ~Stage() = default;
	Stage *next = nullptr;
	char payload[112] = {};
};
static Order **orders;
static char **texts;
static void **blanks;
} // namespace shop

static sem_t made, leave;

/* Nothing but the last one is known here. */
__attribute__((noinline)) static void make_stages(shop::Stage *volatile *last)
{
	for (unsigned i = 0; i < STAGES; i++) {
		shop::Stage *stage = new shop::Stage;
		stage->next = *last;
		*last = stage;
	}
}

__attribute__((noinline)) static void make_parcels(shop::Depot *volatile *depot)
{
	shop::Depot *d = new shop::Depot;

	d->parcels = new shop::Parcel *[PARCELS];
	for (unsigned i = 0; i < PARCELS; i++)
		d->parcels[i] = new shop::Parcel;
	*depot = d;
}

/* Registers and the stack below keep what was worked with. */
__attribute__((noinline)) static void scrub(void)
{
	char volatile rest[96 << 10];

	memset(const_cast<char *>(rest), 0, sizeof rest);
	asm volatile("" : : : "rbx", "r12", "r13", "r14", "r15", "memory");
}

static void *keep_depot(void *)
{
	shop::Depot *volatile depot = nullptr;

	make_parcels(&depot);
	scrub();
	sem_post(&made);
	while (sem_wait(&leave) != 0)
		;
	return const_cast<shop::Depot *>(depot);
}

__attribute__((noinline)) static void make_others(void)
{
	shop::orders = new shop::Order *[ORDERS];
	for (unsigned i = 0; i < ORDERS; i++)
		shop::orders[i] = new shop::Order;
	shop::texts = new char *[TEXTS];
	for (unsigned i = 0; i < TEXTS; i++) {
		shop::texts[i] = new char[TEXT_BYTES];
		memset(shop::texts[i], 'x', TEXT_BYTES);
	}
	shop::blanks = new void *[ZEROS];
	for (unsigned i = 0; i < ZEROS; i++)
		shop::blanks[i] = memset(new char[ZERO_BYTES], 0, ZERO_BYTES);
}

int main()
{
	shop::Stage *volatile stages = nullptr;
	pthread_t keeper;
	char line[16];

	victim_start("live_types");
	sem_init(&made, 0, 0);
	sem_init(&leave, 0, 0);
	victim_say("TRUTH "
	           "{\"type\":{\"shop::Order\":%zu,\"shop::Parcel\":%zu,\"shop::Stage\":%zu,\"text\":%u,\"zeros\":%u}}",
	           ORDERS * sizeof(shop::Order), PARCELS * sizeof(shop::Parcel), STAGES * sizeof(shop::Stage),
	           TEXTS * TEXT_BYTES, ZEROS * ZERO_BYTES);
	victim_round();
	victim_ready();
	if (victim_line(line, sizeof line) && !strcmp(line, "go")) {
		make_others();
		make_stages(&stages);
		scrub();
		pthread_create(&keeper, nullptr, keep_depot, nullptr);
		pthread_setname_np(keeper, "keeper");
		sem_wait(&made);
		victim_say("DONE");
	}
	while (victim_line(line, sizeof line) && strcmp(line, "end") != 0)
		victim_round();
	sem_post(&leave);
	pthread_join(keeper, nullptr);
	return stages ? victim_report() : 1;
}
