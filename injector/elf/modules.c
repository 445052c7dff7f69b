/* SPDX-License-Identifier: MIT */
/*
 * The loader changes its lists while we read them. So each node's back link is checked, everything that was
 * read is remembered as a list of pieces of memory (the watch), and at the end these are read again: equal
 * means that we saw one state. The same comparison, repeated by the session, tells when a library came or
 * went.
 */
#include "elf/modules.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/cleanup.h"
#include "dump/note_form.h"
#include "base/grow.h"
#include "payload_image.h"
#include "base/printable.h"

#define THREAD_TRIES 100u
#define NAMESPACES_MAX 64u /* glibc has 16 namespaces */
#define NAME_MAX_BYTES 4096u
#define DYNAMIC_MAX 4096u
#define HEADER_DISTANCE_MAX 4096 /* mappings between the header of a module and what else is of it */
#define RT_CONSISTENT_ 0
#define UNREAD_MAX 100u /* sentences */

/* <link.h> as it lies in the target. */
struct debug_head {
	int32_t version;
	int32_t pad;
	uint64_t map;
	uint64_t brk;
	int32_t state;
	int32_t pad2;
	uint64_t loader_base;
	uint64_t next; /* only if version >= 2 */
};

struct map_node {
	uint64_t bias;
	uint64_t name;
	uint64_t dynamic;
	uint64_t next;
	uint64_t prev;
};

enum piece_kind { PIECE_EXACT, PIECE_DEBUG };

struct watch_piece {
	uint64_t address;
	size_t bytes;
	size_t offset; /* in contents */
	enum piece_kind kind;
};

struct modules_watch {
	struct watch_piece *pieces;
	size_t count;
	uint8_t *contents;
	size_t used, size;
};

static int watch_add(struct modules_watch *w, uint64_t address, const void *contents, size_t bytes,
                     enum piece_kind kind, struct err *e)
{
	if (!grow_list(w->pieces, w->count))
		return err_set(e, ENOMEM, "no memory for the list of modules");
	if (w->size - w->used < bytes) {
		size_t size = (w->size ? w->size * 2 : 8192) + bytes;
		uint8_t *more = realloc(w->contents, size);
		if (!more)
			return err_set(e, ENOMEM, "no memory for the list of modules");
		w->contents = more;
		w->size = size;
	}
	memcpy(w->contents + w->used, contents, bytes);
	w->pieces[w->count++] = (struct watch_piece){ address, bytes, w->used, kind };
	w->used += (bytes + 7) & ~(size_t)7;
	if (w->used > w->size)
		w->used = w->size;
	return 0;
}

static void watch_free(struct modules_watch *w)
{
	if (!w)
		return;
	free(w->pieces);
	free(w->contents);
	free(w);
}

/* ---- where the lists begin ---- */

struct auxv {
	uint64_t phdr, base, vdso;
};

static int read_auxv(struct auxv *a, pid_t pid, struct err *e)
{
	char path[64];
	uint64_t words[128];

	snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, words, sizeof words);
	if (n == 0)
		return err_set(e, ESRCH, "%s is empty: the thread has exited", path);
	if (n < 0)
		return errno == ENOENT ? err_set(e, ESRCH, "no process %d", (int)pid)
		                       : err_sys(e, "cannot read %s", path);
	*a = (struct auxv){ 0 };
	for (size_t i = 0; i + 1 < (size_t)n / 8; i += 2) {
		if (words[i] == AT_PHDR)
			a->phdr = words[i + 1];
		else if (words[i] == AT_BASE)
			a->base = words[i + 1];
		else if (words[i] == AT_SYSINFO_EHDR)
			a->vdso = words[i + 1];
	}
	return 0;
}

/* A 32-bit program has another auxv, so its kind is looked at first. */
static int check_program(pid_t pid, struct err *e)
{
	char path[64];
	Elf64_Ehdr h = { 0 };

	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT
		               ? err_set(e, ESRCH, "process %d has no program (a zombie or a kernel thread)", (int)pid)
		               : err_sys(e, "cannot open %s", path);
	if (read(fd, &h, sizeof h) < 0)
		return err_sys(e, "cannot read %s", path);
	return elf_header_check(&h, e);
}

