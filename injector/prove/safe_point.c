/* SPDX-License-Identifier: MIT */
#include "prove/safe_point.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/system_calls.h"
#include "catalogue/allocator_catalogue.h"
#include "unwind/allocator_code.h"
#include "arch/registers.h"
#include "base/grow.h"
#include "prove/plain_thread.h"
#include "base/order.h"

#define POINTS_MAX 4096u

/* Functions that hold locks of the loader, of the allocator, or of the exit handlers while they run. */
static const char *const lock_holders[] = {
	/* clang-format off */
	"dlopen", "dlmopen", "dlclose", "dlsym", "dlvsym", "dladdr", "dladdr1", "dlinfo", "dlerror",
	"dl_iterate_phdr", "_dl_find_object", "__libc_dlopen_mode", "__libc_dlsym", "__libc_dlclose", "fork",
	"_Fork", "__libc_fork", "vfork", "clone", "posix_spawn", "posix_spawnp", "system", "popen", "daemon",
	"forkpty", "exit", "_exit", "quick_exit", "abort", "__cxa_finalize", "__cxa_atexit",
	"__cxa_thread_atexit_impl", "atexit", "at_quick_exit", "on_exit", "pthread_create", "pthread_exit",
	"pthread_join", "pthread_detach", "pthread_atfork", "__register_atfork", "pthread_setattr_default_np",
	"__libc_freeres", "__tls_get_addr", "thrd_create", "thrd_exit", "mtrace", "muntrace", "iconv_open",
	"iconv_close",
	/* clang-format on */
};

static int add_range(struct safe_points *s, uint64_t start, uint64_t end, bool unless_idle, const char *what,
                     struct err *e)
{
	if (start >= end)
		return 0;
	if (s->count == POINTS_MAX) /* each frame of a stack is compared with all of them, while a thread is stopped */
		return err_set(e, E2BIG,
		               "its C library and its allocator have more than %u separate allocation functions; "
		               "nothing was changed",
		               POINTS_MAX);
	if (!grow_list(s->list, s->count))
		return err_set(e, ENOMEM, "out of memory");
	s->list[s->count].start = start;
	s->list[s->count].end = end;
	s->list[s->count].unless_idle = unless_idle;
	snprintf(s->list[s->count].what, sizeof s->list[s->count].what, "%s", what);
	s->count++;
	return 0;
}

int safe_points_add(struct safe_points *s, uint64_t start, uint64_t end, const char *what, struct err *e)
{
	return add_range(s, start, end, false, what, e);
}

struct function {
	uint64_t start, end;
	bool allocation;
};

ORDER_BY(by_start, struct function, start);

/*
 * The allocator inside a larger module. Static helpers have no dynamic symbol, but they are in the same object file,
 * so between the neighbours of the exported functions: from the end of the last other function before a run of
 * allocation functions to the start of the first other function after it.
 */
static int add_allocator_clusters(struct safe_points *s, const struct elf_module *m, struct err *e)
{
	struct function *list = calloc(m->symbol_count + 1, sizeof *list);
	size_t count = 0;
	int rc = 0;

	if (!list)
		return err_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < m->symbol_count; i++) {
		const Elf64_Sym *sym = &m->symbols[i];
		unsigned type = ELF64_ST_TYPE(sym->st_info);
		if (sym->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC))
			continue;
		list[count].start = m->bias + sym->st_value;
		list[count].end = list[count].start + (sym->st_size ? sym->st_size : 1);
		list[count++].allocation = catalogue_is_allocation_symbol(elf_module_symbol_name(m, (uint32_t)i));
	}
	qsort(list, count, sizeof *list, by_start);
	for (size_t i = 0; i < count && rc == 0; i++) {
		if (!list[i].allocation)
			continue;
		uint64_t start = m->exec_start, end = m->exec_end;
		for (size_t before = i; before-- > 0;)
			if (!list[before].allocation) {
				start = list[before].end;
				break;
			}
		size_t last = i;
		while (last + 1 < count && (list[last + 1].allocation || list[last + 1].start < list[last].end))
			last++;
		if (last + 1 < count)
			end = list[last + 1].start;
		rc = safe_points_add(s, start < list[i].start ? start : list[i].start, end, "the allocator", e);
		i = last;
	}
	free(list);
	return rc;
}

