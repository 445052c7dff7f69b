/* SPDX-License-Identifier: MIT */
/*
 * Programs for which a dlopen that they know nothing of is dangerous. Argument 1:
 *
 *     constructor FILE  loads and unloads a library, whose constructor has a worker thread do something and waits
 *     later FILE        the same, but has one thread until a line comes
 *     world             stops its threads by signals inside dl_iterate_phdr, as collectors do
 *     forks             forks all the time, from two threads; the children use dl_iterate_phdr
 *     copied            a thread stays inside dl_iterate_phdr while the first one forks: the child, which has one
 * thread and is named in a line CHILD, has a lock of the loader that nobody frees roots             a collector with
 * one thread: reads all writable segments that the loader knows, in parts, with a pause in between. In loader_roots its
 * function has a name that collectors have iterates          is inside dl_iterate_phdr nearly always, with one thread
 *     crowded N         has so many mappings that it may make N more, with one thread
 *     names             opens what the loader calls its libraries, with one thread
 */
#include "victim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader_guest.h"

#define THREADS 3
#define RANGES_MAX 200u

static void pause_us(long us)
{
	const struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

static pthread_t start_thread(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		_exit(2);
	return thread;
}

/* ---- constructor ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static void (*job)(void *);
static void *job_argument;
static bool done_with_job;

void guest_call(void (*function)(void *), void *argument)
{
	pthread_mutex_lock(&lock);
	job = function;
	job_argument = argument;
	done_with_job = false;
	pthread_cond_signal(&asked);
	while (!done_with_job)
		pthread_cond_wait(&answered, &lock);
	pthread_mutex_unlock(&lock);
}

static void *worker(void *unused)
{
	uint64_t random = 362436069;

	(void)unused;
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!job)
			pthread_cond_wait(&asked, &lock);
		pause_us(2000);
		job(job_argument);
		victim_block(&random);
		job = NULL;
		done_with_job = true;
		pthread_cond_signal(&answered);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void load_plugins(const char *file)
{
	uint64_t random = 521288629;

	start_thread(worker);
	victim_ready();
	while (!victim_done()) {
		void *library = dlopen(file, RTLD_NOW);
		if (!library)
			victim_wrong("dlopen: %s", dlerror());
		else if (dlclose(library))
			victim_wrong("dlclose: %s", dlerror());
		victim_block(&random);
		pause_us(3000);
		victim_round();
	}
}

static void load_plugins_later(const char *file)
{
	char line[8];

	victim_ready();
	if (victim_line(line, sizeof line))
		load_plugins(file);
}

/* ---- world ---- */

static pthread_t mutators[THREADS];
static sem_t stopped;
static volatile int epoch;
static volatile bool stops_no_more; /* until then no thread ends: it would never say that it has stopped */

static void on_stop(int number)
{
	const int now = epoch;
	sigset_t mask;

	(void)number;
	sem_post(&stopped);
	sigfillset(&mask);
	sigdelset(&mask, SIGUSR2);
	while (epoch == now)
		sigsuspend(&mask);
}

static void on_resume(int number)
{
	(void)number;
}

static void *mutate(void *unused)
{
	uint64_t random = 88675123;

	while (!stops_no_more) {
		victim_block(&random);
		pause_us(2000);
	}
	return unused;
}

static int stop_world(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)info, (void)size, (void)unused;
	for (int i = 0; i < THREADS; i++)
		pthread_kill(mutators[i], SIGRTMIN);
	for (int i = 0; i < THREADS; i++)
		while (sem_wait(&stopped))
			;
	pause_us(500);
	epoch++;
	for (int i = 0; i < THREADS; i++)
		pthread_kill(mutators[i], SIGUSR2);
	return 1;
}

static void stop_worlds(void)
{
	struct sigaction action = { .sa_handler = on_stop, .sa_flags = SA_RESTART };
	uint64_t random = 88675123;

	sigfillset(&action.sa_mask);
	sigaction(SIGRTMIN, &action, NULL);
	action.sa_handler = on_resume;
	sigaction(SIGUSR2, &action, NULL);
	sem_init(&stopped, 0, 0);
	for (int i = 0; i < THREADS; i++)
		mutators[i] = start_thread(mutate);
	victim_ready();
	while (!victim_done()) {
		pause_us(1000);
		victim_block(&random);
		dl_iterate_phdr(stop_world, NULL);
		victim_round();
	}
	stops_no_more = true;
}

/* ---- forks ---- */

static int count_module(struct dl_phdr_info *info, size_t size, void *count)
{
	(void)info, (void)size;
	++*(unsigned *)count;
	return 0;
}

static void *fork_on(void *unused)
{
	while (!victim_done()) {
		int status = 0;
		pid_t pid = fork();
		if (pid == 0) {
			unsigned modules = 0;
			alarm(20);
			free(malloc(1000));
			dl_iterate_phdr(count_module, &modules);
			_exit(modules < 3);
		}
		while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (pid < 0 || status)
			victim_wrong("a child ended with status 0x%x", (unsigned)status);
		victim_round();
	}
	return unused;
}

