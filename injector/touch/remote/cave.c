/* SPDX-License-Identifier: MIT */
#include "touch/remote/cave.h"

#include <string.h>
#include <sys/mman.h>

#include "elf/scope.h"

#define PAGE 4096u
#define CAVE_ALIGN 16u
#define RANKS 5u
#define RANK_OTHERS 3u

static uint64_t aligned(uint64_t address)
{
	return (address + CAVE_ALIGN - 1) & ~(uint64_t)(CAVE_ALIGN - 1);
}

/* The vdso is mapped whole, with section headers after its segment; the rest of its last page is nobody's. */
static bool cave_of_vdso(struct cave *cave, const struct elf_module *vdso, const struct target_memory *tm,
                         const struct maps *maps)
{
	const struct mapping *map = maps_find(maps, vdso->header);
	Elf64_Ehdr h;

	if (!map || map->start != vdso->header || map->inode || !(map->prot & PROT_EXEC) ||
	    target_read(tm, vdso->header, &h, sizeof h, ERR_IGNORED) < 0 || h.e_shoff > map->end - map->start)
		return false;
	uint64_t end = map->start + h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize;
	if (end < vdso->exec_end)
		end = vdso->exec_end;
	uint64_t address = aligned(end);
	if (address >= map->end || map->end - address >= PAGE)
		return false;
	*cave = (struct cave){ address, map->end - address, vdso };
	return true;
}

/* Is the page mapped from the module's file, and with these rights? */
static bool is_page_of(const struct elf_module *module, const struct maps *maps, uint64_t page, uint32_t rights,
                       uint32_t none)
{
	const struct mapping *map = maps_find(maps, page);

	return map && map->inode && map->inode == module->inode && !map->shared && map->end >= page + PAGE &&
	       (map->prot & rights) == rights && !(map->prot & none);
}

/* Has any segment bytes there? Addresses of segments need not be those of pages: one may begin or end anywhere. */
static bool is_used(const struct elf_module *module, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < module->phdr_count; i++) {
		const Elf64_Phdr *p = &module->phdrs[i];
		const uint64_t from = module->bias + p->p_vaddr;
		if (p->p_type == PT_LOAD && from < end && from + p->p_memsz > start)
			return true;
	}
	return false;
}

/* Behind a segment that is not writable, where no further one has bytes in its last page. */
static bool behind(struct cave *cave, const struct elf_module *module, const Elf64_Phdr *p)
{
	/* Memory after p_filesz would belong to the segment if p_memsz were larger. */
	if (p->p_type != PT_LOAD || p->p_flags & PF_W || p->p_filesz != p->p_memsz || p->p_memsz == 0)
		return false;
	const uint64_t end = module->bias + p->p_vaddr + p->p_memsz, address = aligned(end);
	const uint64_t page_end = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (address >= page_end || is_used(module, end, page_end))
		return false;
	*cave = (struct cave){ address, page_end - address, module };
	return true;
}

/* In front of a writable segment, where its first page is protected after relocation. */
static bool in_front(struct cave *cave, const struct elf_module *module, const Elf64_Phdr *p)
{
	const uint64_t start = module->bias + p->p_vaddr, page = start & ~(uint64_t)(PAGE - 1);
	const uint64_t end = start & ~(uint64_t)(CAVE_ALIGN - 1);

	if (p->p_type != PT_LOAD || !(p->p_flags & PF_W) || end == page || module->relro_start / PAGE > page / PAGE ||
	    module->relro_end / PAGE <= page / PAGE || is_used(module, page, start))
		return false;
	*cave = (struct cave){ page, end - page, module };
	return true;
}

bool cave_of_module(struct cave *cave, const struct elf_module *module, const struct target_memory *tm,
                    const struct maps *maps)
{
	bool found = false;

	if (module->is_vdso)
		return cave_of_vdso(cave, module, tm, maps);
	for (size_t i = 0; i < module->phdr_count; i++) {
		struct cave c;
		if (!(module->phdrs[i].p_flags & PF_X) || !behind(&c, module, &module->phdrs[i]) ||
		    !is_page_of(module, maps, (c.address - 1) & ~(uint64_t)(PAGE - 1), PROT_EXEC, 0))
			continue;
		if (!found || c.bytes > cave->bytes) {
			*cave = c;
			found = true;
		}
	}
	return found;
}

/* Of a cave only what is zero from its beginning on; of one in front of data, up to its end. */
static bool keep_zeros(const struct target_memory *tm, struct cave *cave, bool front)
{
	uint8_t bytes[PAGE];
	uint64_t zeros = 0;

	if (cave->bytes > PAGE || target_read(tm, cave->address, bytes, cave->bytes, ERR_IGNORED) < 0)
		return false;
	while (zeros < cave->bytes && !bytes[front ? cave->bytes - 1 - zeros : zeros])
		zeros++;
	if (front) {
		zeros &= ~(uint64_t)(CAVE_ALIGN - 1);
		cave->address += cave->bytes - zeros;
	}
	cave->bytes = zeros;
	return true;
}

/* Where frames may be: number 0 to 2 * phdr_count - 1 of a module's. *front: as above. False: this is none. */
static bool frame_cave(struct cave *cave, const struct elf_module *module, const struct target_memory *tm,
                       const struct maps *maps, size_t number, bool *front)
{
	const Elf64_Phdr *p = &module->phdrs[number / 2];

	*front = number % 2;
	if (module->is_vdso)
		return number == 0 && cave_of_vdso(cave, module, tm, maps);
	return (*front ? in_front(cave, module, p) : behind(cave, module, p)) &&
	       is_page_of(module, maps, cave->address & ~(uint64_t)(PAGE - 1), PROT_READ, PROT_WRITE);
}

