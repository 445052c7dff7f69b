/* SPDX-License-Identifier: MIT */
#include "python/python_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/module_file.h"

#define COOKIE "xdebugpy"
#define SUFFIX ".cpython-3"
#define PIECE_BYTES (1u << 20)
#define OVERLAP_BYTES 64u
#define DATA_MAX (64ull << 20) /* constant data of the largest is some 10 MiB */
#define MINOR_MAX 99u
#define TEXTS_MAX 16u

/* What the constant data say. */
struct findings {
	uint32_t minor; /* of the suffix */
	bool several;   /* suffixes of several versions */
	bool debug, free_threaded;
	uint32_t texts[TEXTS_MAX][2]; /* minor version and patch level of each "3.9.2" */
	size_t text_count;
};

static size_t number_at(const uint8_t *at, size_t left, uint32_t *number)
{
	size_t n = 0;

	*number = 0;
	for (; n < left && n < 3 && at[n] >= '0' && at[n] <= '9'; n++)
		*number = *number * 10 + (at[n] - '0');
	return n;
}

/* After ".cpython-3": "11-", "13d-", "13td-". */
static void note_suffix(struct findings *f, const uint8_t *at, size_t left)
{
	uint32_t minor;
	size_t n = number_at(at, left, &minor);
	bool debug = false, free_threaded = false;

	for (; n < left && (at[n] == 'd' || at[n] == 't'); n++) {
		debug |= at[n] == 'd';
		free_threaded |= at[n] == 't';
	}
	if (n >= left || at[n] != '-' || minor == 0 || minor > MINOR_MAX)
		return;
	f->several |= f->minor && f->minor != minor;
	f->minor = minor;
	f->debug |= debug;
	f->free_threaded |= free_threaded;
}

/* "3.9.2" with its end, perhaps the end of a longer text, since linkers keep one copy of both. */
static void note_text(struct findings *f, const uint8_t *piece, size_t at, size_t bytes)
{
	uint32_t minor, patch;
	size_t n = at + 2, digits = number_at(piece + n, bytes - n, &minor);

	if (at > 0 && ((piece[at - 1] >= '0' && piece[at - 1] <= '9') || piece[at - 1] == '.'))
		return;
	n += digits;
	if (digits == 0 || n >= bytes || piece[n] != '.')
		return;
	n++;
	digits = number_at(piece + n, bytes - n, &patch);
	n += digits;
	if (digits == 0 || n >= bytes || piece[n] != 0 || minor < 9 || minor > MINOR_MAX)
		return;
	for (size_t i = 0; i < f->text_count; i++)
		if (f->texts[i][0] == minor && f->texts[i][1] == patch)
			return;
	if (f->text_count == TEXTS_MAX)
		return;
	f->texts[f->text_count][0] = minor;
	f->texts[f->text_count++][1] = patch;
}

/* Finds that begin in its first part are noted; those in the overlap belong to the next piece. */
static void search_piece(struct findings *f, const uint8_t *piece, size_t bytes, size_t first)
{
	const uint8_t *end = piece + bytes;

	for (const uint8_t *at = piece; (at = memmem(at, (size_t)(end - at), SUFFIX, sizeof SUFFIX - 1));) {
		at += sizeof SUFFIX - 1;
		note_suffix(f, at, (size_t)(end - at));
	}
	for (const uint8_t *at = piece + first; (at = memmem(at, (size_t)(end - at), "3.", 2)); at++)
		note_text(f, piece, (size_t)(at - piece), bytes);
}

static int search_segment(struct findings *f, const struct module_file *file, uint64_t start, uint64_t bytes,
                          struct err *e)
{
	AUTO_FREE uint8_t *piece = malloc(PIECE_BYTES + OVERLAP_BYTES);

	if (!piece)
		return err_set(e, ENOMEM, "no memory to read constant data");
	for (uint64_t done = 0; done < bytes; done += PIECE_BYTES) {
		/* A piece begins with the last bytes of the one before it. */
		uint64_t before = done ? OVERLAP_BYTES : 0, left = bytes - done;
		uint64_t part = before + (left < PIECE_BYTES ? left : PIECE_BYTES);
		int rc = module_file_read(file, start + done - before, piece, part, e);

		if (rc)
			return rc == -EFAULT ? 0 : rc;
		search_piece(f, piece, part, before / 2);
	}
	return 0;
}

