/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * functions.c - the functions of a unit, with those that were inlined into them
 *
 * Not here: names of functions (scopes.c).
 */
#include "names.h"

#include <dwarf.h>
#include <errno.h>
#include <grow.h>

/* Blocks in blocks: a compiler makes some 30. What is deeper is named by what it is in. */
#define DEPTH_MAX 128

static uint32_t number(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute value;
	Dwarf_Word word;

	if (dwarf_formudata(dwarf_attr(die, attribute, &value), &word) != 0 || word > UINT32_MAX)
		return 0;
	return (uint32_t)word;
}

/* Add a function that has code. Returns its number, outer if it has none, or -ENOMEM. */
static int64_t add_function(struct pem_unit *unit, Dwarf_Die *die, int tag, uint32_t outer)
{
	size_t function = unit->function_count;
	Dwarf_Addr base, low, high, start = UINT64_MAX;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		if (low >= high)
			continue;
		if (pem_spans__add(&unit->spans, low, high, (uint32_t)function) != 0)
			return -ENOMEM;
		start = low < start ? low : start;
	}
	if (start == UINT64_MAX || function >= PEM_NO_FUNCTION)
		return outer;
	if (pem_grow(&unit->functions, sizeof(*unit->functions), function + 1,
		     &unit->function_capacity) != 0)
		return -ENOMEM;
	unit->functions[unit->function_count++] = (struct pem_function){
		.die = *die,
		.start = start,
		.outer = tag == DW_TAG_inlined_subroutine ? outer : PEM_NO_FUNCTION,
		.call_file = number(die, DW_AT_call_file),
		.call_line = number(die, DW_AT_call_line),
	};
	return (int64_t)function;
}

static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_module:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return true;
	default:
		return false;
	}
}

bool pem_die__go(int (*next)(Dwarf_Die *from, Dwarf_Die *to), Dwarf_Die *from, Dwarf_Die *to)
{
	Dwarf_Off before = dwarf_dieoffset(from);

	return next(from, to) == 0 && dwarf_dieoffset(to) > before;
}

int pem_unit__read(struct pem_unit *unit)
{
	Dwarf_Die dies[DEPTH_MAX];
	uint32_t outer[DEPTH_MAX] = {PEM_NO_FUNCTION}, scopes[DEPTH_MAX] = {PEM_NO_SCOPE};
	unsigned int depth = 0;
	bool is_there = pem_die__go(dwarf_child, &unit->root, &dies[0]);

	unit->is_read = true;
	while (is_there) {
		int tag = dwarf_tag(&dies[depth]);
		int64_t function = outer[depth];
		int64_t scope = pem_scopes__add(unit, &dies[depth], tag, scopes[depth]);

		if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
			function = add_function(unit, &dies[depth], tag, outer[depth]);
		if (function < 0 || scope < 0)
			return -ENOMEM;
		if (may_hold_functions(tag) && depth + 1 < DEPTH_MAX &&
		    pem_die__go(dwarf_child, &dies[depth], &dies[depth + 1])) {
			outer[++depth] = (uint32_t)function;
			scopes[depth] = (uint32_t)scope;
			continue;
		}
		while (!(is_there = pem_die__go(dwarf_siblingof, &dies[depth], &dies[depth])) &&
		       depth != 0)
			depth--;
	}
	return pem_spans__sort(&unit->spans);
}