/* By a thread that may end meanwhile. */
static int read_program(struct auxv *a, const struct target_memory *tm, struct err *e)
{
	int r = -ESRCH;

	for (unsigned i = 0; i < THREAD_TRIES && r == -ESRCH; i++) {
		pid_t thread = target_memory_thread(tm);
		r = check_program(thread, e);
		r = r ?: read_auxv(a, thread, e);
		if (!tm->process)
			break;
	}
	return r;
}

/* The mapping of the ELF header that belongs to an address in the image. */
static uint64_t find_header(const struct maps *maps, uint64_t address)
{
	const struct mapping *here = maps_find(maps, address);

	if (!here)
		return 0;
	if (!here->inode)
		return strcmp(here->path, "[vdso]") ? 0 : here->start;
	for (const struct mapping *m = here;
	     m >= maps->list && here - m < HEADER_DISTANCE_MAX && here->end - m->start < 1ull << 36; m--)
		if (mapping_same_file(m, here) && m->offset == 0)
			return m->start;
	return 0;
}

static bool has_segment(const struct elf_module *m, uint32_t type)
{
	for (size_t i = 0; i < m->phdr_count; i++)
		if (m->phdrs[i].p_type == type)
			return true;
	return false;
}

/*
 * The address of struct r_debug as a loader exports it: _r_debug itself (glibc), _dl_debug_addr points to it
 * (musl).
 */
static uint64_t exported_debug(const struct elf_module *loader, const struct target_memory *tm)
{
	struct elf_symbol s;
	uint64_t address;

	if (elf_module_find(loader, "_r_debug", NULL, &s))
		return s.address;
	if (elf_module_find(loader, "_dl_debug_addr", NULL, &s) &&
	    !target_read_u64(tm, s.address, &address, ERR_IGNORED))
		return address;
	return 0;
}

static uint64_t loader_debug(const struct target_memory *tm, const struct maps *maps, uint64_t base)
{
	struct elf_module loader;

	if (!base || elf_module_read(&loader, tm, maps, base, 0, NULL, ERR_IGNORED))
		return 0;
	uint64_t address = exported_debug(&loader, tm);
	elf_module_done(&loader);
	return address;
}

/* *address: 0 in a static program, which has no list; *header of the program. */
static int find_debug(uint64_t *address, uint64_t *program_header, const struct auxv *a, const struct target_memory *tm,
                      const struct maps *maps, struct err *e)
{
	struct elf_module program;
	uint64_t header = find_header(maps, a->phdr);

	if (!header)
		return err_set(e, ENOEXEC, "its program headers are not in a mapped file");
	int r = elf_module_read(&program, tm, maps, header, 0, NULL, e);
	if (r)
		return r;
	bool interpreted = has_segment(&program, PT_INTERP);
	/*
	 * Without an interpreter it is static, or the loader itself, run by name with the program as its
	 * argument.
	 */
	*address = interpreted ? program.debug : exported_debug(&program, tm);
	if (interpreted && !program.has_debug)
		*address = loader_debug(tm, maps, a->base);
	elf_module_done(&program);
	*program_header = header;
	if (*address || !interpreted)
		return 0;
	return err_set(e, EAGAIN, "its loader has not set up the list of modules yet");
}

/* ---- the walk ---- */

struct walk {
	struct modules out;
	const struct target_memory *tm;
	const struct maps *maps;
	struct auxv auxv;
	uint64_t loader_base;
	unsigned unread; /* sentences in out.unread */
};

static int note_unread(struct walk *w, const char *name, const char *why, struct err *e)
{
	char line[NOTE_FORM_TEXT], *text;

	if (w->unread++ > UNREAD_MAX)
		return 0;
	if (w->unread > UNREAD_MAX) {
		name = "more modules than are named here";
		why = "there are too many of them";
	}
	note_form_write(line, NOTE_FORM_UNREAD, name, NULL, why);
	if (asprintf(&text, "%s%s\n", w->out.unread ? w->out.unread : "", line) < 0)
		return err_set(e, ENOMEM, "no memory for the list of modules");
	free(w->out.unread);
	w->out.unread = text;
	return 0;
}

