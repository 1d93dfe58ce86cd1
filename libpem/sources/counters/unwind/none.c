// SPDX-License-Identifier: LGPL-2.1-or-later
/* none.c - in the stead of unwind.c where elfutils is missing: no sample has callers */
#include "unwind.h"

#include <errno.h>

uint64_t unwind__registers(void)
{
	return 0;
}

uint64_t unwind__pc(const uint64_t *registers)
{
	(void)registers;
	return 0;
}

struct unwinder *unwinder__open(const struct unwinder_options *options)
{
	(void)options;
	errno = ENOTSUP;
	return NULL;
}

void unwinder__close(struct unwinder *unwinder)
{
	(void)unwinder;
}

int unwinder__map(struct unwinder *unwinder, const struct ring_map *map)
{
	(void)unwinder, (void)map;
	return -ENOTSUP;
}

int unwinder__fork(struct unwinder *unwinder, uint32_t child, uint32_t parent)
{
	(void)unwinder, (void)child, (void)parent;
	return -ENOTSUP;
}

void unwinder__forget(struct unwinder *unwinder, uint32_t pid)
{
	(void)unwinder, (void)pid;
}

unsigned unwinder__unwind(struct unwinder *unwinder, const struct unwind_sample *sample,
			  uint64_t *callers, unsigned max)
{
	(void)unwinder, (void)sample, (void)callers, (void)max;
	return 0;
}

bool unwinder__was_cut(const struct unwinder *unwinder)
{
	(void)unwinder;
	return false;
}

const struct unwinder_counts *unwinder__counts(const struct unwinder *unwinder)
{
	static const struct unwinder_counts none;

	(void)unwinder;
	return &none;
}
