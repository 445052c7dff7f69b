// SPDX-License-Identifier: MIT
// The service of scripts/demo: an order cache that leaks. Three threads take in orders, answer quotes and write metrics.
// Orders expire from the cache; rejected ones are remembered "for the audit" and never forgotten: that is the leak.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <unistd.h>
#include <vector>

namespace
{

volatile std::sig_atomic_t stop;

struct Order {
	uint64_t id;
	std::string customer;
	std::vector<std::string> lines;
	std::vector<unsigned char> document; // as it came from the network
};

class OrderCache
{
      public:
	void add(std::unique_ptr<Order> order)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		by_age_.push_back(order->id);
		orders_[order->id] = std::move(order);
		while (by_age_.size() > 2000) {
			orders_.erase(by_age_.front());
			by_age_.pop_front();
		}
	}

	size_t quote(uint64_t id) const
	{
		std::lock_guard<std::mutex> lock(mutex_);
		auto found = orders_.find(id);
		std::string answer = found == orders_.end() ? "unknown" : found->second->customer;
		answer += std::string(200 + id % 500, ' ');
		return answer.size();
	}

	void remember_rejected(const Order &order);

      private:
	mutable std::mutex mutex_;
	std::unordered_map<uint64_t, std::unique_ptr<Order>> orders_;
	std::deque<uint64_t> by_age_;
	std::unordered_map<uint64_t, std::vector<unsigned char>> rejected_;
};

__attribute__((noinline)) void OrderCache::remember_rejected(const Order &order)
{
	std::lock_guard<std::mutex> lock(mutex_);
	rejected_[order.id] = order.document;
}

std::unique_ptr<Order> parse_order(uint64_t id, std::mt19937_64 &random)
{
	auto order = std::make_unique<Order>();
	order->id = id;
	order->customer = "customer number " + std::to_string(random() % 100000);
	for (unsigned i = 0, n = 1 + random() % 8; i < n; i++)
		order->lines.push_back("article " + std::to_string(random()) + " quantity " + std::to_string(i));
	order->document.assign(2000 + random() % 6000, static_cast<unsigned char>(id));
	return order;
}

void intake(OrderCache &cache, std::atomic<uint64_t> &last)
{
	std::mt19937_64 random(42);
	for (uint64_t id = 1; !stop; id++) {
		std::unique_ptr<Order> order = parse_order(id, random);
		if (random() % 5 == 0)
			cache.remember_rejected(*order);
		else
			cache.add(std::move(order));
		last = id;
		std::this_thread::sleep_for(std::chrono::microseconds(250));
	}
}

void quotes(OrderCache &cache, const std::atomic<uint64_t> &last)
{
	std::mt19937_64 random(43);
	size_t answered = 0;
	while (!stop) {
		for (int i = 0; i < 50; i++)
			answered += cache.quote(last - random() % 3000);
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	}
	if (answered == 1)
		std::puts("one");
}

void metrics(const std::atomic<uint64_t> &last)
{
	std::deque<std::string> recent;
	while (!stop) {
		recent.push_back("orders " + std::to_string(last) + std::string(1000, '.'));
		if (recent.size() > 100)
			recent.pop_front();
		std::this_thread::sleep_for(std::chrono::milliseconds(10));
	}
}

} // namespace

int main()
{
	OrderCache cache;
	std::atomic<uint64_t> last{ 0 };

	std::signal(SIGTERM, [](int) { stop = 1; });
	std::signal(SIGINT, [](int) { stop = 1; });
	std::printf("PID %d\n", static_cast<int>(getpid()));
	std::fflush(stdout);
	std::thread taker(intake, std::ref(cache), std::ref(last));
	std::thread answerer(quotes, std::ref(cache), std::cref(last));
	metrics(last);
	taker.join();
	answerer.join();
	return 0;
}