/* The first one is enough. */
static int note_broken(struct walk *w, const char *name, struct err *e)
{
	if (!w->out.broken && asprintf(&w->out.broken, "%s", *name ? name : "the program") < 0) {
		w->out.broken = NULL;
		return err_set(e, ENOMEM, "no memory for the list of modules");
	}
	return 0;
}

/*
 * glibc compares the name of what dlopen is to open with the DT_SONAME of each library that is loaded, through its
 * dynamic section and string table, and trusts both. So must we: they are where the loader found them, and can be read.
 */
static bool loader_can_read(const struct walk *w, const struct map_node *node)
{
	uint64_t strings = 0, name = 0;
	bool has_name = false;
	Elf64_Dyn entry;
	char byte;

	for (unsigned i = 0;; i++) {
		if (i == DYNAMIC_MAX ||
		    target_read(w->tm, node->dynamic + i * sizeof entry, &entry, sizeof entry, ERR_IGNORED))
			return false;
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_STRTAB)
			strings = entry.d_un.d_ptr;
		if (entry.d_tag == DT_SONAME) {
			name = entry.d_un.d_val;
			has_name = true;
		}
	}
	/* Absolute on glibc, relative on musl; every shared object has a string table. */
	return strings && (!has_name || !target_read(w->tm, strings + name, &byte, 1, ERR_IGNORED) ||
	                   !target_read(w->tm, node->bias + strings + name, &byte, 1, ERR_IGNORED));
}

/*
 * Reads the image at header and puts it on the list, unless it is there already (ld.so is in every
 * namespace).
 */
static int add_image(struct walk *w, uint64_t header, const struct map_node *node, uint64_t node_address,
                     uint32_t namespace_id, const char *name, struct err *e)
{
	struct err why;
	struct elf_module module;

	for (size_t i = 0; header && i < w->out.count; i++)
		if (w->out.list[i].header == header)
			return 0;
	int r = budget_work(w->tm->budget, 2 * BUDGET_COMPARE * w->out.count, e);
	if (r)
		return r;
	if (!grow_list(w->out.list, w->out.count))
		return err_set(e, ENOMEM, "no memory for the list of modules");
	r = header ? elf_module_read(&module, w->tm, w->maps, header, node ? node->dynamic : 0, name, &why)
	           : err_set(&why, ENOENT, "its ELF header is not mapped");
	if (r == -ESRCH || r == -ENOMEM || r == -E2BIG) {
		*e = why;
		return r;
	}
	if (r)
		return note_unread(w, *name ? name : "the program", why.text, e);
	module.link_map = node_address;
	module.namespace_id = namespace_id;
	module.is_main = node && !node->prev && namespace_id == 0;
	module.is_loader = w->loader_base && module.start <= w->loader_base && w->loader_base < module.end;
	w->out.list[w->out.count++] = module;
	return 0;
}

static bool has_strings(const struct walk *w, uint64_t header)
{
	for (size_t i = 0; header && i < w->out.count; i++)
		if (w->out.list[i].header == header)
			return w->out.list[i].strings != NULL;
	return false;
}

