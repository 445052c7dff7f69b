/* SPDX-License-Identifier: MIT */
#include "debug_info/source_lines.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/sorted.h"

#define WALK_DEPTH_MAX 64

struct unit_range {
	Dwarf_Addr low, high;
	Dwarf_Die die;
};

struct function_range {
	Dwarf_Addr low, high;
	Dwarf_Die die;
};

struct unit {
	struct function_range *functions;
	size_t count;
};

static int compare_ranges(const void *a, const void *b)
{
	/* Both kinds of ranges begin with low and high. */
	const Dwarf_Addr *x = a;
	const Dwarf_Addr *y = b;

	return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* The DIE that has the functions: with split DWARF it is in the .dwo file, if that is there. */
static Dwarf_Die whole_unit(struct source_lines *lines, Dwarf_Die *unit)
{
	Dwarf_Die die, split;
	uint8_t type;

	memset(&split, 0, sizeof split);
	if (dwarf_cu_info(unit->cu, NULL, &type, &die, &split, NULL, NULL, NULL) || type != DW_UT_skeleton)
		return *unit;
	lines->split = true;
	return split.addr ? split : *unit;
}

static void make_unit_ranges(struct source_lines *lines)
{
	Dwarf_Die *die = NULL;
	Dwarf_Addr bias;

	lines->ranges_made = 1;
	while ((die = dwfl_module_nextcu(lines->module, die, &bias))) {
		Dwarf_Addr base, low, high;
		ptrdiff_t at = 0;
		while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
			if (!grow_list(lines->ranges, lines->range_count)) {
				lines->failed = true;
				return;
			}
			lines->ranges[lines->range_count++] = (struct unit_range){ low, high, *die };
		}
	}
	if (lines->range_count)
		qsort(lines->ranges, lines->range_count, sizeof *lines->ranges, compare_ranges);
}

static Dwarf_Die *find_unit(struct source_lines *lines, uint64_t address)
{
	Dwarf_Addr bias;
	Dwarf_Die *die = dwfl_module_addrdie(lines->module, address, &bias);

	if (die)
		return die;
	if (!lines->ranges_made)
		make_unit_ranges(lines);
	Dwarf_Addr want = address - lines->bias;
	size_t low = SORTED_UP_TO(lines->ranges, lines->range_count, low, want);

	return low && want < lines->ranges[low - 1].high ? &lines->ranges[low - 1].die : NULL;
}

static bool add_function(struct source_lines *lines, struct unit *unit, Dwarf_Die *die)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		if (!grow_list(unit->functions, unit->count)) {
			lines->failed = true;
			return false;
		}
		unit->functions[unit->count++] = (struct function_range){ low, high, *die };
	}
	return true;
}

static bool holds_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type: /* Rust puts methods there */
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block: return true;
	default: return false;
	}
}

static void walk(struct source_lines *lines, struct unit *unit, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;

	if (depth > WALK_DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);
		if (tag == DW_TAG_subprogram && !add_function(lines, unit, &die))
			return;
		if (holds_functions(tag) && dwarf_haschildren(&die) > 0)
			walk(lines, unit, &die, depth + 1);
	} while (!dwarf_siblingof(&die, &die));
}

static struct unit *functions_of(struct source_lines *lines, Dwarf_Die *die)
{
	Dwarf_Off key = dwarf_dieoffset(die);
	const uint32_t *known = map_find(&lines->unit_of, key);

	if (known)
		return &lines->units[*known];
	if (!grow_list(lines->units, lines->unit_count))
		return NULL;
	struct unit *unit = &lines->units[lines->unit_count];
	*unit = (struct unit){ 0 };
	if (map_put(&lines->unit_of, key, (uint32_t)lines->unit_count))
		return NULL;
	lines->unit_count++;
	Dwarf_Die whole = whole_unit(lines, die);
	walk(lines, unit, &whole, 0);
	if (unit->count)
		qsort(unit->functions, unit->count, sizeof *unit->functions, compare_ranges);
	return unit;
}

static Dwarf_Die *find_function(struct unit *unit, Dwarf_Addr address)
{
	size_t low = SORTED_UP_TO(unit->functions, unit->count, low, address);

	return low && address < unit->functions[low - 1].high ? &unit->functions[low - 1].die : NULL;
}

/* The chain of inlined calls below a function down to the address, outermost first. */
static size_t inlined_chain(const Dwarf_Die *function, Dwarf_Addr address, Dwarf_Die chain[SOURCE_DEPTH_MAX])
{
	Dwarf_Die die = *function;
	size_t n = 0;

	for (int depth = 0; depth < 4 * SOURCE_DEPTH_MAX && n < SOURCE_DEPTH_MAX - 1; depth++) {
		Dwarf_Die child;
		bool found = false;
		if (dwarf_child(&die, &child))
			break;
		do {
			int tag = dwarf_tag(&child);
			found = (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
			        dwarf_haspc(&child, address) > 0;
		} while (!found && !dwarf_siblingof(&child, &child));
		if (!found)
			break;
		if (dwarf_tag(&child) == DW_TAG_inlined_subroutine)
			chain[n++] = child;
		die = child;
	}
	return n;
}

static void name_of(Dwarf_Die *die, struct source_line *out)
{
	Dwarf_Attribute attribute;

	out->linkage = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
	if (!out->linkage)
		out->linkage = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
	out->name = dwarf_diename(die);
}

/* Where an inlined function was called from. */
static void call_site(Dwarf_Die *unit, Dwarf_Die *inlined, struct source_line *out)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;
	Dwarf_Files *files;
	size_t count;

	if (!dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &value) && value < INT32_MAX)
		out->line = (int)value;
	if (!dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &value) &&
	    !dwarf_getsrcfiles(unit, &files, &count) && value < count)
		out->file = dwarf_filesrc(files, value, NULL, NULL);
}

/* Where the compiler ran. */
static const char *directory_of(Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;
	const char *directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));

	return directory && directory[0] == '/' ? directory : NULL;
}

void source_lines_open(struct source_lines *lines, Dwfl_Module *module, bool numbers)
{
	*lines = (struct source_lines){ .numbers = numbers };
	if (module && dwfl_module_getdwarf(module, &lines->bias))
		lines->module = module;
}

size_t source_lines_find(struct source_lines *lines, uint64_t address, struct source_line out[SOURCE_DEPTH_MAX])
{
	Dwarf_Die chain[SOURCE_DEPTH_MAX];
	Dwarf_Die *unit = lines->module ? find_unit(lines, address) : NULL;
	Dwarf_Addr want = address - lines->bias;
	size_t inlined = 0;

	if (!unit)
		return 0;
	struct unit *known = functions_of(lines, unit);
	lines->failed |= !known;
	Dwarf_Die *function = known ? find_function(known, want) : NULL;
	if (function)
		inlined = inlined_chain(function, want, chain);
	memset(out, 0, (inlined + 1) * sizeof *out);

	Dwarf_Line *line = lines->numbers ? dwarf_getsrc_die(unit, want) : NULL;
	if (line) {
		out[0].file = dwarf_linesrc(line, NULL, NULL);
		if (dwarf_lineno(line, &out[0].line))
			out[0].line = 0;
	}
	for (size_t i = 0; i < inlined; i++) {
		Dwarf_Die *die = &chain[inlined - 1 - i];
		name_of(die, &out[i]);
		if (lines->numbers)
			call_site(unit, die, &out[i + 1]);
	}
	if (function)
		name_of(function, &out[inlined]);
	for (size_t i = 0; i <= inlined; i++)
		if (out[i].file && out[i].file[0] != '/')
			out[i].from = directory_of(unit);
	return inlined + 1;
}
