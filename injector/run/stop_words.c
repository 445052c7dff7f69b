/* SPDX-License-Identifier: MIT */
#include "run/stop_words.h"

#include <stdlib.h>
#include <sys/syscall.h>

#include "arch/registers.h"
#include "base/grow.h"
#include "host/clocks.h"

#define EXTENDED_BYTES 16384u

int stop_words_open(struct stop_words *w, const struct census *c, struct err *e)
{
	*w = (struct stop_words){ .census = c, .libc = maps_find(&c->maps, c->heap.glibc.glibc.main_arena) };
	return kernel_pointers_find(&w->kernel, c->target, e);
}

void stop_words_close(struct stop_words *w)
{
	kernel_pointers_free(&w->kernel);
	free(w->stop.words);
	free(w->stop.threads);
	*w = (struct stop_words){ 0 };
}

bool stop_words_may_lack(const struct stop_words *w)
{
	struct kernel_pointers now;

	if (w->kernel_as_stopped)
		return false;
	const int rc = kernel_pointers_find(&now, w->census->target, ERR_IGNORED);
	const bool lacks = rc == 0 && kernel_pointers_has_more(&now, &w->kernel);
	kernel_pointers_free(&now);
	return lacks;
}

uint64_t stop_words_kernel_ns(struct stop_words *w)
{
	const uint64_t before = clock_monotonic_ns();

	(void)!kernel_pointers_read(&w->kernel, &w->stop.words, &w->stop.word_count, ERR_IGNORED);
	return clock_monotonic_ns() - before;
}

static void add_word(uint64_t word, void *context)
{
	struct stop_words *w = context;

	if (!grow_list(w->stop.words, w->stop.word_count))
		w->no_memory = true;
	else
		w->stop.words[w->stop.word_count++] = word;
}

static void add_words(struct stop_words *w, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (words[i] >> 16)
			add_word(words[i], w);
}

/* Those of vectors, too: compilers move two pointers at a time. */
static void add_extended(struct stop_words *w, pid_t tid)
{
	uint64_t words[EXTENDED_BYTES / sizeof(uint64_t)];

	add_words(w, words, registers_read_extended(tid, words, sizeof words) / sizeof *words);
}

/* Calls that malloc and free make. */
static bool is_call_of_malloc(int64_t number)
{
	return number == SYS_brk || number == SYS_mmap || number == SYS_munmap || number == SYS_mremap ||
	       number == SYS_mprotect || number == SYS_madvise;
}

/* With one thread only nothing tells but where it is. */
int stop_words_check(const struct stop_words *w, const struct registers *regs, pid_t tid, struct err *e)
{
	const int64_t number = registers_at_call(tid, regs);
	const struct mapping *m = maps_find(&w->census->maps, registers_pc(regs));
	const bool may_be = number >= 0 ? is_call_of_malloc(number) : m && w->libc && mapping_same_file(m, w->libc);

	return may_be ? err_set(e, EAGAIN, "thread %d is in the C library", tid) : 0;
}

static int add_registers(struct stop_words *w, const struct registers *regs, struct err *e)
{
	if (!grow_list(w->stop.threads, w->stop.thread_count))
		return err_set(e, ENOMEM, "no memory for its threads");
	w->stop.threads[w->stop.thread_count++] = (struct reach_thread){ registers_sp(regs), registers_tp(regs) };
	registers_each(regs, add_word, w);
	add_word(registers_tp(regs), w);
	return 0;
}

static int read_thread(struct stop_words *w, struct tracee t, struct err *e)
{
	struct registers regs;

	int rc = tracee_registers(&t, &regs, e);
	if (rc == -ESRCH) /* it was killed */
		return err_set(e, EAGAIN, "a thread has ended");
	rc = rc ?: stop_words_check(w, &regs, t.tid, e);
	rc = rc ?: add_registers(w, &regs, e);
	if (rc == 0)
		add_extended(w, t.tid);
	return rc;
}

static int read_kernel(struct stop_words *w, struct err *e)
{
	const int rc = kernel_pointers_find_again(&w->kernel, w->census->target, e);

	w->kernel_as_stopped = rc == 0;
	if (rc == -ESRCH)
		return err_set(e, EAGAIN, "a thread has ended");
	if (rc < 0 && rc != -E2BIG)
		return rc;
	return kernel_pointers_read(&w->kernel, &w->stop.words, &w->stop.word_count, e);
}

/* Its extended ones are in the area of the stub, or in the frame, with words that are of no register. */
static int add_borrowed(struct stop_words *w, const struct remote *r, struct err *e)
{
	add_words(w, (const uint64_t *)&r->frame, r->frame_bytes / sizeof(uint64_t));
	return add_registers(w, &r->saved, e);
}

int stop_words_read(struct stop_words *w, const struct stop_all *all, const struct remote *borrowed, struct err *e)
{
	int rc = 0;

	w->stop.word_count = w->stop.thread_count = 0;
	if (all->sleeper_count)
		return err_set(e, EAGAIN, "thread %d sleeps in a call that a stop would harm", all->sleepers[0].tid);
	if (all->excused) /* what it had in registers is in the kernel */
		return err_set(e, EAGAIN, "thread %d waits for its child of vfork", all->excused);
	for (size_t i = 0; i < all->count && rc == 0; i++)
		rc = read_thread(w, all->list[i], e);
	if (rc == 0 && borrowed)
		rc = add_borrowed(w, borrowed, e);
	rc = rc ?: read_kernel(w, e);
	return rc == 0 && w->no_memory ? err_set(e, ENOMEM, "no memory for its registers") : rc;
}