static int add_node(struct walk *w, uint64_t address, const struct map_node *node, uint32_t namespace_id, struct err *e)
{
	char name[NAME_MAX_BYTES] = "";
	int r = budget_take(w->tm->budget, 2 * sizeof *node + sizeof(struct watch_piece), e);

	r = r ?: watch_add(w->out.watch, address, node, sizeof *node, PIECE_EXACT, e);
	if (!r && node->name && !target_read_string(w->tm, node->name, name, sizeof name, ERR_IGNORED))
		r = budget_take(w->tm->budget, 2 * strlen(name) + sizeof(struct watch_piece), e);
	else
		name[0] = 0;
	if (!r && name[0])
		r = watch_add(w->out.watch, node->name, name, strlen(name) + 1, PIECE_EXACT, e);
	if (r || !node->dynamic)
		return r;
	/* Mapped after maps was read; or a library that the program has torn apart, if the list stays as it is. */
	if (!maps_find(w->maps, node->dynamic)) {
		uint64_t word;
		r = target_read_u64(w->tm, node->dynamic, &word, ERR_IGNORED);
		if (r != -EFAULT)
			return err_set(e, EAGAIN, "its list of modules is changing");
		r = note_unread(w, name, "its dynamic section is not mapped", e);
		return r ?: note_broken(w, name, e);
	}
	uint64_t header = find_header(w->maps, node->dynamic);
	/* Text that was remapped onto other memory: the header is where the bias says, if anywhere. */
	if (!header && maps_find(w->maps, node->bias))
		header = node->bias;
	r = add_image(w, header, node, address, namespace_id, name, e);
	return !r && !has_strings(w, header) && !loader_can_read(w, node) ? note_broken(w, name, e) : r;
}

static int walk_list(struct walk *w, uint64_t first, uint32_t namespace_id, struct err *e)
{
	uint64_t prev = 0;
	size_t count = 0;

	for (uint64_t address = first; address; count++) {
		struct map_node node;
		int r = target_read(w->tm, address, &node, sizeof node, e);

		if (r == -ESRCH)
			return r;
		if (r || node.prev != prev || count >= MODULES_MAX)
			return err_set(e, EAGAIN, "its list of modules is changing");
		r = add_node(w, address, &node, namespace_id, e);
		if (r)
			return r;
		prev = address;
		address = node.next;
	}
	return 0;
}

static int walk_spaces(struct walk *w, uint64_t debug, struct err *e)
{
	for (uint32_t namespace_id = 0; debug && namespace_id < NAMESPACES_MAX; namespace_id++) {
		struct debug_head head = { 0 };
		size_t bytes = offsetof(struct debug_head, next);
		int r = target_read(w->tm, debug, &head, bytes, e);

		if (!r && head.version >= 2 && head.version < 100) {
			bytes = sizeof head;
			r = target_read(w->tm, debug, &head, bytes, e);
		}
		if (r)
			return r;
		if (namespace_id == 0 && !head.map)
			return err_set(e, EAGAIN, "its loader has not set up the list of modules yet");
		if (namespace_id == 0)
			w->loader_base = w->auxv.base ? w->auxv.base : head.loader_base;
		r = watch_add(w->out.watch, debug, &head, bytes, PIECE_DEBUG, e);
		r = r ?: walk_list(w, head.map, namespace_id, e);
		if (r)
			return r;
		debug = head.next;
	}
	return 0;
}

static int add_static_program(struct walk *w, uint64_t header, struct err *e)
{
	int r = add_image(w, header, NULL, 0, 0, "", e);

	w->out.is_static = true;
	if (!r && w->out.count)
		w->out.list[0].is_main = true;
	return r;
}

static int add_vdso(struct walk *w, struct err *e)
{
	return w->auxv.vdso ? add_image(w, w->auxv.vdso, NULL, 0, 0, "[vdso]", e) : 0;
}

/* The payload where memattach has mapped it by itself: no loader knows it. One that a loader knows is there already. */
static int add_mapped_payload(struct walk *w, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < w->maps->count && !r; i++) {
		const struct mapping *m = &w->maps->list[i];
		if (m->offset == 0 && m->inode && !strcmp(m->path, "/memfd:" PAYLOAD_MEMFD_NAME))
			r = add_image(w, m->start, NULL, 0, 0, "", e);
	}
	return r;
}

