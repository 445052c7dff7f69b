/* SPDX-License-Identifier: MIT */
#include "session/java_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/java_frame.h"
#include "base/grow.h"
#include "host/clocks.h"
#include "java/java_unloads.h"

#define TRIES_MAX 3u /* polls */
#define LOOKS 3u     /* in each */
#define POLL_BYTES (8u << 20)
#define POLL_WORK (256u << 20)
#define PART_OF_DUMP 16u    /* at most is for names */
#define NO_COUNT UINT64_MAX /* nobody knows whether classes were unloaded */
#define SEPARATOR '\n'      /* no name has one */
#define KEY_TEXT (sizeof((struct java_place *)0)->function + JAVA_FILE_TEXT)

/* One poll. */
struct poll {
	struct java_names *n;
	struct dump_writer *w;
	uint64_t unloads;   /* as it began */
	uint64_t before_ns; /* when the one before it was; 0: there was none */
	uint64_t until_ns;
	bool last; /* of the session */
};

static uint64_t unloads_now(struct java_names *n)
{
	uint64_t count;

	return n->counter && target_read_u64(&n->view.memory, n->counter, &count, ERR_IGNORED) == 0 ? count : NO_COUNT;
}

struct java_names *java_names_new(const struct java_view *view, const struct target_memory *tm, uint64_t dump_max_bytes)
{
	struct java_names *n = calloc(1, sizeof *n);
	struct budget budget;

	if (!n)
		return NULL;
	budget_start(&budget, POLL_BYTES, POLL_WORK);
	n->view = *view;
	n->view.memory = target_memory_charged(tm, &budget);
	n->bytes_max = dump_max_bytes / PART_OF_DUMP;
	if (java_unloads_find(&n->view, &n->counter, ERR_IGNORED))
		n->counter = 0;
	n->unloads = unloads_now(n);
	n->view.memory.budget = NULL;
	return n;
}

void java_names_free(struct java_names *n)
{
	if (!n)
		return;
	new_stacks_done(&n->stacks);
	map_done(&n->word_at);
	map_done(&n->known_at);
	string_table_done(&n->methods);
	free(n->words);
	free(n->pending);
	free(n->known);
	free(n);
}

/* ---- which frames there are ---- */

static void add_word(struct java_names *n, uint64_t frame)
{
	if (n->failed || map_find(&n->word_at, frame))
		return;
	if (n->word_count == DUMP_JAVA_FRAMES_MAX) {
		n->no_room++;
		return;
	}
	if (!grow_list(n->words, n->word_count) || !grow_list(n->pending, n->pending_count) ||
	    map_put(&n->word_at, frame, n->word_count)) {
		n->failed = true;
		return;
	}
	n->words[n->word_count] = (struct java_word){ .frame = frame, .unloads = n->unloads, .poll = n->polls };
	n->pending[n->pending_count++] = n->word_count++;
}

static void on_stack(void *arg, const uint64_t *frames, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (frames[i] & JAVA_FRAME_MARK)
			add_word(arg, frames[i]);
}

/* ---- methods ---- */

static void key_of(const struct java_place *place, char key[KEY_TEXT])
{
	snprintf(key, KEY_TEXT, "%s%c%s", place->function, SEPARATOR, place->file);
}

static bool has_room(struct java_names *n, uint64_t bytes)
{
	if (n->bytes + bytes > n->bytes_max)
		return false;
	n->bytes += bytes;
	return true;
}

/* The id of a method that is called so; it is written if it is new. 0: no room. */
static uint32_t method_id(struct poll *p, const struct java_called *called)
{
	const struct java_place *place = &called->place;
	struct java_names *n = p->n;
	char key[KEY_TEXT];
	uint32_t number;

	key_of(place, key);
	if (string_table_find(&n->methods, key, &number))
		return number + 1;
	if (n->methods.count == DUMP_JAVA_METHODS_MAX ||
	    !has_room(n, sizeof(struct dump_java_method) + strlen(key) + 2) ||
	    dump_writer_java_method(p->w, n->methods.count + 1, called->method ? 0 : DUMP_JAVA_STUB, place->function,
	                            place->file, ERR_IGNORED) < 0)
		return 0;
	if (string_table_add(&n->methods, key, &number)) {
		n->failed = true; /* its id is taken */
		return 0;
	}
	return number + 1;
}

static struct java_known *known_method(struct java_names *n, uint64_t method)
{
	const uint32_t *at = map_find(&n->known_at, method);

	return at ? &n->known[*at] : NULL;
}

/* It was read when so many classes had been unloaded, or a little later: then it is looked at again. */
static void keep_method(struct poll *p, uint64_t method, uint32_t id)
{
	struct java_names *n = p->n;
	struct java_known *known = known_method(n, method);
	const struct java_known fresh = { .method = method, .id = id, .since = n->polls, .unloads = p->unloads };

	if (known && known->gone) {
		*known = fresh;
		return;
	}
	if (known || !grow_list(n->known, n->known_count) || map_put(&n->known_at, method, n->known_count))
		return;
	n->known[n->known_count++] = fresh;
}

