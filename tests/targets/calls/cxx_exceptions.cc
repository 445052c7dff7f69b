// SPDX-License-Identifier: MIT
// Exceptions through allocation (bad_alloc, bad_array_new_length), all forms of operator new and delete, STL churn.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "victim.h"

namespace
{

volatile size_t too_much = size_t{ 1 } << 60;

VICTIM_FRAME void throw_from_new()
{
	bool caught = false;
	try {
		char *p = new char[too_much];
		p[0] = 1;
		delete[] p;
	} catch (const std::bad_alloc &) {
		caught = true;
	}
	if (!caught)
		victim_wrong("bad_alloc was not caught");
	if (new (std::nothrow) char[too_much])
		victim_wrong("new(nothrow) found 2^60 bytes");
}

struct thrower {
	explicit thrower(int i)
	{
		if (i == 3)
			throw std::string("a string long enough to be allocated on the heap: ") + std::to_string(i);
	}
	char filler[200];
};

// The constructor throws: the runtime frees what operator new gave.
VICTIM_FRAME void throw_from_constructor()
{
	std::vector<std::unique_ptr<thrower>> kept;
	try {
		for (int i = 0; i < 10; i++)
			kept.push_back(std::make_unique<thrower>(i));
		victim_wrong("the constructor did not throw");
	} catch (const std::string &s) {
		if (s.back() != '3' || kept.size() != 3)
			victim_wrong("the wrong exception: %s", s.c_str());
	}
}

struct alignas(128) wide {
	uint64_t words[32];
};

VICTIM_FRAME void aligned()
{
	std::vector<std::unique_ptr<wide>> kept;
	for (uint64_t i = 0; i < 20; i++) {
		kept.push_back(std::make_unique<wide>());
		std::fill(std::begin(kept.back()->words), std::end(kept.back()->words), i);
		if (reinterpret_cast<uintptr_t>(kept.back().get()) % 128)
			victim_wrong("a wide block is not aligned");
	}
	for (uint64_t i = 0; i < 20; i++)
		if (kept[i]->words[31] != i)
			victim_wrong("a wide block changed");
}

VICTIM_FRAME void containers(uint64_t *random)
{
	std::map<uint64_t, std::string> sorted;
	std::unordered_map<uint64_t, std::string> hashed;
	for (int i = 0; i < 500; i++) {
		uint64_t key = victim_random(random) % 1000;
		std::string value(20 + key % 50, static_cast<char>('a' + key % 26));
		sorted[key] = value;
		hashed[key] = value;
		if (i % 3 == 0) {
			sorted.erase(key);
			hashed.erase(key);
		}
	}
	if (sorted.size() != hashed.size())
		victim_wrong("map and unordered_map differ");
	for (const auto &entry : sorted)
		if (hashed[entry.first] != entry.second || entry.second[0] != static_cast<char>('a' + entry.first % 26))
			victim_wrong("an entry changed");
}

void work(uint64_t seed)
{
	while (!victim_done()) {
		throw_from_new();
		throw_from_constructor();
		aligned();
		containers(&seed);
		victim_round();
	}
}

} // namespace

int main()
{
	victim_start("cxx_exceptions");
	std::thread other(work, 1234567);
	victim_ready();
	work(7654321);
	other.join();
	return victim_report();
}