int modules_read(struct modules *m, const struct target_memory *memory, const struct maps *maps, struct err *e)
{
	struct budget budget;
	const struct target_memory metered = target_memory_charged(memory, &budget);
	const struct target_memory *tm = &metered;
	struct walk w = { .tm = tm, .maps = maps };
	uint64_t debug = 0, program = 0;
	bool changed;
	int r = read_program(&w.auxv, tm, e);

	budget_start(&budget, BUDGET_MODULES_BYTES, BUDGET_MODULES_WORK);
	r = r ?: find_debug(&debug, &program, &w.auxv, tm, maps, e);
	if (r)
		return r;
	w.out.watch = calloc(1, sizeof *w.out.watch);
	if (!w.out.watch)
		return err_set(e, ENOMEM, "no memory for the list of modules");
	budget_start(&budget, BUDGET_MODULES_BYTES, BUDGET_MODULES_WORK); /* what find_debug read is gone again */
	r = debug ? walk_spaces(&w, debug, e) : add_static_program(&w, program, e);
	r = r ?: add_vdso(&w, e);
	r = r ?: add_mapped_payload(&w, e);
	if (!r && !w.out.unread && !(w.out.unread = strdup("")))
		r = err_set(e, ENOMEM, "no memory for the list of modules");
	r = r ?: modules_changed(&w.out, tm, &changed, &w.out.consistent, e);
	if (budget.refusal.code)
		r = budget_check(&budget, e); /* also if it was passed over, or taken for a change */
	if (!r && changed)
		r = err_set(e, EAGAIN, "its list of modules is changing");
	if (!r && !modules_main(&w.out))
		r = err_set(e, ENOEXEC, "its program cannot be read: %s", w.out.unread);
	if (r) {
		modules_free(&w.out);
		return r;
	}
	*m = w.out;
	return 0;
}

void modules_free(struct modules *m)
{
	for (size_t i = 0; i < m->count; i++)
		elf_module_done(&m->list[i]);
	free(m->list);
	free(m->unread);
	free(m->broken);
	watch_free(m->watch);
	*m = (struct modules){ 0 };
}

/* ---- the watch ---- */

static bool debug_differs(const uint8_t *was, const uint8_t *now, size_t bytes, bool *consistent)
{
	struct debug_head a = { 0 }, b = { 0 };

	memcpy(&a, was, bytes);
	memcpy(&b, now, bytes);
	if (b.state != RT_CONSISTENT_)
		*consistent = false;
	return a.map != b.map || a.next != b.next || a.version != b.version;
}

int modules_changed(const struct modules *m, const struct target_memory *tm, bool *changed, bool *consistent,
                    struct err *e)
{
	const struct modules_watch *w = m->watch;
	AUTO_FREE uint8_t *now = malloc(w->used + 1);
	AUTO_FREE struct target_piece *pieces = calloc(w->count + 1, sizeof *pieces);
	bool differs = false, steady = true;

	if (!now || !pieces)
		return err_set(e, ENOMEM, "no memory to look at the modules");
	for (size_t i = 0; i < w->count; i++)
		pieces[i] =
			(struct target_piece){ w->pieces[i].address, w->pieces[i].bytes, now + w->pieces[i].offset };
	int r = target_read_batch(tm, pieces, w->count, e);
	if (r && r != -EFAULT)
		return r;
	for (size_t i = 0; i < w->count; i++) {
		const struct watch_piece *p = &w->pieces[i];

		/* A node whose memory is gone was unloaded; whether the loader has come to an end only its own words
		 * tell. */
		if (r && p->kind == PIECE_EXACT)
			continue;
		if (r && target_read(tm, p->address, now + p->offset, p->bytes, ERR_IGNORED))
			steady = false;
		else if (p->kind == PIECE_DEBUG)
			differs |= debug_differs(w->contents + p->offset, now + p->offset, p->bytes, &steady);
		else
			differs |= memcmp(w->contents + p->offset, now + p->offset, p->bytes) != 0;
	}
	*changed = differs || r;
	if (consistent)
		*consistent = steady;
	return 0;
}

int modules_watch_word(struct modules *m, uint64_t address, uint64_t value, struct err *e)
{
	return watch_add(m->watch, address, &value, sizeof value, PIECE_EXACT, e);
}
