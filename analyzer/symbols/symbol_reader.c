/* SPDX-License-Identifier: MIT */
#include "symbols/symbol_reader.h"

#include <gelf.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug_info/demangled_name.h"
#include "debug_info/image_file.h"
#include "debug_info/jail.h"
#include "debug_info/source_lines.h"
#include "debug_info/symbol_ranges.h"
#include "debug_info/symbol_table.h"
#include "symbols/wire.h"

#define IMAGES_MAX 65536u
/* A place takes a hundredth of that, but the first of a unit, whose time goes with the size of the file. */
#define PLACE_MS 2
#define SEGMENTS_MAX 1000u

struct read_image {
	bool opened, lines;
	bool has_table, has_lines; /* they are read when they are needed: they may be large, and compressed */
	bool failed;               /* not all could be read */
	struct image image;
	struct image_search search;
	struct image_file file;
	struct symbol_table table;
	struct source_lines source_lines;
};

struct reader {
	struct read_image *images[IMAGES_MAX]; /* NULL: was not opened */
	_Atomic unsigned *doing;
	struct wire question, answer;
	int fd;
};

static struct read_image *image_of(struct reader *r, uint64_t number)
{
	struct read_image *image = number < IMAGES_MAX ? r->images[number] : NULL;

	if (image)
		atomic_store_explicit(r->doing, (unsigned)number, memory_order_relaxed);
	return image && image->file.module ? image : NULL;
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static const struct symbol_table *table_of(struct read_image *image)
{
	if (!image->has_table) {
		image->has_table = true;
		if (symbol_table_load(&image->table, image->file.module)) {
			symbol_table_done(&image->table);
			image->failed = true;
		}
	}
	return &image->table;
}

static void answer_open(struct reader *r)
{
	struct wire *q = &r->question;
	uint64_t number = wire_take_number(q);
	struct read_image *image = number < IMAGES_MAX ? calloc(1, sizeof *image) : NULL;

	if (!image)
		_Exit(1);
	r->images[number] = image;
	atomic_store_explicit(r->doing, (unsigned)number, memory_order_relaxed);
	image->image.flags = (uint32_t)wire_take_number(q);
	image->image.deleted = wire_take_number(q);
	image->image.file = (int)wire_take_number(q);
	image->lines = wire_take_number(q);
	image->image.build_id_bytes = (uint32_t)wire_take_number(q);
	const void *id = wire_take(q, DUMP_BUILD_ID_MAX);
	if (id)
		memcpy(image->image.build_id, id, DUMP_BUILD_ID_MAX);
	image->image.path = copy(wire_take_string(q));
	const char *root = wire_take_string(q);
	snprintf(image->image.root, sizeof image->image.root, "%s", root ? root : "");
	image->search.debug_path = copy(wire_take_string(q));
	image->search.fetched = copy(wire_take_string(q));
	image_file_open(&image->file, &image->image, &image->search);
	wire_put_number(&r->answer, image->file.module != NULL);
	wire_put_number(&r->answer, image->file.source);
	wire_put_string(&r->answer, image->file.reason);
}

static void answer_lines(struct reader *r)
{
	const struct read_image *image = image_of(r, wire_take_number(&r->question));

	wire_put_number(&r->answer, image && image_file_has_lines(&image->file));
}

static void answer_ranges(struct reader *r)
{
	struct read_image *image = image_of(r, wire_take_number(&r->question));
	struct symbol_ranges ranges = { 0 };
	bool known = image && !symbol_ranges_find(&ranges, table_of(image));

	wire_put_number(&r->answer, known);
	wire_put_number(&r->answer, ranges.count);
	for (size_t i = 0; i < ranges.count; i++) {
		wire_put_number(&r->answer, ranges.list[i].start);
		wire_put_number(&r->answer, ranges.list[i].end);
	}
	symbol_ranges_done(&ranges);
}

static void answer_allocator(struct reader *r)
{
	uint64_t place = wire_take_number(&r->question);
	struct read_image *image = image_of(r, PLACE_IMAGE(place));
	const struct symbol *symbol = image ? symbol_table_find(table_of(image), image_place_call(place)) : NULL;

	jail_add_time(PLACE_MS);
	wire_put_number(&r->answer, symbol && symbol->allocator);
}

/* The name with its arguments where one has them: the mangled name of DWARF, of the symbol table, the plain name. */
static void put_best_name(struct reader *r, struct read_image *image, const struct source_line *line,
                          const struct symbol *symbol)
{
	const char *mangled = line ? line->linkage : NULL;

	if (!mangled && symbol &&
	    (!line || !line->name || !strncmp(symbol->name, "_Z", 2) || !strncmp(symbol->name, "_R", 2)))
		mangled = symbol->name;
	char *plain = mangled ? demangled_name(mangled) : NULL;
	image->failed |= mangled && !plain;
	const char *name = plain ? plain : mangled ? mangled : line ? line->name : NULL;
	wire_put_string(&r->answer, name && strnlen(name, DEMANGLED_MAX_BYTES) < DEMANGLED_MAX_BYTES ? name : NULL);
	free(plain);
}

/* Without the parts that lead back; of an absolute path, in place. */
static void shorten_path(char *path)
{
	char *out = path;

	for (const char *s = path; *s;) {
		const char *next = strchrnul(s + 1, '/');
		size_t n = (size_t)(next - s);
		if (n == 3 && !memcmp(s, "/..", n)) {
			while (out > path && *--out != '/')
				;
		} else if (n > 1 && !(n == 2 && s[1] == '.')) {
			memmove(out, s, n);
			out += n;
		}
		s = next;
	}
	*out = 0;
}

/* NULL: too long. */
static const char *whole_path(const struct source_line *line, char path[PATH_MAX])
{
	int n = line->from ? snprintf(path, PATH_MAX, "%s/%s", line->from, line->file)
	                   : snprintf(path, PATH_MAX, "%s", line->file);

	if (n < 0 || n >= PATH_MAX)
		return NULL;
	if (line->from)
		shorten_path(path);
	return path;
}

static size_t find_lines(struct read_image *image, uint64_t address, struct source_line lines[SOURCE_DEPTH_MAX])
{
	if (!image->has_lines)
		source_lines_open(&image->source_lines, image->file.module, image->lines);
	image->has_lines = true;
	size_t depth = source_lines_find(&image->source_lines, address, lines);
	image->failed |= image->source_lines.failed;
	return depth;
}

static void answer_place(struct reader *r, uint64_t place)
{
	struct read_image *image = image_of(r, PLACE_IMAGE(place));
	struct source_line lines[SOURCE_DEPTH_MAX];
	uint32_t count = 0;

	wire_clear(&r->answer);
	if (image) {
		const struct symbol *symbol = symbol_table_find(table_of(image), image_place_call(place));
		size_t depth = find_lines(image, image_place_call(place), lines);
		count = depth ? (uint32_t)depth : 1;
		wire_put_number(&r->answer, image->failed);
		wire_put_number(&r->answer, count);
		for (uint32_t i = 0; i < count; i++) {
			char path[PATH_MAX];
			const char *file = depth && lines[i].file ? whole_path(&lines[i], path) : NULL;
			put_best_name(r, image, depth ? &lines[i] : NULL, i + 1 == count ? symbol : NULL);
			wire_put_string(&r->answer, file);
			wire_put_number(&r->answer, file ? (uint64_t)lines[i].line : 0);
		}
	} else {
		wire_put_number(&r->answer, 0);
		wire_put_number(&r->answer, 0);
	}
}

/* All but the last answer are sent here. */
static void answer_places(struct reader *r)
{
	uint64_t count = wire_take_number(&r->question);

	for (uint64_t i = 0; i < count && i < SYMBOL_PLACES_MAX; i++) {
		uint64_t place = wire_take_number(&r->question);
		jail_add_time(PLACE_MS);
		answer_place(r, place);
		if (i + 1 < count && !wire_send(r->fd, &r->answer))
			_Exit(1);
	}
}

/* The executable segment that the address is in, as the kernel maps it. */
static bool find_segment(struct read_image *image, uint64_t address, GElf_Phdr *segment)
{
	GElf_Addr bias;
	size_t count;
	Elf *elf = image->file.source == IMAGE_SOURCE_FILE ? dwfl_module_getelf(image->file.module, &bias) : NULL;

	if (!elf || elf_getphdrnum(elf, &count))
		return false;
	for (size_t i = 0; i < count && i < SEGMENTS_MAX; i++)
		if (gelf_getphdr(elf, (int)i, segment) && segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    address >= segment->p_vaddr && address - segment->p_vaddr < segment->p_memsz)
			return true;
	return false;
}

static void answer_segment(struct reader *r)
{
	uint64_t place = wire_take_number(&r->question);
	struct read_image *image = image_of(r, PLACE_IMAGE(place));
	GElf_Phdr segment;
	bool found = image && find_segment(image, image_place_call(place), &segment);

	wire_put_number(&r->answer, found);
	wire_put_number(&r->answer, found ? segment.p_vaddr : 0);
	wire_put_number(&r->answer, found ? segment.p_memsz : 0);
	wire_put_number(&r->answer, found ? segment.p_offset : 0);
}

typedef void answer_writer(struct reader *r);

void symbol_reader_run(int fd, _Atomic unsigned *doing)
{
	static answer_writer *const answers[] = {
		[SYMBOL_OPEN] = answer_open,     [SYMBOL_LINES] = answer_lines,
		[SYMBOL_RANGES] = answer_ranges, [SYMBOL_ALLOCATOR] = answer_allocator,
		[SYMBOL_PLACES] = answer_places, [SYMBOL_SEGMENT] = answer_segment
	};
	struct reader *r = calloc(1, sizeof *r);

	if (!r)
		return;
	r->fd = fd;
	r->doing = doing;
	elf_version(EV_CURRENT);
	while (wire_receive(fd, &r->question)) {
		uint64_t question = wire_take_number(&r->question);
		wire_clear(&r->answer);
		if (question >= sizeof answers / sizeof answers[0])
			break;
		answers[question](r);
		if (!wire_send(fd, &r->answer))
			break;
	}
}
