/* SPDX-License-Identifier: MIT */
/*
 * Live objects of classes, text and zeros, as many as it says, for --census: TRUTH has the count of each. After "more"
 * on stdin there are 1000 more books.
 */
#include "victim.h"

#include <cstring>

namespace shop
{
struct Item {
	virtual ~Item() = default;
	virtual int price() const = 0;
	long id = 1;
};
struct Book : Item {
	int price() const override
	{
		return 1;
	}
	char isbn[40] = {};
};
template <class T> struct Cache {
	virtual ~Cache() = default;
	T *entries = nullptr;
};
} // namespace shop

template <class T> static void make(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const T *object = new T;
		asm volatile("" : : "r"(object) : "memory"); /* somebody may use it */
	}
}

static void make_blocks(unsigned count, size_t bytes, int fill)
{
	for (unsigned i = 0; i < count; i++) {
		char *volatile block = new char[bytes];
		memset(block, fill, bytes);
	}
}

int main()
{
	char line[16];

	victim_start("heap_types");
	make<shop::Book>(30000);
	make<shop::Cache<long>>(20000);
	make_blocks(7000, 88, 'x');
	make_blocks(5000, 504, 0);
	victim_say("TRUTH {\"shop::Book\":30000,\"shop::Cache<…>\":20000,\"text\":7000,\"zeros\":5000}");
	victim_round();
	victim_ready();
	while (victim_line(line, sizeof line) && strcmp(line, "end") != 0) {
		if (!strcmp(line, "more")) {
			make<shop::Book>(1000);
			victim_say("MADE");
		}
		victim_round();
	}
	return victim_report();
}