/* ---- frames ---- */

/*
 * Was the Method read before the frame was stored? While it is being stored it is on a stack, so its class stays. The
 * poll before the one that has found it came by before, and read Methods a little later; the age is changed after that.
 * Ages come again: a frame that was found before the change is of one that was the same long ago.
 */
static bool known_before(const struct poll *p, const struct java_word *word, const struct java_known *known)
{
	const bool of_age = JAVA_FRAME_AGE(word->frame) == p->w->own->java_age && word->poll > p->n->age_poll;

	return known->since + 1 < word->poll || (of_age && known->since <= p->n->age_poll);
}

/* Of a frame of the interpreter: is its Method the one that was recorded? 0: that cannot be proved. -EAGAIN: the next
 * look may prove it. */
static int is_proved(struct poll *p, const struct java_word *word, uint32_t id)
{
	struct java_names *n = p->n;
	const struct java_known *known = known_method(n, n->list[0].method);
	uint64_t now = unloads_now(n);

	if (now == NO_COUNT)
		return 0;
	if (now == word->unloads)
		return 1;
	if (!known || known->gone || known->id != id || !known_before(p, word, known))
		return 0;
	return known->unloads == now ? 1 : p->last ? 0 : -EAGAIN;
}

/* -ENOSPC: there is no room. -EAGAIN: it waits for the next look. */
static int write_word(struct poll *p, struct java_word *word, uint32_t count)
{
	struct dump_java_call calls[DUMP_JAVA_DEPTH_MAX];
	struct java_names *n = p->n;

	for (uint32_t i = 0; i < count; i++) {
		int32_t line = n->list[i].place.line;
		calls[i] = (struct dump_java_call){ method_id(p, &n->list[i]), line > 0 ? line : 0 };
		if (!calls[i].method)
			return -ENOSPC;
	}
	if (!java_frame_is_compiled(&n->view, word->frame)) {
		const int proved = is_proved(p, word, calls[0].method);
		if (proved < 0)
			return proved;
		keep_method(p, n->list[0].method, calls[0].method);
		if (!proved) {
			n->unsure++;
			return 0;
		}
		word->method = n->list[0].method;
	}
	return has_room(n, sizeof(struct dump_java_calls) + count * sizeof *calls) &&
	                       dump_writer_java_calls(p->w, word->frame, word->method ? DUMP_JAVA_INTERPRETED : 0,
	                                              calls, count, &word->record, ERR_IGNORED) == 0
	               ? 0
	               : -ENOSPC;
}

/* False: it is to be tried again. */
static bool name_word(struct poll *p, struct java_word *word)
{
	struct java_names *n = p->n;
	uint32_t count = 0;
	int rc = -EINVAL;

	for (unsigned look = 0; look < LOOKS && rc && rc != -ENOENT; look++)
		rc = java_frame_read(&n->view, word->frame, n->list, &count, ERR_IGNORED);
	if (rc && rc != -ENOENT && ++word->tries < TRIES_MAX)
		return false;
	if (rc) {
		n->gone++;
		return true;
	}
	rc = write_word(p, word, count);
	if (rc == -EAGAIN) {
		word->look = n->looks + 1;
		return false;
	}
	n->no_room += rc == -ENOSPC;
	n->named += word->record != 0;
	return true;
}

static bool waits(const struct poll *p, const struct java_word *word)
{
	return word->look > p->n->looks && !p->last;
}

static void name_words(struct poll *p)
{
	struct java_names *n = p->n;
	uint32_t left = 0;

	for (uint32_t i = 0; i < n->pending_count; i++) {
		struct java_word *word = &n->words[n->pending[i]];
		bool late = clock_monotonic_ns() > p->until_ns;
		if (late || waits(p, word) || (!name_word(p, word) && !p->last))
			n->pending[left++] = n->pending[i];
	}
	n->pending_count = left;
}

/* ---- classes that were unloaded ---- */

/* Is the Method what it was, of a class that is loaded? */
static bool still_is(struct java_names *n, struct java_loaded *loaded, const struct java_known *known)
{
	struct java_method m;
	char key[KEY_TEXT];
	uint32_t number;
	bool has;

	for (unsigned look = 0; look < LOOKS; look++) {
		if (java_method_read(&n->view, known->method, 0, &m, ERR_IGNORED) ||
		    java_loaded_has(loaded, &n->view, m.holder, &has, ERR_IGNORED) ||
		    java_method_place(&n->view, &m, 0, &n->list[0].place, ERR_IGNORED))
			continue;
		key_of(&n->list[0].place, key);
		return has && string_table_find(&n->methods, key, &number) && number + 1 == known->id;
	}
	return false;
}

/* The frames of Methods that have gone lose their names. */
static void drop_names(struct poll *p)
{
	struct java_names *n = p->n;

	for (uint32_t i = 0; i < n->word_count; i++) {
		struct java_word *word = &n->words[i];
		const struct java_known *known = word->method ? known_method(n, word->method) : NULL;
		if (!known || !known->gone)
			continue;
		dump_writer_java_gone(p->w, word->record);
		word->method = 0;
		n->named--;
		n->gone++;
	}
}

