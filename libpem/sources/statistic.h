/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * statistic.h - the values of a statistic from a cell, for the sources that keep cells
 *
 * Not here: reading cells consistently (pem/ring.h), adding up the cells of several CPUs.
 */
#ifndef PEM_SOURCES_STATISTIC_H
#define PEM_SOURCES_STATISTIC_H

#include <pem/abi.h>
#include <pem/event.h>
#include <pem/pem.h>

#include <stdbool.h>

/*
 * Convert a cell, or a sum of cells of this action, to values in the field's own type. Values that
 * do not exist are left unchanged.
 */
static inline void pem_statistic__fill(struct pem_statistic *value, const struct pem_cell *sum,
				       uint64_t action)
{
	uint32_t type = PEM_ACTION_TYPE(action);
	bool is_signed = type >= PEM_TYPE_INT8 && type <= PEM_TYPE_INT64;
	uint64_t flip = is_signed ? 1ULL << 63 : 0;

	value->count = sum->stat_end;
	if (PEM_ACTION_FIELD(action) == PEM_NO_FIELD || !sum->stat_end)
		return;
	value->is_signed = is_signed;
	value->sum = sum->sum;
	value->min = sum->min ^ flip;
	value->max = sum->max ^ flip;
	value->mean =
		(is_signed ? (double)(int64_t)sum->sum : (double)sum->sum) / (double)sum->stat_end;
}

#endif