static int search(struct findings *f, const struct module_file *file, struct err *e)
{
	const struct elf_module *m = file->module;
	uint64_t left = DATA_MAX;
	int rc = 0;

	for (size_t i = 0; i < m->phdr_count && rc == 0; i++) {
		const Elf64_Phdr *p = &m->phdrs[i];
		uint64_t bytes = p->p_filesz < left ? p->p_filesz : left;

		if (p->p_type != PT_LOAD || p->p_flags & PF_W)
			continue;
		rc = search_segment(f, file, m->bias + p->p_vaddr, bytes, e);
		left -= bytes;
	}
	return rc;
}

/* As Py_Version and PY_VERSION_HEX. */
static void take_hex(struct python_version *v, uint64_t hex)
{
	static const char levels[16] = { [0xa] = 'a', [0xb] = 'b', [0xc] = 'c', [0xf] = 'f' };

	if (hex >> 24 != 3 || (hex >> 16 & 0xff) == 0 || (hex >> 16 & 0xff) > MINOR_MAX)
		return;
	v->minor = (uint32_t)(hex >> 16 & 0xff);
	v->patch = (int)(hex >> 8 & 0xff);
	v->release = levels[hex >> 4 & 0xf] ? levels[hex >> 4 & 0xf] : '?';
	if (v->release == 'f')
		snprintf(v->text, sizeof v->text, "3.%u.%d", v->minor, v->patch);
	else
		snprintf(v->text, sizeof v->text, "3.%u.%d%s%u", v->minor, v->patch,
		         v->release == 'c'   ? "rc"
		         : v->release == 'a' ? "a"
		         : v->release == 'b' ? "b"
		                             : "?",
		         (unsigned)(hex & 0xf));
}

static void take_own_words(struct python_runtime *r, const struct target_memory *tm)
{
	struct {
		char cookie[8];
		uint64_t version, free_threaded;
	} head;
	struct elf_symbol s;
	uint64_t hex;

	if (target_read(tm, r->address, &head, sizeof head, ERR_IGNORED) == 0 && !memcmp(head.cookie, COOKIE, 8)) {
		take_hex(&r->version, head.version);
		r->version.describes_itself = true;
		r->version.free_threaded = head.free_threaded != 0;
	}
	if (!r->version.minor && elf_module_find(r->module, "Py_Version", NULL, &s) &&
	    target_read_u64(tm, s.address, &hex, ERR_IGNORED) == 0)
		take_hex(&r->version, hex);
}

static void take_findings(struct python_version *v, const struct findings *f)
{
	if (f->several || !f->minor || (v->minor && v->minor != f->minor)) {
		if (f->several || f->minor) { /* they contradict each other */
			v->minor = 0;
			v->text[0] = '\0';
		}
		return;
	}
	v->flags_known = true;
	v->debug = f->debug;
	v->free_threaded |= f->free_threaded;
	if (v->minor)
		return;
	v->minor = f->minor;
	for (size_t i = 0; i < f->text_count; i++)
		if (f->texts[i][0] == f->minor) {
			/* A pre-release would have "3.9.0rc1". Two texts: one may be the end of a path. */
			v->patch = v->release == 'f' || f->text_count == TEXTS_MAX ? -1 : (int)f->texts[i][1];
			v->release = 'f';
		}
	if (v->patch >= 0)
		snprintf(v->text, sizeof v->text, "3.%u.%d", v->minor, v->patch);
	else
		snprintf(v->text, sizeof v->text, "3.%u", v->minor);
}

int python_version_read(struct python_runtime *r, const struct maps *maps, const struct target_memory *tm,
                        struct err *e)
{
	struct findings found = { 0 };
	struct module_file file;

	r->version = (struct python_version){ .patch = -1, .release = '?' };
	take_own_words(r, tm);
	module_file_open(&file, r->module, tm, maps);
	int rc = search(&found, &file, e);
	module_file_close(&file);
	if (rc == 0)
		take_findings(&r->version, &found);
	return rc;
}
