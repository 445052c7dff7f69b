/* SPDX-License-Identifier: MIT */
/*
 * Blocks that something points to, each in one way only, and blocks that nothing points to, for --census --unreachable.
 * heap_pointers [busy|main-exits]: with busy two threads change containers all the time; the first one may end. After
 * "more" on stdin the list has 1000 more, and 500 more are lost.
 *
 * All that is pointed to is of a class Kept…, all that is not of a class Lost…; TRUTH has how many of these there are.
 */
#include "victim.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <pthread.h>
#include <string>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <ctime>
#include <csignal>
#include <ucontext.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#define LOST_SINGLE 20000u
#define LOST_LIST 10000u
#define LOST_TREE 4095u
#define KEPT_LIST 20000u
#define SCRUB_BYTES (96u << 10)

template <int way> struct Kept {
	virtual ~Kept() = default;
	char payload[100] = {};
};
struct KeptNode {
	virtual ~KeptNode() = default;
	KeptNode *next = nullptr;
};
struct LostSingle {
	virtual ~LostSingle() = default;
	char payload[56] = {};
};
struct LostNode {
	virtual ~LostNode() = default;
	LostNode *next = nullptr, *left = nullptr;
};

enum {
	MIDDLE,
	END,
	LOW_TAG,
	HIGH_TAG,
	PACKED,
	STACK,
	LOCAL,
	SPECIFIC,
	ANONYMOUS,
	SHARED,
	VECTOR,
	EPOLL,
	TIMER,
	CODE,
	LARGE,
	COROUTINE,
	PAGES_ACROSS,
	BELOW_STACK,
	BELOW_HANDLER
};

static std::map<int, std::string> names;
static std::unordered_map<long, std::unique_ptr<Kept<100>>> table;
static std::list<std::shared_ptr<Kept<101>>> shared;
static std::deque<std::vector<std::unique_ptr<Kept<102>>>> queues;
static KeptNode *kept_list;
static char *middle, *end_of;
static uintptr_t low_tag, high_tag;
static struct __attribute__((packed)) {
	uint32_t number;
	void *pointer;
} in_packed __attribute__((aligned(8)));
static thread_local void *volatile in_local;
static pthread_key_t key;
static std::atomic<bool> stop{ false };
static std::atomic<unsigned> waiting{ 0 };
static ucontext_t main_context, coroutine_context;

/* What functions that have returned left on the stack is overwritten. */
static VICTIM_FRAME void scrub()
{
	volatile char bytes[SCRUB_BYTES];

	memset(const_cast<char *>(bytes), 0, sizeof bytes);
	asm volatile("" : : "r"(bytes) : "memory");
}

