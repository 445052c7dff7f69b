// SPDX-License-Identifier: MIT
// W5: std::map<string,string> and std::unordered_map build/erase. 1 op = one insert or one erase.
#include "bench.h"
#include <map>
#include <string>
#include <unordered_map>
#include <cstdlib>
using std::string;
static string mk(uint64_t x, const char *pre)
{
	char b[64];
	int n = snprintf(b, sizeof b, "%s-%016llx-%04llu", pre, (unsigned long long)x, (unsigned long long)(x % 10000));
	return string(b, n);
}
template <class M> struct Job {
	M m;
	size_t cap;
	uint64_t s;
	__attribute__((noinline)) void insert_one()
	{
		uint64_t x = xs64(&s);
		m.emplace(mk(x % (2 * cap), "key"), mk(x, "value-with-some-text"));
	}
	__attribute__((noinline)) void erase_one()
	{
		uint64_t x = xs64(&s);
		auto it = m.lower_bound_(mk(x % (2 * cap), "key"));
		if (it != m.end())
			m.erase(it);
	}
};
struct OM : std::map<string, string> {
	auto lower_bound_(const string &k)
	{
		return lower_bound(k);
	}
};
struct UM : std::unordered_map<string, string> {
	auto lower_bound_(const string &k)
	{
		auto it = find(k);
		return it == end() ? begin() : it;
	}
};
template <class J> __attribute__((noinline)) static bool step(J &j, ticker &k)
{
	for (int i = 0; i < 128; i++) {
		if (j.m.size() < j.cap)
			j.insert_one();
		else {
			j.erase_one();
		}
	}
	return tick_look(&k, 128);
}
int main(int ac, char **av)
{
	double dur = 10, tick = 0.5;
	size_t n = 50000;
	for (int i = 1; i < ac; i++) {
		if (!strcmp(av[i], "-d"))
			dur = atof(av[++i]);
		else if (!strcmp(av[i], "-n"))
			n = atol(av[++i]);
		else if (!strcmp(av[i], "-i"))
			tick = atof(av[++i]);
	}
	pin_from_env();
	hello();
	Job<OM> a{ {}, n, 12345 };
	Job<UM> b{ {}, n, 54321 };
	while (a.m.size() < n - 64)
		a.insert_one();
	while (b.m.size() < n - 64)
		b.insert_one();
	ticker k;
	tick_start(&k, dur, tick);
	for (uint64_t it = 0;; it++) {
		if ((it & 1023) == 1023) {
			a.m.clear();
			b.m.clear();
		}
		if (!step(a, k))
			break;
		if (!step(b, k))
			break;
	}
	return 0;
}