/* The exported allocation functions alone. */
static int add_allocation_functions(struct safe_points *s, const struct elf_module *m, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < m->symbol_count && rc == 0; i++) {
		const Elf64_Sym *sym = &m->symbols[i];
		uint64_t start = m->bias + sym->st_value;
		if (sym->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(sym->st_info) == STT_FUNC &&
		    catalogue_is_allocation_symbol(elf_module_symbol_name(m, (uint32_t)i)))
			rc = safe_points_add(s, start, start + (sym->st_size ? sym->st_size : 1), "the allocator", e);
	}
	return rc;
}

/* An allocator in a module that holds other things, too. */
static int add_allocator_code(struct safe_points *s, const struct libc *libc, const struct elf_module *m,
                              const struct target_memory *memory, const struct maps *maps, struct err *e)
{
	struct module_file file;
	struct allocator_code code;

	if (!m->eh_frame_hdr.address)
		return add_allocator_clusters(s, m, e);
	module_file_open(&file, m, memory, maps);
	int rc = allocator_code_find(&code, &file, catalogue_is_allocator_symbol, libc->module, e);
	module_file_close(&file);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < code.count && rc == 0; i++)
		rc = add_range(s, code.list[i].start, code.list[i].end, code.list[i].part == ALLOCATOR_RELATED,
		               "the allocator", e);
	if (rc == 0 && code.unknown)
		rc = add_allocation_functions(s, m, e);
	if (rc == 0 && code.unknown)
		rc = add_range(s, m->exec_start, m->exec_end, true, "a program whose allocator may be anywhere in it",
		               e);
	allocator_code_done(&code);
	return rc;
}