static VICTIM_FRAME void keep_in_memory()
{
	middle = reinterpret_cast<char *>(new Kept<MIDDLE>) + 60;
	auto *last = new Kept<END>;
	end_of = reinterpret_cast<char *>(last) + sizeof *last;
	low_tag = reinterpret_cast<uintptr_t>(new Kept<LOW_TAG>) | 3;
	high_tag = reinterpret_cast<uintptr_t>(new Kept<HIGH_TAG>) | 0xabcd8ull << 44 /* as LuaJIT does */;
	in_packed.pointer = new Kept<PACKED>;
	auto **area = static_cast<void **>(
		mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	area[5000] = new Kept<ANONYMOUS>;
	const auto across = reinterpret_cast<char *>(area) + 8 * 4096 - 4; /* on two pages */
	const void *block = new Kept<PAGES_ACROSS>;
	memcpy(across, &block, sizeof block);
	const int fd = static_cast<int>(syscall(SYS_memfd_create, "pointers", 0));
	auto **both = ftruncate(fd, 1 << 16)
	                      ? nullptr
	                      : static_cast<void **>(mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	both[77] = new Kept<SHARED>;
	close(fd);
	auto *code = static_cast<char *>(
		mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	block = new Kept<CODE>;
	memcpy(code + 3, &block, sizeof block);
	auto **large = static_cast<void **>(calloc(1, 4 << 20));
	large[400000] = new Kept<LARGE>;
	area[6000] = reinterpret_cast<char *>(large) + (3 << 20);
}

static VICTIM_FRAME void keep_in_kernel()
{
	static int pipe_ends[2];
	struct epoll_event event = {};
	struct sigevent wanted = {};
	timer_t timer;

	event.data.ptr = new Kept<EPOLL>;
	if (pipe(pipe_ends) || epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, pipe_ends[0], &event))
		victim_wrong("no epoll");
	/* The C library keeps a copy for SIGEV_THREAD only. */
	wanted.sigev_notify = SIGEV_NONE;
	wanted.sigev_value.sival_ptr = new Kept<TIMER>;
	if (timer_create(CLOCK_MONOTONIC, &wanted, &timer))
		victim_wrong("no timer");
}

static void make_coroutine_wait()
{
	void *volatile mine = new Kept<COROUTINE>;

	swapcontext(&coroutine_context, &main_context);
	asm volatile("" : : "r"(mine) : "memory");
}

static VICTIM_FRAME void keep_in_coroutine()
{
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_size = 64 << 10;
	coroutine_context.uc_stack.ss_sp =
		mmap(nullptr, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	makecontext(&coroutine_context, make_coroutine_wait, 0);
	swapcontext(&main_context, &coroutine_context);
}

/* On its stack, in its thread-local storage, with its key: nowhere else. */
static void keep_in_thread()
{
	void *volatile mine = new Kept<STACK>;

	in_local = new Kept<LOCAL>;
	pthread_setspecific(key, new Kept<SPECIFIC>);
	scrub();
	waiting++;
	while (!stop)
		usleep(1000);
	asm volatile("" : : "r"(mine) : "memory");
}

/* In a vector register, while it computes. */
static void keep_in_vector()
{
	void *mine = new Kept<VECTOR>;

	waiting++;
#ifdef __x86_64__
	asm volatile("movq %0, %%xmm7\n\txorl %k0, %k0\n1:\tpause\n\tcmpb $0, %1\n\tje 1b\n\tmovq %%xmm7, %0"
	             : "+r"(mine)
	             : "m"(stop)
	             : "xmm7", "memory");
#else
	asm volatile("fmov d7, %0\n1:\tyield\n\tldrb %w0, %1\n\tcbz %w0, 1b\n\tfmov %0, d7"
	             : "+r"(mine)
	             : "m"(stop)
	             : "v7", "memory");
#endif
	asm volatile("" : : "r"(mine) : "memory");
}

static void *wait_on_given_stack(void *)
{
	while (!stop)
		usleep(1000);
	return nullptr;
}

static void handle(int)
{
	waiting++;
	while (!stop)
		usleep(1000);
}

static VICTIM_FRAME void raise_with_pointer()
{
	void *volatile mine = new Kept<BELOW_HANDLER>;

	raise(SIGUSR2);
	asm volatile("" : : "r"(mine) : "memory");
}

/* In a frame that is below the stack of a handler, which is an array of a frame above it. */
static void keep_below_handler()
{
	char array[64 << 10] = {};
	const stack_t stack = { array, 0, sizeof array };
	struct sigaction action = {};

	action.sa_handler = handle;
	action.sa_flags = SA_ONSTACK;
	if (sigaltstack(&stack, nullptr) || sigaction(SIGUSR2, &action, nullptr))
		victim_wrong("no alternate stack");
	raise_with_pointer();
}

/* In memory that goes on as the stack of a thread, which has no guard between. */
static VICTIM_FRAME void keep_below_stack()
{
	const size_t half = 256 << 10;
	auto *guard = static_cast<char *>(mmap(nullptr, 4 * half, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	auto **area = reinterpret_cast<void **>(guard + half);
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (mprotect(area, 2 * half, PROT_READ | PROT_WRITE) ||
	    pthread_attr_setstack(&attributes, guard + 2 * half, half) ||
	    pthread_create(&thread, &attributes, wait_on_given_stack, area) || pthread_detach(thread))
		victim_wrong("no thread on a stack of its own");
	area[1000] = new Kept<BELOW_STACK>;
}

static VICTIM_FRAME void grow_list(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		auto *node = new KeptNode;
		node->next = kept_list;
		kept_list = node;
	}
}

static VICTIM_FRAME void lose_single(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		asm volatile("" : : "r"(new LostSingle) : "memory");
}

static VICTIM_FRAME void keep_containers()
{
	// Else it frees arrays of pointers to its nodes as it grows, and blocks made of these end with such pointers.
	table.reserve(20011);
	for (int i = 0; i < 20000; i++) {
		names[i * 7919 % 20011] = std::string(40, 'x');
		table[i * 7919 % 20011] = std::make_unique<Kept<100>>();
		if (i % 4 == 0)
			shared.push_back(std::make_shared<Kept<101>>());
	}
	queues.resize(500);
	for (int i = 0; i < 5000; i++)
		queues[i * 31 % 500].push_back(std::make_unique<Kept<102>>());
	grow_list(KEPT_LIST);
}

/* A list, a circle of it, and a tree: their blocks point to each other. */
static VICTIM_FRAME void lose()
{
	LostNode *last = nullptr, *first = nullptr, *tree[LOST_TREE];

	lose_single(LOST_SINGLE);
	for (unsigned i = 0; i < LOST_LIST; i++) {
		auto *node = new LostNode;
		node->next = last;
		first = first ? first : node;
		last = node;
	}
	first->next = last;
	for (unsigned i = 0; i < LOST_TREE; i++) {
		tree[i] = new LostNode;
		if (i)
			(i % 2 ? tree[(i - 1) / 2]->left : tree[(i - 1) / 2]->next) = tree[i];
	}
	asm volatile("" : : "r"(tree), "r"(first) : "memory");
}

static void change()
{
	std::map<unsigned, std::unique_ptr<Kept<200>>> mine;
	std::vector<std::unique_ptr<Kept<201>>> others(1000);
	uint64_t random = 88172645463325252ull;

	waiting++;
	while (!stop) {
		const unsigned n = victim_random(&random) % 5000;
		if (!mine.erase(n))
			mine[n] = std::make_unique<Kept<200>>();
		std::swap(others[n % 1000], others[n / 5]);
		if (n % 3 == 0)
			others[n % 1000] = std::make_unique<Kept<201>>();
		if (n % 50 == 0) {
			std::string text(n, 'y');
			asm volatile("" : : "r"(&text) : "memory");
		}
	}
}

static int serve(std::vector<std::thread> &threads)
{
	char line[16];

	while (victim_line(line, sizeof line) && strcmp(line, "end") != 0) {
		if (!strcmp(line, "more")) {
			grow_list(1000);
			lose_single(500);
			scrub();
			victim_say("MADE");
		}
		victim_round();
	}
	stop = true;
	for (auto &thread : threads)
		thread.join();
	return victim_report();
}

int main(int argc, char **argv)
{
	const bool busy = argc > 1 && !strcmp(argv[1], "busy");
	std::vector<std::thread> threads;

	victim_start("heap_pointers");
	pthread_key_create(&key, nullptr);
	keep_in_memory();
	keep_in_kernel();
	keep_in_coroutine();
	keep_below_stack();
	keep_containers();
	lose();
	scrub();
	threads.emplace_back(keep_in_thread);
	threads.emplace_back(keep_in_vector);
	threads.emplace_back(keep_below_handler);
	for (int i = 0; busy && i < 2; i++)
		threads.emplace_back(change);
	while (waiting < threads.size())
		usleep(1000);
	victim_say("TRUTH {\"LostSingle\":%u,\"LostNode\":%u}", LOST_SINGLE, LOST_LIST + LOST_TREE);
	victim_round();
	victim_ready();
	if (argc > 1 && !strcmp(argv[1], "main-exits")) {
		std::thread([&threads] { exit(serve(threads)); }).detach();
		syscall(SYS_exit, 0);
	}
	return serve(threads);
}