static bool is_to_be_looked_at(const struct poll *p, const struct java_known *known)
{
	return !known->gone && (known->again || known->unloads != p->unloads);
}

/* As far as there is time; the rest at the next polls. What the last one does not reach counts as gone. */
static void look_at_known(struct poll *p, struct java_loaded *loaded)
{
	const uint64_t until_ns = clock_monotonic_ns() + (p->last ? JAVA_LAST_NS : JAVA_POLL_NS);
	struct java_names *n = p->n;
	bool any = false;

	for (uint32_t i = 0; i < n->known_count; i++, n->next_look++) {
		struct java_known *known = &n->known[n->next_look % n->known_count];
		if (!is_to_be_looked_at(p, known))
			continue;
		const bool late = clock_monotonic_ns() > until_ns;
		if (late && !p->last)
			break;
		const bool gone = late || !still_is(n, loaded, known);
		if (gone && unloads_now(n) == NO_COUNT)
			break; /* the process is: nothing has changed that could still be recorded */
		known->gone = gone;
		known->again = known->unloads != p->unloads;
		known->unloads = p->unloads;
		any |= gone;
	}
	if (any)
		drop_names(p);
}

static bool is_behind(const struct poll *p)
{
	for (uint32_t i = 0; i < p->n->known_count; i++)
		if (is_to_be_looked_at(p, &p->n->known[i]))
			return true;
	return false;
}

static void look_again(struct poll *p)
{
	struct java_names *n = p->n;
	const uint64_t began_ns = clock_monotonic_ns();
	struct java_loaded loaded;
	int rc = -EINVAL;

	if (!is_behind(p)) {
		n->behind_ns = 0;
		return;
	}
	if (!n->behind_ns) /* classes may have been unloaded right after the poll before */
		n->behind_ns = p->before_ns ? p->before_ns : began_ns;
	dump_writer_java_behind(p->w, true);
	if (began_ns < n->rest_until_ns && !p->last)
		return;
	for (unsigned look = 0; look < LOOKS && rc && rc != -ENOENT; look++) {
		rc = java_loaded_read(&loaded, &n->view, ERR_IGNORED);
		if (rc)
			java_loaded_done(&loaded);
	}
	if (rc)
		loaded = (struct java_loaded){ 0 }; /* then no class is */
	if (rc == 0 || rc == -ENOENT || p->last)
		look_at_known(p, &loaded);
	java_loaded_done(&loaded);
	n->looks++;
	if (!is_behind(p)) {
		n->behind_ns = 0;
		dump_writer_java_behind(p->w, false);
	}
	n->rest_until_ns = clock_monotonic_ns() + JAVA_LOOK_PAUSE * (clock_monotonic_ns() - began_ns);
}

/* Frames that come from now on are other ones. */
static void change_age(struct poll *p)
{
	const uint64_t age = p->w->own->java_age;

	dump_writer_java_age(p->w, age % JAVA_FRAME_AGE_MAX + 1); /* never 0 again, of which the first ones are */
	p->n->age_poll = p->n->polls;
}

void java_names_poll(struct java_names *n, struct dump_writer *w, const struct target_memory *tm, bool last)
{
	struct poll p = { .n = n, .w = w, .before_ns = n->polled_ns, .last = last };
	struct budget budget;

	budget_start(&budget, POLL_BYTES, POLL_WORK);
	n->view.memory = target_memory_charged(tm, &budget);
	n->polls++;
	p.unloads = unloads_now(n);
	n->unsure = 0;
	if (n->counter && p.unloads == NO_COUNT) {
		n->view.memory.budget = NULL;
		return; /* the process is gone, or about to be */
	}
	n->polled_ns = last ? UINT64_MAX : clock_monotonic_ns();
	look_again(&p);
	if (new_stacks_each(&n->stacks, w, last, on_stack, n, ERR_IGNORED) < 0)
		n->failed = true;
	p.until_ns = clock_monotonic_ns() + (last ? JAVA_LAST_NS : JAVA_POLL_NS);
	name_words(&p);
	n->gone += n->unsure;
	if (n->unsure && n->counter)
		change_age(&p);
	n->unloads = p.unloads;
	n->view.memory.budget = NULL;
}

bool java_names_ended(struct java_names *n, struct dump_writer *w)
{
	struct poll p = { .n = n, .w = w, .unloads = n->unloads };
	const uint64_t now = clock_monotonic_ns();
	const bool held_up = now > n->polled_ns && now - n->polled_ns > JAVA_HELD_UP_NS;
	const bool behind = n->behind_ns && now - n->behind_ns > JAVA_HELD_UP_NS;
	const uint32_t named = n->named;

	for (uint32_t i = 0; i < n->known_count; i++)
		n->known[i].gone |= held_up || (behind && is_to_be_looked_at(&p, &n->known[i]));
	if (held_up || behind)
		drop_names(&p);
	dump_writer_java_behind(w, false);
	return n->named != named;
}