static int add_lock_holders(struct safe_points *s, const struct elf_module *m, struct err *e)
{
	for (unsigned i = 0; i < sizeof lock_holders / sizeof lock_holders[0]; i++) {
		struct elf_symbol symbol;
		if (!elf_module_find(m, lock_holders[i], NULL, &symbol))
			continue;
		int rc = safe_points_add(s, symbol.address, symbol.address + (symbol.bytes ? symbol.bytes : 64),
		                         lock_holders[i], e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The C library, the allocator and the loader: two or three modules, which may be one. */
static void note_lock_code(struct safe_points *s, const struct elf_module *m)
{
	if (s->lock_code_count < SAFE_POINT_LOCK_MODULES)
		s->lock_code[s->lock_code_count++] = (struct lock_code){ m->exec_start, m->exec_end };
}

int safe_points_init(struct safe_points *s, const struct modules *modules, const struct libc *libc,
                     const struct target_memory *memory, const struct maps *maps, const struct unwind_tables *tables,
                     struct err *e)
{
	int rc = 0;

	*s = (struct safe_points){ .walk = stack_walk_new(modules, memory, tables),
		                   .libc = libc->kind,
		                   .takes_no_locks = !libc_loads_payload(libc) };
	if (!s->walk)
		return err_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < modules->count && rc == 0 && !s->takes_no_locks; i++) {
		const struct elf_module *m = &modules->list[i];
		if (m->is_vdso)
			continue;
		if (m == libc->module || m == libc->allocator || m->is_loader)
			note_lock_code(s, m);
		if (m->is_loader && m != libc->module)
			rc = safe_points_add(s, m->exec_start, m->exec_end, "the loader", e);
		else if (!m->is_main && known_allocator_library(elf_module_name(m)))
			rc = safe_points_add(s, m->exec_start, m->exec_end, elf_module_name(m), e);
		else if (m == libc->module)
			rc = add_allocator_clusters(s, m, e);
		else if (m == libc->allocator)
			rc = add_allocator_code(s, libc, m, memory, maps, e);
		if (rc == 0 && (m == libc->module || strncmp(elf_module_name(m), "libdl", 5) == 0 ||
		                strncmp(elf_module_name(m), "libpthread", 10) == 0))
			rc = add_lock_holders(s, m, e);
	}
	if (rc < 0)
		safe_points_done(s);
	return rc;
}

void safe_points_done(struct safe_points *s)
{
	stack_walk_free(s->walk);
	free(s->list);
	*s = (struct safe_points){ 0 };
}

/* Linux UAPI struct rseq (the part up to rseq_cs) and struct rseq_cs. */
struct rseq_head {
	uint32_t cpu_id_start, cpu_id;
	uint64_t section;
};
struct rseq_section {
	uint32_t version, flags;
	uint64_t start_ip, post_commit_offset, abort_ip;
};

/*
 * Is the thread in a restartable sequence? Kernels before 5.13 do not say where its sequences are. In a system call it
 * is in none, since a sequence must make none; where the kernel cannot tell, any other place counts as one.
 */
static bool in_rseq_section(const struct target_memory *memory, const struct tracee *t, const struct registers *regs)
{
	const uint64_t pc = registers_pc(regs);
	struct tracee_rseq rseq = { 0 };
	struct rseq_head head;
	struct rseq_section section;

	int rc = tracee_rseq(t, &rseq);
	if (rc < 0)
		return rc == -EIO && registers_syscall(regs) < 0;
	if (!rseq.address)
		return false;
	if (target_read(memory, rseq.address, &head, sizeof head, ERR_IGNORED) < 0 || !head.section)
		return false;
	if (target_read(memory, head.section, &section, sizeof section, ERR_IGNORED) < 0)
		return true;
	return pc - section.start_ip < section.post_commit_offset;
}

struct look {
	const struct safe_points *points;
	const struct code_range *found;       /* in which no thread is safe */
	const struct code_range *unless_idle; /* the innermost in which an idle one is */
};

static bool look_at_frame(void *context, unsigned frame, uint64_t pc, uint64_t sp)
{
	struct look *look = context;
	/* A return address may be after the end of a function that does not return. */
	uint64_t at = frame == 0 ? pc : pc - 1;

	(void)sp;
	for (size_t i = 0; i < look->points->count; i++) {
		const struct code_range *r = &look->points->list[i];
		if (at < r->start || at >= r->end)
			continue;
		if (!r->unless_idle) {
			look->found = r;
			return false;
		}
		if (!look->unless_idle)
			look->unless_idle = r;
	}
	return true;
}

/*
 * A frame without unwind information in the C library, the loader or the allocator may be anything: also one of a
 * function that holds their locks. Unless it is the outermost: Debian's musl has no such information, and a thread in
 * the program's own code is right above its start code, which the psABI asks to clear the frame pointer
 * (x86-64: 3.4.1).
 */
static bool hides_locks(const struct safe_points *s, const struct stack_walk_end *end)
{
	if (!end->guessed || (end->guess_frame > 0 && end->guess_frame + 1 == end->frames))
		return false;
	for (size_t i = 0; i < s->lock_code_count; i++)
		if (end->guess_pc >= s->lock_code[i].start && end->guess_pc < s->lock_code[i].end)
			return true;
	return false;
}

/* Asleep in a call that waits for others for as long as it takes, which no allocator makes while it has a lock. */
static bool is_idle(const struct registers *regs)
{
	static const int calls[] = {
		SYS_epoll_wait, SYS_epoll_pwait,   441 /* epoll_pwait2 */, SYS_poll,
		SYS_ppoll,      SYS_select,        SYS_pselect6,           SYS_accept,
		SYS_accept4,    SYS_read,          SYS_recvfrom,           SYS_recvmsg,
		SYS_pause,      SYS_rt_sigsuspend, SYS_rt_sigtimedwait,    SYS_wait4,
		SYS_waitid,
	};

	for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++)
		if (registers_syscall(regs) == calls[i])
			return registers_sleeping(regs);
	return false;
}

int safe_point_check(const struct safe_points *s, struct tracee *t, struct err *e)
{
	struct look look = { .points = s };
	struct registers regs;
	struct stack_walk_end end;

	int rc = tracee_registers(t, &regs, e);
	rc = rc ?: plain_thread_check(t, &regs, s->libc, stack_walk_memory(s->walk), e);
	if (rc < 0)
		return rc;
	stack_walk(s->walk, t, look_at_frame, &look, &end);
	if (end.in_handler)
		return err_set(e, EBUSY, "thread %d is in a signal handler", t->tid);
	if (look.found)
		return err_set(e, EBUSY, "thread %d is in %s", t->tid, look.found->what);
	if (look.unless_idle && !is_idle(&regs))
		return err_set(e, EBUSY, "thread %d is in %s", t->tid, look.unless_idle->what);
	if ((!end.reached || hides_locks(s, &end)) && !s->takes_no_locks)
		return err_set(e, EBUSY, "the stack of thread %d cannot be walked to its end", t->tid);
	if (in_rseq_section(stack_walk_memory(s->walk), t, &regs))
		return err_set(e, EBUSY, "thread %d is in a restartable sequence, or this kernel cannot tell", t->tid);
	return 0;
}
