/* SPDX-License-Identifier: MIT */
#include "touch/patches/load.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "touch/remote/handed_open.h"
#include "touch/remote/image_map.h"
#include "process/live_thread.h"
#include "touch/patches/loader_moment.h"
#include "payload_image.h"
#include "session/payload_place.h"

#define NAME_BYTES 700
_Static_assert(NAME_BYTES <= WORK_PATH_BYTES, "struct work_data");

static int layout(struct image_layout *out, struct err *e)
{
	return image_layout(out, payload_image, (size_t)(payload_image_end - payload_image), e);
}

static void read_dlerror(struct loan *l, char *text, size_t size)
{
	const uint64_t none[6] = { 0 };
	uint64_t message = 0;

	snprintf(text, size, "unknown reason");
	if (l->s->view.libc.dlerror &&
	    remote_call1(l->remote, l->s->view.libc.dlerror, none, &message, l->deadline_ns, ERR_IGNORED) == 0 &&
	    message)
		if (target_read_string(&l->s->memory, message, text, size, ERR_IGNORED) < 0)
			snprintf(text, size, "unknown reason");
}

static int refused(struct loan *l, const char *name, struct err *e)
{
	char error[1024];

	read_dlerror(l, error, sizeof error);
	const char *why = strncmp(error, name, strlen(name)) == 0 ? error + strlen(name) : error;
	return err_set(e, ENOEXEC, "the target's loader refused the payload%s%s", why == error ? ": " : "", why);
}

/*
 * The name /proc/thread-self/fd/N; not /proc/self: that shows no descriptors once the main thread has exited. It has a
 * number of "./" that differs from session to session, because glibc returns the old handle for a name that it has
 * loaded before, and N is used again.
 */
static void proc_name(char name[NAME_BYTES], int remote_fd, uint64_t unique)
{
	strcpy(name, "/proc/thread-self/");
	for (unsigned i = 0; i < unique % 251; i++)
		strcat(name, "./");
	snprintf(name + strlen(name), NAME_BYTES - strlen(name), "fd/%d", remote_fd);
}

static int write_call(const struct loan *l, const char *name, struct stub_call *call, struct err *e)
{
	const uint64_t at = REMOTE_AT(l->remote, data.path);

	*call = (struct stub_call){ .target = l->s->view.libc.dlopen,
		                    .argument = { at, RTLD_NOW | RTLD_LOCAL | l->s->view.libc.dlopen_mode_extra } };
	return target_write(l->remote->writer, CHANGE_WORK_AREA, at, name, strlen(name) + 1, e);
}

/* glibc leaves what it has mapped of a file that it then cannot load: with no room for its .bss, for one. */
static void unmap_refused(struct loan *l)
{
	struct maps maps = { 0 };
	int rc = live_thread_maps(&l->s->target, &maps, ERR_IGNORED);

	for (size_t i = 0; rc == 0 && i < maps.count; i++) {
		const struct mapping *m = &maps.list[i];
		struct stub_call call = image_map_undo_call(m->start, m->end - m->start);
		if (ours_has(&l->s->ours, m->dev_major, m->dev_minor, m->inode))
			rc = remote_call(l->remote, &call, 1, l->deadline_ns, ERR_IGNORED);
	}
	maps_free(&maps);
}

/* *handle: 0 if the name leads nowhere. */
static int open_by_name(struct loan *l, const char *name, uint64_t *handle, struct err *e)
{
	struct stub_call call;

	int rc = write_call(l, name, &call, e);
	rc = rc ?: remote_call(l->remote, &call, 1, l->deadline_ns, e);
	if (rc == 0)
		*handle = call.result;
	return rc;
}

static int open_handed(struct loan *l, int remote_fd, uint64_t unique, char name[HANDED_NAME_BYTES], uint64_t *handle,
                       struct err *e)
{
	struct stub_call call;
	bool handed = false;

	handed_open_name(name, unique);
	int rc = write_call(l, name, &call, e);
	rc = rc ?: handed_open_call(l->remote, &call, name, remote_fd, &handed, l->deadline_ns, e);
	if (rc == 0 && !call.result)
		rc = refused(l, name, e);
	if (rc == 0)
		*handle = call.result;
	return rc;
}

/*
 * The name leads nowhere soon, or elsewhere in a process that opens it to see what the loader knows: a debugger
 * (/proc/thread-self is its own then, and the descriptor a pipe of its own), or a library that names functions for the
 * program. A link map without a name is passed over by them all, as that of the program. dlclose frees the name; it
 * does not read it.
 */
static int hide_name(struct loan *l, uint64_t handle, const char *name, struct err *e)
{
	char now[NAME_BYTES];
	uint64_t at = 0;

	int rc = target_read_u64(&l->s->memory, handle + offsetof(struct link_map, l_name), &at, e);
	rc = rc ?: target_read_string(&l->s->memory, at, now, sizeof now, e);
	if (rc == 0 && strcmp(now, name) != 0)
		return 0;
	rc = rc ?: target_writer_add_change(l->remote->writer, CHANGE_LINK_NAME, at, now, "", 1, e);
	return rc < 0 ? rc : 0;
}