/* What is looked for a place in. */
struct search {
	const struct modules *m;
	const struct target_memory *tm;
	const struct maps *maps;
	struct scope *scope; /* NULL: not needed yet */
};

/* Modules that stay come first; the largest padding among equals does not matter. */
static unsigned rank(const struct elf_module *m)
{
	if (m->is_vdso)
		return 4;
	if (m->is_loader)
		return 0;
	if (!strcmp(m->soname, "libc.so.6"))
		return 1;
	return m->is_main ? 2 : RANK_OTHERS;
}

/* May the program's loader not unload it, while a place in it is used or between choosing it and writing there? */
static bool stays(struct search *s, const struct elf_module *module)
{
	if (rank(module) != RANK_OTHERS)
		return true;
	if (!s->scope)
		s->scope = scope_new(s->m, s->tm->budget);
	return s->scope && scope_stays(s->scope, module);
}

/* Without the bytes of the stub, which may be in the cave. */
static void leave_out(struct cave *cave, uint64_t stub, uint64_t stub_bytes)
{
	if (stub < cave->address || stub >= cave->address + cave->bytes)
		return;
	const uint64_t next = aligned(stub + stub_bytes), end = cave->address + cave->bytes;
	cave->address = next < end ? next : end;
	cave->bytes = end - cave->address;
}

static bool find_frame_in(struct stub_place *place, struct search *s, const struct elf_module *module, uint64_t bytes,
                          uint64_t frame_bytes)
{
	for (size_t i = 0; i < 2 * module->phdr_count; i++) {
		struct cave c;
		bool front;

		if (!frame_cave(&c, module, s->tm, s->maps, i, &front))
			continue;
		leave_out(&c, place->code, bytes);
		if (!keep_zeros(s->tm, &c, front) || c.bytes < frame_bytes || !stays(s, module))
			continue;
		place->frame = c.address;
		place->frame_bytes = frame_bytes;
		return true;
	}
	return false;
}

static int find_frame(struct stub_place *place, struct search *s, uint64_t bytes, uint64_t frame_bytes, struct err *e)
{
	/* The vdso before modules that are known to stay by their names only. */
	static const uint8_t ranks[RANKS] = { 0, 1, 2, 4, RANK_OTHERS };
	const struct modules *m = s->m;

	for (unsigned k = 0; k < RANKS && frame_bytes; k++)
		for (size_t i = 0; i < m->count; i++)
			if (m->list[i].namespace_id == 0 && rank(&m->list[i]) == ranks[k] &&
			    find_frame_in(place, s, &m->list[i], bytes, frame_bytes))
				return 0;
	return frame_bytes ? err_set(e, ENOSPC, "no module that stays has %lu unused bytes for a signal frame",
	                             (unsigned long)frame_bytes)
	                   : 0;
}

int cave_find_frame(struct stub_place *place, const struct modules *m, const struct target_memory *tm,
                    const struct maps *maps, uint64_t bytes, uint64_t frame_bytes, struct err *e)
{
	struct search s = { m, tm, maps, NULL };

	int rc = find_frame(place, &s, bytes, frame_bytes, e);
	scope_free(s.scope);
	return rc;
}

static bool find_code(struct cave *cave, struct search *s, uint64_t bytes)
{
	for (unsigned wanted = 0; wanted < RANKS; wanted++) {
		for (size_t i = 0; i < s->m->count; i++) {
			const struct elf_module *module = &s->m->list[i];
			struct cave c;

			if (module->namespace_id != 0 || rank(module) != wanted ||
			    !cave_of_module(&c, module, s->tm, s->maps) || !keep_zeros(s->tm, &c, false) ||
			    c.bytes < bytes || !stays(s, module))
				continue;
			*cave = c;
			return true;
		}
	}
	return false;
}

static int find(struct stub_place *place, struct search *s, uint64_t bytes, uint64_t frame_bytes, struct err *e)
{
	struct stub_place found = { 0 };
	struct cave cave;

	if (find_code(&cave, s, frame_bytes ? aligned(bytes) + frame_bytes : bytes)) {
		*place = (struct stub_place){ cave.address, frame_bytes ? aligned(cave.address + bytes) : 0,
			                      frame_bytes };
		return 0;
	}
	if (!find_code(&cave, s, bytes))
		return err_set(e, ENOSPC, "no module that stays has %lu unused bytes behind its code",
		               (unsigned long)bytes);
	found.code = cave.address;
	int rc = find_frame(&found, s, bytes, frame_bytes, e);
	if (rc == 0)
		*place = found;
	return rc;
}

int cave_find(struct stub_place *place, const struct modules *m, const struct target_memory *tm,
              const struct maps *maps, uint64_t bytes, uint64_t frame_bytes, struct err *e)
{
	struct search s = { m, tm, maps, NULL };

	int rc = find(place, &s, bytes, frame_bytes, e);
	scope_free(s.scope);
	return rc;
}

bool cave_holds_frame(const struct modules *m, const struct target_memory *tm, const struct maps *maps,
                      uint64_t address, uint64_t bytes)
{
	struct cave c;
	bool front;

	for (size_t k = 0; k < m->count; k++)
		for (size_t i = 0; i < 2 * m->list[k].phdr_count; i++)
			if (frame_cave(&c, &m->list[k], tm, maps, i, &front) && address >= c.address &&
			    bytes <= c.bytes && address - c.address <= c.bytes - bytes)
				return address % CAVE_ALIGN == 0;
	return false;
}