static void fork_all_the_time(void)
{
	pthread_t threads[] = { start_thread(fork_on), start_thread(fork_on) };

	victim_ready();
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* ---- copied ---- */

static int stay(struct dl_phdr_info *info, size_t size, void *inside)
{
	(void)info, (void)size;
	sem_post(inside);
	while (!victim_done())
		pause();
	return 1;
}

static void *stay_in_loader(void *unused)
{
	dl_iterate_phdr(stay, &stopped);
	return unused;
}

static void work_as_child(volatile unsigned *rounds)
{
	uint64_t random = 362436069;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;; ++*rounds) {
		victim_block(&random);
		pause_us(1000);
	}
}

static void copy_lock(void)
{
	volatile unsigned *rounds =
		mmap(NULL, sizeof *rounds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	sem_init(&stopped, 0, 0);
	start_thread(stay_in_loader);
	while (sem_wait(&stopped))
		;
	pid_t child = fork();
	if (child == 0)
		work_as_child(rounds);
	victim_say("CHILD %d", child);
	victim_ready();
	while (!victim_done()) {
		unsigned before = *rounds;
		while (*rounds == before && !victim_done())
			pause_us(1000);
		victim_round();
	}
	kill(child, SIGKILL);
}

/* ---- roots ---- */

static struct {
	const volatile uint64_t *start;
	size_t words;
} ranges[RANGES_MAX];
static size_t range_count;

static int note_segments(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size, (void)unused;
	for (unsigned i = 0; i < info->dlpi_phnum && range_count < RANGES_MAX; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W))
			continue;
		ranges[range_count].start = (const volatile uint64_t *)((info->dlpi_addr + p->p_vaddr + 7) & ~7ull);
		ranges[range_count++].words = p->p_memsz / 8 - 1;
	}
	return 0;
}

uint64_t read_roots(void);
uint64_t read_roots(void)
{
	uint64_t sum = 0;

	range_count = 0;
	dl_iterate_phdr(note_segments, NULL);
	for (size_t i = 0; i < range_count; i++) {
		pause_us(3000);
		for (size_t k = 0; k < ranges[i].words; k++)
			sum += ranges[i].start[k];
	}
	return sum;
}

static void collect(void)
{
	uint64_t random = 362436069;

	victim_ready();
	while (!victim_done()) {
		victim_block(&random);
		read_roots();
		victim_round();
	}
}

/* ---- iterates ---- */

static int stay_inside(struct dl_phdr_info *info, size_t size, void *random)
{
	(void)info, (void)size;
	for (int i = 0; i < 300 && !victim_done(); i++) {
		victim_block(random);
		pause_us(10000);
		victim_round();
	}
	return 1;
}

static void iterate(void)
{
	uint64_t random = 362436069;

	victim_ready();
	while (!victim_done())
		dl_iterate_phdr(stay_inside, &random);
}

/* ---- crowded ---- */

static long number_in(const char *file, bool lines)
{
	static char buffer[65536];
	long value = 0;
	ssize_t n;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	while ((n = read(fd, buffer, sizeof buffer - 1)) > 0) {
		buffer[n] = 0;
		for (ssize_t i = 0; lines && i < n; i++)
			value += buffer[i] == '\n';
		if (!lines)
			value = strtol(buffer, NULL, 10);
	}
	close(fd);
	return value;
}

static void crowd(long left)
{
	const long most = number_in("/proc/sys/vm/max_map_count", false);
	const size_t page = 4096;
	uint64_t random = 362436069;
	unsigned char *pages =
		mmap(NULL, (size_t)most * 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	/* Each makes two more. */
	for (long i = 0, now = number_in("/proc/self/maps", true); now + 2 * i + left < most; i++)
		if (pages == MAP_FAILED || mprotect(pages + (size_t)i * 2 * page, page, PROT_READ))
			break;
	victim_ready();
	while (!victim_done()) {
		victim_block(&random);
		pause_us(1000);
		victim_round();
	}
}

/* ---- names ---- */

static int open_name(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size, (void)unused;
	if (!info->dlpi_name[0] || !strncmp(info->dlpi_name, "linux-vdso", 10))
		return 0;
	int fd = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
	unsigned char magic[4] = { 0 };
	if (fd < 0 || read(fd, magic, sizeof magic) != 4 || memcmp(magic, ELFMAG, 4))
		victim_wrong("a library is called %s, and that is none", info->dlpi_name);
	if (fd >= 0)
		close(fd);
	return 0;
}

static void look_at_names(void)
{
	uint64_t random = 362436069;

	victim_ready();
	while (!victim_done()) {
		victim_block(&random);
		pause_us(1000);
		dl_iterate_phdr(open_name, NULL);
		victim_round();
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	victim_start("loader_guests");
	if (!strcmp(what, "constructor") && argc > 2)
		load_plugins(argv[2]);
	else if (!strcmp(what, "later") && argc > 2)
		load_plugins_later(argv[2]);
	else if (!strcmp(what, "world"))
		stop_worlds();
	else if (!strcmp(what, "forks"))
		fork_all_the_time();
	else if (!strcmp(what, "copied"))
		copy_lock();
	else if (!strcmp(what, "roots"))
		collect();
	else if (!strcmp(what, "iterates"))
		iterate();
	else if (!strcmp(what, "crowded") && argc > 2)
		crowd(strtol(argv[2], NULL, 10));
	else if (!strcmp(what, "names"))
		look_at_names();
	else
		return 2;
	return victim_report();
}