/*
 * Collectors take every writable segment that dl_iterate_phdr shows for roots, and may come to read it when the payload
 * is gone. So the program headers, of which the mapped page is the target's own copy, call none of it writable: glibc
 * needs them no more.
 */
static int hide_data(struct loan *l, uint64_t base, struct err *e)
{
	Elf64_Ehdr header;
	Elf64_Phdr p;

	int rc = target_read(&l->s->memory, base, &header, sizeof header, e);
	for (unsigned i = 0; rc == 0 && i < header.e_phnum; i++) {
		const uint64_t at = base + header.e_phoff + i * sizeof p;
		rc = target_read(&l->s->memory, at, &p, sizeof p, e);
		if (rc < 0 || p.p_type != PT_LOAD || !(p.p_flags & PF_W))
			continue;
		p.p_flags &= ~(Elf64_Word)PF_W;
		rc = target_write(l->remote->writer, CHANGE_PAYLOAD, at, &p, sizeof p, e);
	}
	return rc;
}

/* Both C libraries keep the load address in the first word of what dlopen returns (struct link_map of <link.h>). */
static int open_by_loader(struct loan *l, int remote_fd, uint64_t *handle, uint64_t *base, struct err *e)
{
	const uint64_t unique = l->s->recording.dump.own->session_id;
	char name[NAME_BYTES];
	struct err first;

	proc_name(name, remote_fd, unique);
	int rc = open_by_name(l, name, handle, e);
	if (rc == 0 && !*handle) {
		refused(l, name, &first);
		rc = open_handed(l, remote_fd, unique, name, handle, e);
		if (rc == -ENOEXEC) {
			unmap_refused(l);
			*e = first;
		}
	}
	if (rc == 0)
		changes_made(l->remote->writer->changes, CHANGE_PAYLOAD);
	rc = rc ?: hide_name(l, *handle, name, e);
	rc = rc ?: target_read_u64(&l->s->memory, *handle, base, e);
	return rc < 0 ? rc : hide_data(l, *base, e);
}

static int load_by_loader(struct loan *l, int remote_fd, uint64_t *handle, uint64_t *base, struct err *e)
{
	struct loader_moment moment;

	int rc = loader_moment_begin(&moment, l, e);
	rc = rc ?: open_by_loader(l, remote_fd, handle, base, e);
	loader_moment_end(&moment);
	return rc;
}

int load_payload(struct loan *l, int remote_fd, uint64_t *handle, struct err *e)
{
	struct image_layout image;
	uint64_t base = 0;

	*handle = 0;
	int rc = layout(&image, e);
	if (rc == 0)
		rc = libc_loads_payload(&l->s->view.libc)
		             ? load_by_loader(l, remote_fd, handle, &base, e)
		             : image_map(l->remote, &image, remote_fd, &base, l->deadline_ns, e);
	return rc < 0 ? rc : payload_place_set(l->s, base, base + image.bytes, base + image.code_end, e);
}

/* What is unmapped is looked at. Anonymous memory of the program may be next to ours, and the kernel shows it as one.
 */
static int check_mappings(const struct session *s, struct err *e)
{
	const struct payload_place *p = &s->payload;
	const struct mapping *image = maps_find(&s->view.maps, p->base);

	for (size_t i = 0; i < s->view.maps.count; i++) {
		const struct mapping *m = &s->view.maps.list[i];
		if (m->end <= p->base || m->start >= p->end)
			continue;
		if (m->inode && !(image && mapping_same_file(m, image)))
			return err_set(e, EPROTO, "the program has mapped something else into the payload");
	}
	return 0;
}

int load_undo_call(const struct session *s, uint64_t handle, struct stub_call *call, struct err *e)
{
	if (handle && !s->view.libc.dlclose)
		return err_set(e, ENOENT, "the program has no dlclose to unload the payload with");
	if (handle) {
		*call = (struct stub_call){ .target = s->view.libc.dlclose, .argument = { handle } };
		return 0;
	}
	int rc = check_mappings(s, e);
	if (rc == 0)
		*call = image_map_undo_call(s->payload.base, s->payload.end - s->payload.base);
	return rc;
}

int load_undo_by(struct loan *l, struct stub_call *calls, unsigned count, struct err *e)
{
	const uint64_t dlclose = l->s->view.libc.dlclose;
	struct loader_moment moment = { .loan = l };
	int rc = 0;

	for (unsigned i = 0; i < count && rc == 0; i++)
		if (dlclose && calls[i].target == dlclose)
			rc = loader_moment_begin(&moment, l, e);
	rc = rc ?: remote_call(l->remote, calls, count, l->deadline_ns, e);
	if (rc == 0) {
		changes_end(&l->s->changes, CHANGE_PAYLOAD, CHANGE_UNDONE);
		changes_end(&l->s->changes, CHANGE_LINK_NAME, CHANGE_UNDONE);
	}
	loader_moment_end(&moment);
	return rc;
}

int load_undo(struct loan *l, uint64_t handle, struct err *e)
{
	struct stub_call call;

	int rc = load_undo_call(l->s, handle, &call, e);
	return rc < 0 ? rc : load_undo_by(l, &call, 1, e);
}
