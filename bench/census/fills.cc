// SPDX-License-Identifier: MIT
// Fills maps as it starts, and then others, or the same ones: `fills apart|same|replaced SECONDS`. Replaced: of what is
// in them then, a small part again and again.
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

struct Entry {
	virtual ~Entry() = default;
	char text[72] = {};
};
using Store = std::map<long, std::unique_ptr<Entry>>;
using Index = std::unordered_map<long, std::string>;

static Store catalogue, sessions;
static Index names, addresses;

__attribute__((noinline)) static void load(Store &store, Index &index, long count)
{
	for (long i = 0; i < count; i++) {
		store.emplace(-i, new Entry);
		index.emplace(-i, std::string(40, 'a'));
	}
}

__attribute__((noinline)) static void sign_in(long i)
{
	sessions.erase(i);
	addresses.erase(i);
	sessions.emplace(i, new Entry);
	addresses.emplace(i, std::string(40, 'b'));
}

__attribute__((noinline)) static void sign_up(long i)
{
	sessions.erase(i);
	addresses.erase(i);
	sessions.emplace(i, new Entry);
	addresses.emplace(i, std::string(40, 'c'));
}

__attribute__((noinline)) static void handle(long i)
{
	Index request;
	for (long k = 0; k < 8; k++)
		request.emplace(k, std::string(40, 'd'));
	i % 4 ? sign_in(i) : sign_up(i);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	const bool same = std::strcmp(argv[1], "apart");
	const long keys = std::strcmp(argv[1], "replaced") ? LONG_MAX : 10000;
	const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atol(argv[2]));
	load(same ? sessions : catalogue, same ? addresses : names, 40000);
	for (long i = 1; std::chrono::steady_clock::now() < end; i++) {
		for (long k = 0; k < 20; k++)
			handle((20 * i + k) % keys);
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
	}
	return 0;
}
