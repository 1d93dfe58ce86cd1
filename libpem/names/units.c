/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * units.c - the units of debug information, and which addresses are of which
 *
 * The table .debug_aranges is not used: clang writes none.
 */
#include "names.h"

#include <dwarf.h>
#include <errno.h>
#include <grow.h>
#include <stdlib.h>

/* Code that the linker left out has address 0, or the last ones. */
static bool is_linked(Dwarf_Addr low, Dwarf_Addr high)
{
	return low != 0 && low < high && high < UINT64_MAX - 1;
}

static int add_ranges(struct pem_units *units, struct pem_unit *unit)
{
	uint32_t number = (uint32_t)(unit - units->units);
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(&unit->die, at, &base, &low, &high)) > 0) {
		if (is_linked(low, high) && pem_spans__add(&units->spans, low, high, number) != 0)
			return -ENOMEM;
	}
	return 0;
}

int pem_units__read(struct pem_units *units, Dwarf *dwarf, const char *from)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, split;
	uint8_t type;
	size_t i;

	units->dwarf = dwarf;
	/* A unit that can't be read ends this: those before it are good. */
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, NULL) == 0 &&
	       units->count < PEM_SPAN_NONE) {
		bool is_split =
			type == DW_UT_skeleton && pem_debug_file__may_be_split(&die, from) &&
			dwarf_cu_info(cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) == 0 &&
			dwarf_tag(&split) == DW_TAG_compile_unit;

		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		if (pem_grow(&units->units, sizeof(*units->units), units->count + 1,
			     &units->capacity) != 0)
			return -ENOMEM;
		units->units[units->count++] =
			(struct pem_unit){.die = die, .root = is_split ? split : die};
	}
	for (i = 0; i < units->count; i++) {
		if (add_ranges(units, &units->units[i]) != 0)
			return -ENOMEM;
	}
	return pem_spans__sort(&units->spans);
}

struct pem_unit *pem_units__find(struct pem_units *units, uint64_t address)
{
	uint32_t i = pem_spans__find(&units->spans, address);

	if (i == PEM_SPAN_NONE)
		return NULL;
	/* Without memory its lines are known, and not its functions. */
	if (!units->units[i].is_read)
		(void)pem_unit__read(&units->units[i]);
	return &units->units[i];
}

void pem_units__free(struct pem_units *units)
{
	size_t i, n;

	for (i = 0; i < units->count; i++) {
		struct pem_unit *unit = &units->units[i];

		for (n = 0; n < unit->function_count; n++)
			free(unit->functions[n].text);
		free(unit->functions);
		free(unit->scopes);
		pem_spans__free(&unit->spans);
	}
	free(units->units);
	pem_spans__free(&units->spans);
}
